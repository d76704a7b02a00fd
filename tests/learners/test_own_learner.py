"""Learners written outside the package: a hidden CRF and a latent perceptron, one class each."""

import os
import signal
from typing import NamedTuple, Protocol

import numpy as np
import pytest

import tacit
from tacit import Ragged, testing
from tacit.learners.learner import Learner, Traits
from tacit.learners.preparation import bind_samples, open_checkpoint, read_weights
from tacit.learners.rules import SummedHidden
from tacit.oracle import CapabilityError, Oracle, require
from tacit.oracle.capabilities import SumsOutputs
from tacit.problems import Candidates, Chain, Motif, Multiclass, PerSample
from tacit.runtime import Status, parallel, run

NEEDS = [Oracle.predict, Oracle.impute, Oracle.loss, Oracle.features]


class Descended(NamedTuple):
    iteration: int
    objective: float


class GradientCRF(Learner):
    """½‖w‖² + C · mean negative log-likelihood of the labels, hidden values summed over, by gradient descent."""

    traits = Traits(has_objective=True)

    def __init__(self, problem, C=10.0, tol=1e-6, max_iter=500, n_jobs=None, checkpoint=None, resume=False,
                 callbacks=None, verbose=1):  # fmt: skip
        self.problem, self.C, self.tol, self.max_iter, self.n_jobs = problem, C, tol, max_iter, n_jobs
        self.checkpoint, self.resume, self.callbacks, self.verbose = checkpoint, resume, callbacks, verbose

    @property
    def rule(self):
        return SummedHidden()

    def fit(self, X, y, *, hidden=None, sample_weight=None):
        if not self.C > 0:
            raise ValueError(f"C must be positive, got C={self.C!r}")
        self.schema_, oracle = bind_samples(self, X, y, hidden, [SumsOutputs])
        self.n_features_in_ = self.schema_.n_features
        weights = read_weights(sample_weight, oracle.n_samples)
        checkpoint = open_checkpoint(self, oracle)
        saved = None if checkpoint is None else checkpoint.read()
        with parallel(oracle, self.n_jobs) as shards:
            descent = Descending(shards, self.C * weights / weights.sum(), self.tol, self.max_iter)
            state = descent.begin() if saved is None else (saved["w"], float(saved["step"]), descent.lines(saved))
            kept = {"callbacks": self.callbacks, "verbose": self.verbose, "checkpoint": checkpoint}
            (self.coef_, _, self.history_), self.status_ = run(descent, state, **kept)
        self.objective_ = self.history_[-1].objective
        return self


class Descending:
    """Gradient descent whose step grows while it pays, as a process."""

    def __init__(self, oracle, weights, tol, max_iter):
        self.oracle, self.weights, self.tol, self.max_iter = oracle, weights, tol, max_iter

    def value(self, w):
        found = self.oracle.expectations(w, free=self.weights, truth=-self.weights)
        return 0.5 * w @ w + self.weights @ (found.free - found.truth), w + found.features

    def begin(self):
        w = np.zeros(self.oracle.n_params)
        return w, 1.0, [Descended(0, float(self.value(w)[0]))]

    def lines(self, saved):
        return [Descended(i, float(value)) for i, value in enumerate(saved["objectives"])]

    def step(self, state):
        w, step, history = state
        objective, slope = self.value(w)
        while self.value(w - step * slope)[0] > objective - 0.5 * step * slope @ slope and step > 1e-12:
            step /= 2
        w = w - step * slope
        return w, 2 * step, [*history, Descended(len(history), float(self.value(w)[0]))]

    def report(self, state):
        return state[2][-1]

    def describe(self, state):
        return state[2][-1].iteration, f"objective {state[2][-1].objective:.5g}"

    def verdict(self, state):
        history = state[2]
        if len(history) > 1 and history[-2].objective - history[-1].objective < self.tol * history[-1].objective:
            return Status.CONVERGED
        return Status.MAX_ITER if len(history) > self.max_iter else None

    def snapshot(self, state):
        return {"w": state[0], "step": state[1], "objectives": np.array([line.objective for line in state[2]])}


class OwnPerceptron(Learner):
    """Sun et al. 2009: no objective, no C, nothing but maxima."""

    def __init__(self, problem, epochs=20, n_jobs=None):
        self.problem, self.epochs, self.n_jobs = problem, epochs, n_jobs

    def fit(self, X, y, *, hidden=None):
        self.schema_, oracle = bind_samples(self, X, y, hidden, NEEDS)
        self.n_features_in_ = self.schema_.n_features
        w, total = np.zeros(oracle.n_params), np.zeros(oracle.n_params)
        with parallel(oracle, self.n_jobs) as shards:
            for _ in range(self.epochs):
                wrong, right = shards.predict(w).code, shards.impute(w).code
                mistakes = (shards.loss(wrong) > 0).astype(float)
                w = w + shards.features(right, mistakes) - shards.features(wrong, mistakes)
                total += w
        self.coef_ = total / self.epochs
        return self


