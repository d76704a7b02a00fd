"""Whole-number parameters: any integer type means the same, and what is no whole number is refused."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from tacit import LatentSVM, SelfPaced, StructuredSVM, windows
from tacit.data import parameters
from tacit.datasets import planted_motif
from tacit.oracle import HiddenLoss, LossTable
from tacit.problems import Candidates, Chain, Motif, Multiclass, PerSample, Transforms, rotations
from tacit.solvers import Bundle, FrankWolfe, Subgradient
from tacit.spectral import SpectralAutomaton, SpectralHMM, WeightedAutomaton

KINDS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
X, Y = load_iris(return_X_y=True)
WORDS = [list("ab") * k + ["c"] for k in (1, 1, 2, 2, 2, 3)] * 5


def motif(whole):
    sequences, y, _ = planted_motif(30, 25, "TGAC", seed=1)
    return LatentSVM(Motif(whole(4), background=whole(4)), C=10).fit(sequences, y).coef_


def solver(solver):
    return StructuredSVM(Multiclass(), C=1, solver=solver, max_iter=30).fit(X, Y).coef_


def latent(**parameters):
    bags = np.random.default_rng(0).standard_normal((20, 3, 2))
    return LatentSVM(Candidates(), C=10, **parameters).fit(bags, np.arange(20) % 2).coef_


def turned(whole):
    images = np.random.default_rng(0).random((20, 4, 4))
    problem = Transforms(rotations(-20, 20, whole(3)), n_components=whole(5))
    return LatentSVM(problem, C=1, max_iter=5).fit(images, np.arange(20) % 2).coef_


def functions(whole):
    def joint_feature(x, y):
        return np.outer(np.eye(2)[y], np.arange(20) < x).ravel()

    problem = PerSample(joint_feature, outputs=[0, 1], blocks={"weights": (whole(2), whole(20))})
    return StructuredSVM(problem, C=1).fit([1, 3, 15, 18], [0, 0, 1, 1]).coef_


CASES = {
    "Motif": motif,
    "Bundle": lambda whole: solver(Bundle(drop_after=whole(127))),
    "FrankWolfe block_size": lambda whole: solver(FrankWolfe(block_size=whole(100))),
    "FrankWolfe cache": lambda whole: solver(FrankWolfe(cache=whole(127), sweeps=whole(2))),
    "Subgradient": lambda whole: solver(Subgradient(batch_size=whole(100))),
    "learner": lambda whole: latent(n_init=whole(2), max_iter=whole(120), max_inner=whole(120)),
    "SelfPaced": lambda whole: latent(pace=SelfPaced(warmup=whole(2), max_rounds=whole(5), mu=np.float16(2))),
    "Transforms": turned,
    "PerSample": functions,
    "SpectralAutomaton": lambda whole: (
        SpectralAutomaton(whole(2), length=whole(100), size=whole(50), refine="em", max_iter=whole(20))
        .fit(WORDS)
        .automaton_.transitions
    ),
    "SpectralHMM": lambda whole: SpectralHMM(whole(3), length=whole(100), size=whole(50)).fit(WORDS).emissionprob_,
    "windows": lambda whole: windows(np.eye(40), [(whole(32), whole(20))], whole(8), cells=whole(4)).values,
    "planted_motif": lambda whole: planted_motif(whole(9), whole(100), "ACG", background=whole(30)).hidden,
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", CASES)
def test_an_integer_of_any_width_means_the_same(name):
    """Arithmetic in eight bits wraps: 4 ** np.uint8(4) is 0, and kernels would write beyond their tables."""
    expected = CASES[name](int)
    for kind in KINDS:
        np.testing.assert_array_equal(CASES[name](kind), expected, err_msg=f"{name} with {kind.__name__}")


@pytest.mark.parametrize("wrong", [2.0, np.float32(2), True, np.True_, "2", None, [2], 0, -1, np.array(2)])
def test_what_is_no_whole_number_from_one_is_refused(wrong):
    sequences, y, _ = planted_motif(8, 25, "TGAC", seed=1)
    models = [
        (StructuredSVM(Motif(wrong)), "width", sequences, y),
        (StructuredSVM(Motif(4, background=wrong)), "background", sequences, y),
        (StructuredSVM(Multiclass(), max_iter=wrong), "max_iter", X, Y),
        (StructuredSVM(Multiclass(), solver=Bundle(drop_after=wrong)), "drop_after", X, Y),
        (StructuredSVM(Multiclass(), solver=FrankWolfe(sweeps=wrong)), "sweeps", X, Y),
        (LatentSVM(Multiclass(), n_init=wrong), "n_init", X, Y),
        (LatentSVM(Multiclass(), max_inner=wrong), "max_inner", X, Y),
        (LatentSVM(Multiclass(), pace=SelfPaced(warmup=wrong)), "warmup", X, Y),
        (LatentSVM(Multiclass(), pace=SelfPaced(max_rounds=wrong)), "max_rounds", X, Y),
        (SpectralAutomaton(length=wrong), "length", WORDS, None),
        (SpectralAutomaton(2, size=wrong), "size", WORDS, None),
        (SpectralHMM(wrong), "n_states", WORDS, None),
        (SpectralHMM(2, max_iter=wrong), "max_iter", WORDS, None),
    ]
    for model, name, data, labels in models:
        with pytest.raises(ValueError, match=name):
            model.fit(data, labels)
    if wrong is not None:  # which these two take
        with pytest.raises(ValueError, match="batch_size"):
            StructuredSVM(Multiclass(), solver=Subgradient(batch_size=wrong)).fit(X, Y)
        with pytest.raises(ValueError, match="whole number"):
            StructuredSVM(Multiclass(), n_jobs=wrong if wrong != -1 else 0).fit(X, Y)


@pytest.mark.parametrize("wrong", [2.5, "yes", None, 1, [True]])
def test_switches_are_true_or_false(wrong):
    for learner in (
        StructuredSVM(Multiclass(fit_intercept=wrong)),
        StructuredSVM(Multiclass(), warm_start=wrong),
        StructuredSVM(Multiclass(), solver=Bundle(proximal=wrong)),
        LatentSVM(Multiclass(), escape=wrong),
    ):
        with pytest.raises(ValueError, match="must be True or False"):
            learner.fit(X, Y)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble])
def test_numbers_of_any_precision_are_read_as_doubles(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = StructuredSVM(Multiclass(), C=kind(100), tol=kind(2**-10), max_iter=60).fit(X, Y)
        plain = StructuredSVM(Multiclass(), C=100.0, tol=2**-10, max_iter=60).fit(X, Y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)


def test_messages_never_hold_a_whole_input():
    assert len(parameters.shorten("x" * 10**6)) == 80
    assert len(parameters.shorten(list(range(10**6)))) < 100
    assert parameters.shorten(10**5000) == "a int"  # Python refuses to write it out
    with pytest.raises(ValueError, match="classes") as caught:
        StructuredSVM(Multiclass(classes=["x" * 10**6])).fit(X, Y)
    assert len(str(caught.value)) < 300
    with pytest.raises(ValueError, match="classes") as caught:
        StructuredSVM(Multiclass(classes=np.arange(10**5) + 10)).fit(X, Y)
    assert len(str(caught.value)) < 300


def bound(problem, data, labels, **known):
    return problem.bind(data, labels, problem.schema(data, labels), **known)


@pytest.mark.parametrize(
    ("problem", "data", "labels"),
    [
        (Multiclass(), X, Y),
        (Candidates(), X.reshape(50, 3, 4), np.arange(50) % 2),
        (Motif(4), *planted_motif(20, 20, "ACGT")[:2]),
        (Chain(), X.reshape(50, 3, 4), Y.reshape(50, 3)),
        (PerSample(lambda x, y: np.outer(np.eye(3)[y], x).ravel(), outputs=[0, 1, 2]), X, Y),
        (
            PerSample(lambda x, y: np.outer(np.eye(3)[y], x).ravel(), lambda x, w: int(np.argmax(w.reshape(3, 4) @ x))),
            X,
            Y,
        ),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, np.ndarray) else "",
)
def test_codes_weights_and_coefficients_that_do_not_fit_are_refused_before_a_kernel_reads_them(problem, data, labels):
    oracle = bound(problem, data, labels)
    w, n = np.zeros(oracle.n_params), oracle.n_samples
    code = oracle.predict(w).code
    ones = np.ones(n)
    for wrong in (np.full_like(code, 120), code[:-1], np.append(code, 0), code.astype(np.int64) + 10**9, code[:0]):
        for call in (
            lambda code=wrong: oracle.features(code, ones),
            lambda code=wrong: oracle.score(w, code),
            lambda code=wrong: oracle.loss(code),
        ):
            with pytest.raises(ValueError, match="code"):
                call()
    for few in (ones[:1], ones[:-1]):
        with pytest.raises(ValueError, match="coefficients"):
            oracle.features(code, few)
    for short in (w[:-1], np.append(w, 0.0), w[:0]):
        with pytest.raises(ValueError, match="shape"):
            oracle.score(short, code)


def test_loss_tables_that_do_not_fit_are_refused_before_a_kernel_reads_them():
    oracle = bound(Multiclass(), X, Y)
    for wrong in (
        LossTable(np.zeros((3, 2)), np.full(150, 2)),
        LossTable(np.zeros((3, 2)), np.full(150, -1)),
        LossTable(np.zeros((3, 2)), np.zeros(149, int)),
        LossTable(np.zeros((2, 150)), None),
        LossTable(np.zeros((3, 149)), None),
    ):
        with pytest.raises(ValueError, match="loss table"):
            oracle.with_loss(wrong)
    bags = bound(Candidates(), X.reshape(50, 3, 4), np.arange(50) % 2)
    with pytest.raises(ValueError, match="tables of a loss"):
        HiddenLoss(np.zeros(50, int), [np.zeros((2, 2))]).table(2, bags.offsets, np.zeros(50, int), np.full(50, 2))
    with pytest.raises(ValueError, match=r"hidden\[0\]"):
        bags.with_hidden(np.full(50, 3))


def test_scores_of_ones_own_oracle_must_have_the_shape_that_kernels_read():
    class Narrow(Multiclass):
        def bind(self, X, y, schema, *, hidden=None):
            oracle = super().bind(X, y, schema, hidden=hidden)
            whole = oracle.scores
            oracle.scores = lambda w, rows=None: whole(w, rows)[:, :1]
            return oracle

    with pytest.raises(ValueError, match=r"\(3, 1\)"):
        StructuredSVM(Narrow()).fit(X, Y)


def test_codes_of_strings_that_are_no_symbol_are_refused():
    from tacit import Ragged

    coin = WeightedAutomaton([1.0], [[[0.3]], [[0.5]]], [0.2], symbols=["a", "b"])
    model = SpectralAutomaton(2).fit(WORDS)
    for codes in ([10**6], [-5], [3]):
        with pytest.raises(ValueError, match="codes"):
            coin.log_prob_of_codes(Ragged(codes, [0, 1]))
        with pytest.raises(ValueError, match="codes"):
            model.distribution_.log_prob(Ragged(codes, [0, 1]))
    broken = [part._replace(transitions=np.zeros((0, 2, 2))) for part in model.distribution_.automata]
    with pytest.raises(ValueError, match="shapes"):
        model.distribution_._replace(automata=tuple(broken)).log_prob(Ragged([0], [0, 1]))
    with pytest.raises(ValueError, match="prefixes"):
        coin.hankel(["", "x"], ["", "b"])


def test_a_sparse_matrix_whose_indices_leave_it_is_refused():
    from scipy import sparse

    table = sparse.csr_array(X)
    table.indices[5] = 10**6
    with pytest.raises(ValueError, match="sparse"):
        StructuredSVM(Multiclass()).fit(table, Y)
