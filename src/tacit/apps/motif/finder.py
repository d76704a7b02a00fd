"""`MotifFinder`: motifs that tell positive sequences from negative ones, and how sure that is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from tacit.apps.application import Application
from tacit.apps.motif import evidence
from tacit.apps.motif.blending import blend, score_composition
from tacit.apps.motif.descent import Descended, descend
from tacit.apps.motif.kmers import KmerModel, count_words, learn_kmers
from tacit.apps.motif.seeds import unexplained_words, with_word
from tacit.apps.motif.settings import check_flank, choose_settings, middle_settings, read_widths
from tacit.apps.motif.shapes import FoundMotif, describe_motif, find_best_sites
from tacit.arrays import Array, is_table
from tacit.datasets.shuffled import shuffle_pairs
from tacit.inputs.parameters import is_positive as above_zero
from tacit.inputs.parameters import number, one_of, random_numbers, shorten, switch, whole_number
from tacit.learners import LatentSVM
from tacit.oracle import Schema
from tacit.oracle.digests import checksum
from tacit.problems import Motif
from tacit.problems.motif.composition import count_shares, word_shares
from tacit.problems.motif.sequences import read_sequences
from tacit.problems.motif.starts import enriched_words
from tacit.ragged import Ragged
from tacit.running import Progress, Status
from tacit.running.checkpoint import Checkpoint, stored, stored_number
from tacit.running.deadline import Deadline

MOST_MOTIFS = 5
"""Motifs that ``n_motifs="auto"`` looks for."""

LONGEST_SHARE, LONGEST_SHARE_OF_SHUFFLES = 3, 2
"""Letters of the words of the composition. Shuffles have the same pairs: longer words would tell how they were made,
and not how negatives look."""

FIRST_STARTS, NEXT_STARTS = 6, 3
"""Words that the first motif, and each later one, is started from."""

MAX_STEPS, STEPS_AFTER_INTERRUPT = 80, 5
"""Of a descent; and of the first one, where nothing was learned yet when Ctrl-C came."""

MAX_SHIFT = 3
"""Letters that a motif is moved by, one after the other, if each step is better."""

SAME_OBJECTIVE = 0.01
"""Starts within this share of the best objective ended at the same motif."""

LEAST_SEQUENCES = 10
"""Sequences of each class without which nothing can be learned and tested."""


class MotifFinder(Application):
    """Find the motifs that tell positive sequences from negative ones, and test them on sequences held out.

    The model is ``F(x) = composition + Σ over motifs of the best site, if that speaks for the positive class``
    (`tacit.problems.Motif` with ``features="sites"``). A motif is begun from the words that explain best what is left
    to explain, and all motifs are then refitted together. Each is tested on the held-out part: do sequences with a
    better site have higher odds of being positive, *given* their composition and the motifs before it? At the end the
    model is refitted to all sequences. Predictions also use a logistic regression on words of 3 to 6 letters, unless
    ``motif_only`` is set.

    Parameters
    ----------
    width : letters of a motif, or a pair (shortest, longest) of which the best is chosen by cross-validation
    n_motifs : how many, or "auto" for as many as are significant, at most 5
    learner : "logistic", or "latent svm", which refits by the concave–convex procedure (`tacit.LatentSVM`)
    C : weight of the mean loss against ½‖w‖²; "auto" chooses by cross-validation
    strands : "both", or "one" for sequences that are read in one direction, such as RNA
    overhang : letters of a site that may lie outside of its sequence
    flank : letters that follow every sequence, such as the linker of a binding array
    motif_only : predict from motifs and composition alone
    held_out : the share of sequences that is held out for tests
    alpha : a motif is significant if its p-value, times the number of motifs tested, is below this
    time_budget : seconds after which the best so far is kept; None for as long as it takes
    checkpoint, resume : a file that holds the motifs found so far, and whether to go on from it
    random_state : of the split, the shuffles, cross-validation
    n_jobs : threads; the result is the same for any
    verbose : 1 shows progress on a terminal

    Attributes
    ----------
    motifs_ : one `tacit.apps.motif.shapes.FoundMotif` each, the most significant first; with "auto" only those that are
    coef_, schema_, width_, C_ : the model of sites; ``weights_`` has its parts by name
    composition_ : letters of the longest words of the composition: 3, and 2 where shuffles are the negatives
    evidence_ : areas under the ROC curve on the held-out part, of motifs, words, both, and composition alone
    status_ : why it stopped
    history_ : the objective of every step of the best start, one list per motif

    >>> from tacit.datasets import planted_motif
    >>> X, y, _ = planted_motif(400, 40, "TGACTCAT", noise=0.1, strands="both", seed=0)
    >>> finder = MotifFinder(width=8, verbose=0).fit(X, y)
    >>> [(motif.consensus in ("TGACTCAT", "ATGAGTCA"), motif.p_value < 1e-9) for motif in finder.motifs_]
    [(True, True)]
    >>> finder.predict(["ccccatgagtcaccccaccc", "ccccccccagccccacccgc"])
    array([ 1, -1])
    """

    _not_saved = ("checkpoint", "resume", "verbose", "time_budget", "n_jobs")
    status_: Status

    def __init__(
        self,
        width: Any = 10,
        n_motifs: Any = "auto",
        learner: str = "logistic",
        C: Any = "auto",
        strands: str = "both",
        overhang: int = 2,
        flank: str = "",
        motif_only: bool = False,
        held_out: float = 0.5,
        alpha: float = 1e-3,
        time_budget: float | None = None,
        checkpoint: Any = None,
        resume: bool = False,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 1,
    ) -> None:
        self.width = width
        self.n_motifs = n_motifs
        self.learner = learner
        self.C = C
        self.strands = strands
        self.overhang = overhang
        self.flank = flank
        self.motif_only = motif_only
        self.held_out = held_out
        self.alpha = alpha
        self.time_budget = time_budget
        self.checkpoint = checkpoint
        self.resume = resume
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # fit

    def fit(self, X: Any, y: Any = None) -> MotifFinder:
        """Learn from sequences and labels of two classes, of which the second, in their order, is positive.

        Without labels all sequences are positive, and their shuffles, pairs of letters preserved, are the negatives.
        """
        self.check_parameters()
        deadline = Deadline(self.time_budget)
        seed = int(random_numbers(self.random_state).randint(2**31))
        self.composition_ = LONGEST_SHARE if y is not None else LONGEST_SHARE_OF_SHUFFLES
        sequences, is_positive, self.classes_ = self._read(X, y, seed)
        with_flank = self._with_flank(sequences)
        self._problem(1, read_widths(self.width)[1]).read(with_flank)  # none is too short
        self._interrupted: Status | None = None
        held = evidence.split_in_halves(_keys(sequences), is_positive, float(self.held_out), seed)
        _check_enough(is_positive, held)
        train, test = np.flatnonzero(~held), np.flatnonzero(held)
        self._progress, self._began = Progress(int(self.verbose), None), time.perf_counter()
        self._learn_motifs(with_flank, is_positive, train, test, seed, deadline)
        self._learn_words(sequences, is_positive, train, test, seed)
        if self._interrupted is None:
            self._refit(with_flank, sequences, is_positive, seed, deadline)
        self._describe(with_flank, sequences, is_positive)
        self.status_ = self._interrupted or Status.CONVERGED
        self._progress.close()
        del self._interrupted, self._p_values, self._agreement, self._progress, self._began
        return self

    def _read(self, X: Any, y: Any, seed: int) -> tuple[Ragged, Array, Array]:
        """Letter codes, which sequences are positive, and the two labels."""
        sequences = read_sequences(X)
        if y is None:
            shuffled = shuffle_pairs(sequences, seed)
            offsets = np.concatenate([sequences.offsets, sequences.offsets[-1] + shuffled.offsets[1:]])
            both = Ragged(np.concatenate([sequences.values, shuffled.values]), offsets)
            return both, np.arange(len(both)) < len(sequences), np.array([-1, 1])
        classes = self._problem(1, 1).schema(Ragged(sequences.values, sequences.offsets), y).classes
        return sequences, np.asarray(y) == classes[1], classes

    def _problem(self, n_motifs: int, width: int) -> Motif:
        """What is learned: a model of so many motifs."""
        overhang = min(int(self.overhang), width - 1)
        return Motif(width, int(self.composition_), self.strands, "sites", n_motifs=n_motifs, overhang=overhang)

    def _with_flank(self, sequences: Ragged) -> Ragged:
        """Every sequence with the flank behind it."""
        if not self.flank:
            return sequences
        flank = read_sequences([self.flank]).values
        offsets = sequences.offsets + flank.size * np.arange(len(sequences) + 1)
        values = np.empty(int(offsets[-1]), np.uint8)
        is_flank = np.zeros(values.size, dtype=bool)
        is_flank[(offsets[1:, None] - flank.size + np.arange(flank.size)).ravel()] = True
        values[~is_flank] = sequences.values
        values[is_flank] = np.tile(flank, len(sequences))
        return Ragged(values, offsets)

    def _learn_motifs(
        self, sequences: Ragged, is_positive: Array, train: Array, test: Array, seed: int, deadline: Deadline
    ) -> None:
        """Add motif after motif on the training part, each tested on the other, until one is not significant."""
        own, labels = sequences[train], is_positive[train]
        strands = 1 if self.strands == "one" else 2
        keeper = self._open_checkpoint(sequences, is_positive, seed)
        saved = None if keeper is None else keeper.read()
        w: Array | None = None
        self._p_values: list[float] = []
        self._agreement: list[float] = []
        self.history_: list[list[float]] = []
        if saved is None:
            try:
                self.width_, self.C_ = choose_settings(self, own, labels, seed, deadline)
            except KeyboardInterrupt:
                self._interrupted = Status.INTERRUPTED
                self.width_, self.C_ = middle_settings(self)
        else:
            assert keeper is not None
            with keeper.restoring():
                w = self._restore(saved, own, labels)
        most = MOST_MOTIFS if self.n_motifs == "auto" else int(self.n_motifs)
        while len(self._p_values) < most and (self._interrupted is None or not self._p_values):
            if self._p_values and self.n_motifs == "auto" and not self._is_significant(len(self._p_values) - 1):
                break
            m = len(self._p_values) + 1
            problem = self._problem(m, self.width_)
            schema = problem.schema(own, labels)
            oracle = problem.bind(own, labels, schema)
            words = self._words(oracle, w, own, labels, m, strands)
            words, steps = (words, MAX_STEPS) if self._interrupted is None else (words[:1], STEPS_AFTER_INTERRUPT)
            found: list[Descended] = []
            for letters in words:
                begin = _grown(w, schema)
                with_word(begin, letters, schema.views(begin), m - 1)
                found.append(
                    descend(
                        oracle,
                        labels,
                        begin,
                        self.C_,
                        max_iter=steps,
                        deadline=deadline,
                        n_jobs=self.n_jobs,
                        tell=self._teller(f"motif {m}, start {len(found) + 1} of {len(words)}"),
                    )
                )
                if found[-1].status in (Status.INTERRUPTED, Status.STOPPED):
                    self._interrupted = found[-1].status
                    break
            if not found:
                break
            best = min(found, key=lambda one: one.objective)
            near = [one.objective <= best.objective * (1 + SAME_OBJECTIVE) for one in found]
            if self._interrupted is None:
                best = self._try_shifts(oracle, schema, labels, best, m - 1, deadline)
            if self.learner == "latent svm" and self._interrupted is None:
                best = self._polish(problem, own, labels, best)
            w = best.w
            self.schema_, self.coef_ = schema, w
            self.history_.append(best.history)
            self._agreement.append(float(np.mean(near)))
            self._p_values.append(self._test(problem, schema, w, sequences[test], is_positive[test]))
            if keeper is not None:
                keeper.write(
                    {
                        "width": self.width_,
                        "C": self.C_,
                        "w": w,
                        "p_values": np.array(self._p_values),
                        "agreement": np.array(self._agreement),
                    }
                )
        self._drop_last_if_not_significant(own, labels, deadline)

    def _restore(self, saved: Mapping[str, Any], sequences: Ragged, labels: Array) -> Array:
        """Take over the motifs of a checkpoint; returns their weights."""
        p_values = np.asarray(saved["p_values"])
        n = whole_number("the number of motifs", p_values.size, 1, MOST_MOTIFS)
        self._p_values = stored(saved, "p_values", (n,)).tolist()
        self._agreement = stored(saved, "agreement", (n,)).tolist()
        low, high = read_widths(self.width)
        self.width_ = int(stored_number(saved, "width", low))
        self.C_ = stored_number(saved, "C", 0.0)
        if not (self.width_ <= high and above_zero(self.C_)):
            raise ValueError(f"width {self.width_} and C {self.C_} are none that were asked for")
        self.schema_ = self._problem(n, self.width_).schema(sequences, labels)
        self.coef_ = stored(saved, "w", (self.schema_.n_params,))
        self.history_ = [[] for _ in self._p_values]
        return self.coef_

    def _teller(self, what: str) -> Callable[[int, float], None]:
        """Shows on the terminal what is going on, and its objective."""

        def tell(step: int, objective: float) -> None:
            self._progress.show(time.perf_counter() - self._began, step, f"{what}: objective {objective:.5g}")

        return tell

    def _words(
        self, oracle: Any, w: Array | None, sequences: Ragged, labels: Array, m: int, strands: int
    ) -> list[Array]:
        """Words to begin the m-th motif from."""
        if m == 1 or w is None:
            words = enriched_words(sequences, labels, self.width_, strands, FIRST_STARTS)
            return words or [np.zeros(min(self.width_, 6), np.int64)]
        before = self._problem(m - 1, self.width_)
        score = before.bind(sequences, None, before.schema(sequences, labels)).label_scores(w)[:, 1]
        p = expit(score)
        weight = np.where(labels, 0.5 / labels.mean(), 0.5 / (1 - labels.mean()))
        return unexplained_words(sequences, weight * (labels - p), weight * p * (1 - p), strands, NEXT_STARTS)

    def _try_shifts(
        self, oracle: Any, schema: Schema, labels: Array, found: Descended, motif: int, deadline: Deadline
    ) -> Descended:
        """The same model with the motif moved towards its weaker end, by a letter or two, where that is better.

        A motif that was found a letter beside its place is a local optimum: letters outside of it have no weights.
        """
        best = found
        for _ in range(MAX_SHIFT):
            w = best.w.copy()
            table = schema.views(w)["motif"][motif]
            strength = np.abs(table - table.mean(axis=1, keepdims=True)).sum(axis=1)
            step = -1 if strength[0] < strength[-1] else 1
            table[:] = np.roll(table, step, axis=0)
            table[-1 if step == -1 else 0] = table.mean(axis=1).mean()
            moved = descend(oracle, labels, w, self.C_, max_iter=MAX_STEPS // 2, deadline=deadline, n_jobs=self.n_jobs)
            if moved.status in (Status.INTERRUPTED, Status.STOPPED):
                self._interrupted = moved.status
                return best
            if moved.objective >= best.objective:
                return best
            best = moved._replace(history=[*best.history, *moved.history])
        return best

    def _polish(self, problem: Motif, sequences: Ragged, labels: Array, found: Descended) -> Descended:
        """The same motifs by a latent SVM that begins at their sites."""
        y = np.where(labels, 1, -1)
        oracle = problem.bind(sequences, y, problem.schema(sequences, y))
        hidden = oracle.decode(oracle.impute(found.w).code)[1]
        learner = LatentSVM(problem, C=self.C_, init=hidden, tol=1e-2, n_jobs=self.n_jobs, verbose=0)
        learner.fit(sequences, y)
        if learner.status_ is Status.INTERRUPTED:
            self._interrupted = Status.INTERRUPTED
        objectives = [line.objective for line in learner.history_]
        return Descended(learner.coef_, learner.objective_, objectives, learner.status_)

    def _is_significant(self, m: int) -> bool:
        """Whether a motif is, given how many were tested."""
        return self._p_values[m] * len(self._p_values) < float(self.alpha)

    def _test(self, problem: Motif, schema: Schema, w: Array, sequences: Ragged, labels: Array) -> float:
        """The p-value of the last motif on the held-out part, given composition and the motifs before it."""
        strands = 1 if self.strands == "one" else 2
        value = find_best_sites(problem, schema, w, sequences).value
        least = min(int(labels.sum()), int((~labels).sum()))
        longest = LONGEST_SHARE
        while longest > 1 and least < evidence.ROWS_PER_COVARIATE * count_shares(longest, strands):
            longest -= 1
        shares = word_shares(sequences, longest, strands)
        squares = word_shares(sequences, 1, strands)[:, :-1] ** 2
        lengths = np.log(sequences.lengths)[:, None]
        return evidence.given_p_value(value[:, -1], np.hstack([shares, squares, lengths, value[:, :-1]]), labels)

    def _drop_last_if_not_significant(self, sequences: Ragged, labels: Array, deadline: Deadline) -> None:
        """With "auto" the last motif was tried in vain, unless it is the only one: the model goes back to those before.

        A single motif that is not significant stays in the model, which must have one, and out of `motifs_`.
        """
        n = len(self._p_values)
        if self.n_motifs != "auto" or n < 2 or self._is_significant(n - 1):
            return
        problem = self._problem(n - 1, self.width_)
        schema = problem.schema(sequences, labels)
        oracle = problem.bind(sequences, labels, schema)
        w = np.concatenate([part.ravel() for part in _without_last(self.schema_.views(self.coef_))])
        again = descend(oracle, labels, w, self.C_, deadline=deadline, n_jobs=self.n_jobs)
        self.schema_, self.coef_ = schema, again.w
        self._tested = n
        self._p_values, self._agreement = self._p_values[:-1], self._agreement[:-1]
        self.history_ = self.history_[:-1]

    def _learn_words(self, sequences: Ragged, is_positive: Array, train: Array, test: Array, seed: int) -> None:
        """The words' share of the prediction, and what all parts reach on the held-out part; without words after Ctrl-C
        and when the time is over."""
        n = len(self._p_values)
        strands = 1 if self.strands == "one" else 2
        labels = is_positive[test]
        problem = self._problem(n, self.width_)
        bound = problem.bind(self._with_flank(sequences[test]), None, self.schema_)
        scores = {"motifs": bound.label_scores(self.coef_)[:, 1]}
        words, self.blend_ = KmerModel(np.zeros(count_words(strands)), 0.0), np.array([0.0, 1.0, 0.0])
        if self._interrupted is None:
            try:
                words = learn_kmers(sequences[train], is_positive[train], strands, seed)
                scores["words"] = words.score(sequences[test], strands)
                scores["motifs and words"], self.blend_ = blend(scores["motifs"], scores["words"], labels, seed)
                scores["composition"] = score_composition(sequences, is_positive, train, test, strands)
            except KeyboardInterrupt:
                self._interrupted = Status.INTERRUPTED
        self.kmer_weights_, self.kmer_intercept_ = words.weights, words.intercept
        areas = {name: evidence.auroc(score, labels) for name, score in scores.items()}
        self.evidence_ = {name: list(map(float, area)) for name, area in areas.items()}
        self.held_out_ = {"rows": test, "is_positive": labels, **scores}

    def _refit(self, with_flank: Ragged, sequences: Ragged, is_positive: Array, seed: int, deadline: Deadline) -> None:
        """The same motifs and words, learned from all sequences."""
        problem = self._problem(len(self._p_values), self.width_)
        schema = problem.schema(with_flank, is_positive)
        oracle = problem.bind(with_flank, is_positive, schema)
        again = descend(
            oracle,
            is_positive,
            self.coef_,
            self.C_,
            deadline=deadline,
            n_jobs=self.n_jobs,
            tell=self._teller("all sequences"),
        )
        if self.learner == "latent svm" and again.status not in (Status.INTERRUPTED, Status.STOPPED):
            again = self._polish(problem, with_flank, is_positive, again)
        self.schema_, self.coef_ = schema, again.w
        if again.status in (Status.INTERRUPTED, Status.STOPPED):
            self._interrupted = again.status
        elif not self.motif_only:
            try:
                words = learn_kmers(sequences, is_positive, 1 if self.strands == "one" else 2, seed)
                self.kmer_weights_, self.kmer_intercept_ = words.weights, words.intercept
            except KeyboardInterrupt:
                self._interrupted = Status.INTERRUPTED

    def _describe(self, with_flank: Ragged, sequences: Ragged, is_positive: Array) -> None:
        """Shapes, sites and p-values of the motifs, the most significant first."""
        n = len(self._p_values)
        tested = getattr(self, "_tested", n)
        self.__dict__.pop("_tested", None)
        problem = self._problem(n, self.width_)
        sites = find_best_sites(problem, self.schema_, self.coef_, with_flank)
        kept = [m for m in range(n) if self.n_motifs != "auto" or self._p_values[m] * tested < float(self.alpha)]
        kept.sort(key=lambda m: self._p_values[m])
        self.motif_order_ = np.array(kept, dtype=np.int64)
        self.motifs_ = [
            describe_motif(
                with_flank,
                sites,
                m,
                is_positive,
                p_value=min(1.0, self._p_values[m] * tested),
                agreement=self._agreement[m],
                alpha=float(self.alpha),
            )
            for m in kept
        ]
        self.sites_ = sites

    def _open_checkpoint(self, sequences: Ragged, is_positive: Array, seed: int) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        compared = ("width", "n_motifs", "learner", "C", "strands", "overhang", "flank", "held_out", "alpha")
        fingerprint = {
            "sequences and labels": checksum(sequences.values, sequences.offsets, is_positive),
            "seed": seed,
            **{name: repr(getattr(self, name)) for name in compared},
        }
        return Checkpoint(self.checkpoint, fingerprint, bool(self.resume), every_step=True)

    # use

    @property
    def weights_(self) -> dict[str, Array]:
        """The named parts of `coef_`."""
        return self.schema_.views(self.coef_)

    @property
    def problem_(self) -> Motif:
        """The problem that `coef_` belongs to."""
        return self._problem(int(self.schema_.blocks["motif"][0]), self.width_)

    def decision_function(self, X: Any) -> Array:
        """The log-odds of the positive class: above 0 where it is more likely, both classes as likely before."""
        check_is_fitted(self, "coef_")
        sequences = read_sequences(X)
        oracle = self.problem_.bind(self._with_flank(sequences), None, self.schema_)
        score = oracle.label_scores(self.coef_)[:, 1]
        if self.motif_only:
            return np.asarray(score)
        words = KmerModel(self.kmer_weights_, self.kmer_intercept_)
        strands = 1 if self.strands == "one" else 2
        return np.asarray(self.blend_[0] + self.blend_[1] * score + self.blend_[2] * words.score(sequences, strands))

    def predict(self, X: Any) -> Array:
        """The label of every sequence."""
        return np.asarray(self.classes_[(self.decision_function(X) > 0).astype(np.int64)])

    def score(self, X: Any, y: Any) -> float:
        """The share of labels that are right."""
        return float(np.mean(self.predict(X) == np.asarray(y)))

    def learned_attributes(self) -> dict[str, Any]:
        """What goes into a file: not the sites in the training sequences, and not the scores of those held out."""
        left_out = ("sites_", "held_out_")
        return {name: value for name, value in super().learned_attributes().items() if name not in left_out}

    # checks

    def check_parameters(self) -> None:
        longest = read_widths(self.width)[1]
        if not isinstance(self.n_motifs, str) or self.n_motifs != "auto":
            whole_number("n_motifs", self.n_motifs, 1, MOST_MOTIFS, remedy='or "auto"')
        one_of("learner", self.learner, ("logistic", "latent svm"))
        if not isinstance(self.C, str) or self.C != "auto":
            number("C", self.C, "a number above 0 or 'auto'", above_zero)
        one_of("strands", self.strands, ("both", "one"))
        whole_number("overhang", self.overhang, 0, longest - 1)
        check_flank(self.flank)
        switch("motif_only", self.motif_only)
        number("held_out", self.held_out, "a share between 0.1 and 0.9", lambda share: 0.1 <= share <= 0.9)
        number("alpha", self.alpha, "a probability above 0", lambda alpha: 0 < alpha < 1)
        if switch("resume", self.resume) and self.checkpoint is None:
            raise ValueError("resume=True needs checkpoint=path: there is no file to resume from")
        Deadline(self.time_budget)

    def check_learned(self) -> None:
        model = ("schema_", "coef_", "width_", "C_", "composition_", "motifs_", "classes_", "blend_")
        words = ("kmer_weights_", "kmer_intercept_", "motif_order_", "status_")
        missing = [name for name in (*model, *words) if not hasattr(self, name)]
        if missing:
            raise ValueError(f"{missing[0]} is missing; a fitted MotifFinder has it")
        whole_number("width_", self.width_, 1, 100)
        whole_number("composition_", self.composition_, 1, 5)
        if not isinstance(self.schema_, Schema):
            raise ValueError(f"schema_ is {shorten(self.schema_)}, no Schema")
        self.schema_.check()
        self._problem(1, self.width_)
        n = self.schema_.blocks.get("motif", (0,))[0]
        self._problem(whole_number("n_motifs", n, 1, MOST_MOTIFS), self.width_).check_schema(self.schema_)
        strands = 1 if self.strands == "one" else 2
        for name, size in (("coef_", self.schema_.n_params), ("kmer_weights_", count_words(strands)), ("blend_", 3)):
            values = getattr(self, name)
            if not is_table(values, 1, "f") or values.shape != (size,):
                raise ValueError(f"{name} is {shorten(values)}, not {size} finite numbers")
        number("kmer_intercept_", self.kmer_intercept_, "a number")
        if not isinstance(self.classes_, np.ndarray) or self.classes_.shape != (2,):
            raise ValueError(f"classes_ is {shorten(self.classes_)}, not two labels")
        if not isinstance(self.motifs_, list) or not all(isinstance(motif, FoundMotif) for motif in self.motifs_):
            raise ValueError("motifs_ is no list of motifs")
        order = self.motif_order_
        if not is_table(order, 1, "iu") or order.size != len(self.motifs_) or not ((order >= 0) & (order < n)).all():
            raise ValueError(f"motif_order_ is {shorten(order)}, not the places of {len(self.motifs_)} motifs")
        for motif in self.motifs_:
            motif.check()
        if not isinstance(self.status_, Status):
            raise ValueError(f"status_ is {shorten(self.status_)}, no Status")


def _keys(sequences: Ragged) -> list[str]:
    letters = np.frombuffer(b"ACGTRYSWKMBDHVN", np.uint8)[sequences.values].tobytes().decode("ascii")
    cuts = sequences.offsets.tolist()
    return [letters[a:b] for a, b in pairwise(cuts)]


def _check_enough(is_positive: Array, held: Array) -> None:
    """Refuse classes that are too small to learn from one part and to test on the other."""
    for kind, name in ((True, "positive"), (False, "negative")):
        n = int((is_positive == kind).sum())
        if n < LEAST_SEQUENCES:
            raise ValueError(f"there are {n} {name} sequences; {LEAST_SEQUENCES} or more are needed to learn and test")
        both = {bool(h) for h in held[is_positive == kind]}
        if len(both) < 2:
            raise ValueError(f"the {name} sequences are copies of one another; nothing is left to test on")


def _grown(w: Array | None, schema: Schema) -> Array:
    """Weights with room for one more motif; zeros where there were none."""
    grown = np.zeros(schema.n_params)
    if w is not None:
        motifs = schema.views(grown)["motif"]
        size = motifs.size - motifs[0].size
        motifs[:-1] = w[:size].reshape(motifs[:-1].shape)
        grown[motifs.size :] = w[size:]
    return grown


def _without_last(blocks: dict[str, Array]) -> list[Array]:
    return [blocks["motif"][:-1], *(part for name, part in blocks.items() if name != "motif")]