@pytest.mark.parametrize("kind", [GradientCRF, OwnPerceptron])
@pytest.mark.parametrize(
    "problem", [Multiclass(), Candidates(), Motif(2, background=1)], ids=lambda p: type(p).__name__
)
def test_a_learner_of_ones_own_behaves(kind, problem):
    testing.check_learner(kind(problem))


def test_a_crf_of_classes_is_logistic_regression(digits):
    from sklearn.linear_model import LogisticRegression

    X, y = digits[0][:200], digits[1][:200]
    model = GradientCRF(Multiclass(fit_intercept=False), C=20.0, tol=1e-9, max_iter=5000).fit(X, y)
    peer = LogisticRegression(C=20.0 / len(y), fit_intercept=False, tol=1e-8, max_iter=5000).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), X @ peer.coef_.T, atol=1e-3)


def test_a_crf_sums_over_hidden_values(bags):
    X, y, hidden = bags
    model = GradientCRF(Candidates(), C=100.0).fit(X, y)
    assert model.score(X, y) == 1.0
    assert (model.predict_hidden(X) == hidden).mean() > 0.6
    blocks = zip(model.weights_["weights"], model.weights_["intercept"], strict=True)
    summed = np.array([[np.log(np.exp(bag @ w + b).sum()) for bag in X] for w, b in blocks]).T
    np.testing.assert_allclose(model.decision_function(X), summed)


def test_it_is_saved_and_loaded_with_its_class(bags, tmp_path):
    X, y, _ = bags
    model = GradientCRF(Candidates()).fit(X, y)
    model.save(tmp_path / "model")
    loaded = tacit.load(tmp_path / "model", classes=[GradientCRF, Descended])
    assert loaded.history_ == model.history_
    assert (loaded.predict(X) == model.predict(X)).all()
    with pytest.raises(tacit.runtime.storage.StorageError, match="GradientCRF"):
        tacit.load(tmp_path / "model")
    with pytest.raises(tacit.runtime.storage.StorageError, match="Descended"):
        tacit.load(tmp_path / "model", classes=[GradientCRF])


@pytest.mark.skipif(signal.getsignal(signal.SIGINT) is signal.SIG_IGN, reason="Ctrl-C is ignored here: nohup, or &")
def test_it_can_be_stopped_interrupted_and_resumed(bags, tmp_path):
    X, y, _ = bags
    whole = GradientCRF(Candidates()).fit(X, y)
    stopped = GradientCRF(Candidates(), callbacks=[lambda line: line.iteration == 3]).fit(X, y)
    assert (stopped.status_, len(stopped.history_)) == (Status.STOPPED, 4)

    def interrupt(line):
        if line.iteration == 5:
            os.kill(os.getpid(), signal.SIGINT)

    keeping = {"checkpoint": tmp_path / "state", "resume": True}
    cut = GradientCRF(Candidates(), callbacks=[interrupt], **keeping).fit(X, y)
    assert cut.status_ is Status.INTERRUPTED
    assert len(cut.history_) < len(whole.history_)
    resumed = GradientCRF(Candidates(), **keeping).fit(X, y)
    assert np.array_equal(resumed.coef_, whole.coef_)
    with pytest.raises(ValueError, match=r"10\.0.*11\.0"):
        GradientCRF(Candidates(), C=11.0, **keeping).fit(X, y)


def test_what_a_problem_lacks_is_said_before_any_work():
    problem = PerSample(lambda x, y: [x * y], lambda x, w: 1, augmented=lambda x, t, w: -t)
    with pytest.raises(CapabilityError, match="expectations"):
        GradientCRF(problem).fit([1.0, 2.0], [-1, 1])
    model = GradientCRF(Chain()).fit(Ragged([[1.0], [2.0]], [0, 2]), [[0, 1]])
    with pytest.raises(CapabilityError, match="label_scores"):
        model.predict([[[1.0]]])


class Odd:
    n_samples, n_params = 3, 1

    def strange(self):
        """A method that is not declared."""

    def plain(self):
        return 7

    batches = {"plain": None}


def test_undeclared_methods_are_not_shared_in_silence():
    with parallel(Odd(), 2) as shards:
        assert shards.plain() == 7
        with pytest.raises(CapabilityError, match="strange"):
            shards.strange()


class Flies(Oracle, Protocol):
    def fly(self): ...


def test_require_names_what_is_missing():
    with pytest.raises(CapabilityError, match=r"`fly`.*walk"):
        require("Me", Odd(), Odd(), Flies, "walk")
