"""`MotifFinder`: motif discovery. It finds motifs that distinguish positive from negative sequences, and tests them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tacit.data.arrays import Array
from tacit.data.parameters import one_of, random_numbers, shorten, whole_number
from tacit.data.ragged import Ragged
from tacit.data.shards import Shards
from tacit.data.specs import (
    between,
    choice,
    either,
    estimator,
    finite,
    instance,
    parameter,
    positive,
    share,
    switch,
    table,
    whole,
)
from tacit.dna.finder import evidence
from tacit.dna.finder.models import (
    SHUFFLES,
    KmerModel,
    blend,
    count_kmer_columns,
    count_strands,
    learn_kmers,
    make_problem,
    read_widths,
    score_composition,
)
from tacit.dna.finder.placement import SITES_PER_SEQUENCE, choose_sites, pair_motifs, place_motif
from tacit.dna.finder.search import MOST_MOTIFS, MotifSearch
from tacit.dna.finder.shapes import FoundMotif, Sites, describe_motif, find_best_sites, mark_overlaps
from tacit.dna.kmers import kmer_shares
from tacit.dna.motif.sites import MotifSites
from tacit.dna.sequences import (
    ALPHABETS,
    DNA,
    Alphabet,
    append_flank,
    load_letters,
    read_sequences,
    shuffle,
)
from tacit.learners.application import Application
from tacit.oracle import Schema
from tacit.runtime import Status
from tacit.runtime.loop import Deadline

LONGEST_SHARE, LONGEST_SHARE_OF_SHUFFLES = 3, 2
"""Letters of the k-mers of the composition. Shuffles preserve dinucleotides: longer k-mers would only reveal which
sequences are shuffles."""

NOT_STORED = ("sites_", "site_lists_", "held_out_", "placements_", "pairs_", "gc_area_")
"""Attributes about the training sequences, which a file does not contain."""

TURNED_SHARE = 0.6
"""A motif is turned if a larger share of its sites is on the other strand."""

LEAST_SEQUENCES = 10
"""Sequences of each class that are needed to learn and to test."""


def _check_flank(name: str, flank: Any) -> None:
    if not isinstance(flank, str):
        raise ValueError(f"{name} must be DNA letters, got {name}={shorten(flank)}")
    if flank:
        try:
            read_sequences([flank])
        except ValueError as error:
            raise ValueError(f"{name} must be DNA letters, got {name}={shorten(flank)}: {error}") from error


def _check_learner(name: str, value: Any) -> None:
    """Files of earlier versions have "latent svm"."""
    one_of(name, value.replace(" ", "-") if isinstance(value, str) else value, ("logistic", "latent-svm"))


@estimator
class MotifFinder(Application):
    """Find the motifs that distinguish positive from negative sequences, and test them on held-out sequences.

    The model is ``F(x) = composition + Σ over motifs of the score of the best site, where that is above 0``
    (`tacit.problems.MotifSites`). Each motif starts from the k-mers that the model so far explains least, and all
    motifs are then refitted together. Each is tested on the held-out part: do sequences with a better site have higher
    odds of being positive, *given* their composition and the motifs before it? At the end the model is refitted to all
    sequences. Predictions also use a logistic regression on k-mers of 3 to 6 letters, unless ``motif_only`` is set.

    Parameters
    ----------
    width : letters of a motif, or a pair (shortest, longest) of which the best is chosen by cross-validation.
        "auto" starts with 10; each motif may grow over conserved letters beside its sites, also behind a gap, and the
        model has the width of the longest. With a flank it stays, because letters of the flank look conserved
    n_motifs : how many, or "auto" for as many as are significant, at most 5
    learner : "logistic", or "latent-svm", which refits by the concave–convex procedure (`tacit.LatentSVM`)
    C : factor of the mean loss against ½‖w‖²; "auto" chooses by cross-validation
    alphabet : "dna", "rna" or "protein"; the last two are read in one direction
    strands : "both", or "one" for DNA that is read in one direction
    overhang : letters of a site that may lie outside its sequence
    flank : letters that follow every sequence, such as the linker of a binding array
    sites_per_sequence : of the sites that are listed: "zero-or-one", exactly "one", "any" number, or "auto": any
        number where more than a fifth of the sequences with a site have several, else zero or one
    motif_only : predict from motifs and composition alone
    held_out : share of sequences that are held out for tests
    alpha : a motif is significant if its E-value, p-value times the number of motifs tested, is below this
    time_budget : seconds after which the best so far is kept; None for as long as it takes
    checkpoint, resume : file with the motifs found so far, and whether to continue from it
    random_state : seed of the split, the shuffles and cross-validation
    n_jobs : number of threads; the result does not depend on it
    verbose : 1 shows progress on a terminal

    Attributes
    ----------
    motifs_ : list of `tacit.dna.finder.shapes.FoundMotif`, the most significant first; with "auto" all are significant
    coef_, schema_, width_, C_ : the model of sites; ``weights_`` has its blocks by name
    composition_ : letters of the longest k-mers of the composition: 3, and 2 where shuffles are the negatives
    evidence_ : areas under the ROC curve (AUROC) on the held-out part: of motifs, k-mers, both, and composition alone
    sites_ : the best site of every motif in every training sequence: start, strand and score
    site_lists_ : per motif, its sites in the positive sequences, the best first, as many as ``sites_per_sequence``
        says: row, start, strand and score; not stored in files
    placements_ : per motif, sites per sequence and a test of their distance from the middle; not stored in files
    pairs_ : per pair of motifs, tests of whether they occur together and at one distance; not stored in files
    length_area_ : AUROC of the lengths alone; near 0 or 1 hardly any motif can be significant
    gc_area_ : AUROC of the shares of G and C alone; not stored in files
    status_ : why the search stopped
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

    width: Any = parameter(lambda name, value: read_widths(value), default="auto")
    n_motifs: Any = parameter(either("auto", whole(1, MOST_MOTIFS)), default="auto")
    learner: str = parameter(_check_learner, default="logistic")
    C: Any = parameter(either("auto", positive), default="auto")
    alphabet: str = parameter(choice(*ALPHABETS), default="dna")
    strands: str = parameter(choice("both", "one"), default="both")
    overhang: int = parameter(whole(0), default=2)
    flank: str = parameter(_check_flank, default="")
    sites_per_sequence: str = parameter(choice("auto", *SITES_PER_SEQUENCE), default="auto")
    motif_only: bool = parameter(switch, default=False)
    held_out: float = parameter(between("a share between 0.1 and 0.9", 0.1, 0.9), default=0.5)
    alpha: float = parameter(between("a probability above 0", 0, 1, is_open=True), default=1e-3)
    time_budget: float | None = parameter(lambda name, value: Deadline(value), default=None)
    checkpoint: Any = None
    resume: bool = parameter(switch, default=False)
    random_state: Any = 0
    n_jobs: int | None = None
    verbose: int = 1
    learned: ClassVar = {
        "schema_": instance(Schema, "a Schema"),
        "coef_": table(None),
        "width_": whole(1, 100),
        "C_": positive,
        "composition_": whole(1, 5),
        "motifs_": instance(list, "a list of motifs"),
        "motif_order_": table(None, kinds="iu"),
        "classes_": instance(np.ndarray, "an array of two labels"),
        "blend_": table(3),
        "kmer_weights_": table(None),
        "kmer_intercept_": finite,
        "length_area_": share,
        "status_": instance(Status, "a Status"),
    }

    # fit

    def fit(self, X: Any, y: Any = None) -> MotifFinder:
        """Learn from sequences and labels of two classes; the second in sorted order is positive.

        Sequences are strings, or `tacit.Shards` of them, which are read into memory, one byte per letter. Without
        labels all sequences are positive, and their shuffles, dinucleotides preserved, are the negatives.
        """
        self.check_parameters()
        deadline = Deadline(self.time_budget)
        seed = int(random_numbers(self.random_state).randint(2**31))
        self.composition_ = choose_composition(self.alphabet, y is not None)
        sequences, is_positive, self.classes_ = read_classes(X, y, seed, self.letters_)
        with_flank = append_flank(sequences, self.flank, self.letters_)
        given = with_flank if y is not None else with_flank[: len(with_flank) // 2]
        make_problem(self, 1, read_widths(self.width)[1]).read(given)  # refuses short sequences
        held = evidence.choose_held_out(sequences, is_positive, float(self.held_out), seed, self.letters_)
        check_enough(is_positive, held)
        self.length_area_ = evidence.auroc(sequences.lengths, is_positive).value
        gc = kmer_shares(sequences, 1, 2)[:, 1] if self.letters_.size == 4 else np.zeros(len(sequences))
        self.gc_area_ = evidence.auroc(gc, is_positive).value
        search = MotifSearch(self, with_flank, is_positive, held, seed, deadline)
        search.run()
        self._take_model(search)
        shuffles = SHUFFLES if y is None else 1
        C = self._learn_kmers(search, sequences, shuffles)
        if search.ended_early is None:
            search.refit()
            self._take_model(search)
        if search.ended_early is None and not self.motif_only:
            self._refit_kmers(search, sequences, C, shuffles)
        self._describe(search)
        self.status_ = search.ended_early or Status.CONVERGED
        search.progress.close()
        return self

    def _take_model(self, search: MotifSearch) -> None:
        assert search.w is not None
        self.width_, self.C_ = search.width, search.C
        self.schema_, self.coef_ = search.schema, search.w
        self.history_ = search.history

    def _learn_kmers(self, search: MotifSearch, sequences: Ragged, shuffles: int) -> float:
        """Learn the k-mer model and the blend, and measure all scores on the held-out part; returns the C of k-mers.

        After Ctrl-C, and when the time is over, all weights of k-mers are 0.
        """
        strands, test, labels = count_strands(self), search.test, search.is_positive[search.test]
        bound = self.problem_.bind(search.sequences[test], None, self.schema_)
        scores = {"motifs": bound.label_scores(self.coef_)[:, 1]}
        kmers, self.blend_ = (
            KmerModel(np.zeros(count_kmer_columns(strands, self.letters_)), 0.0),
            np.array([0.0, 1.0, 0.0]),
        )
        if search.ended_early is None:
            try:
                settings: Any = {"shuffles": shuffles, "alphabet": self.letters_}
                kmers = learn_kmers(sequences[search.train], search.labels, strands, search.seed, **settings)
                scores["k-mers"] = kmers.score(sequences[test], strands, self.letters_)
                both, self.blend_ = blend(scores["motifs"], scores["k-mers"], labels, search.seed)
                scores["motifs and k-mers"] = both
                rows = search.is_positive, search.train, test
                scores["composition"] = score_composition(sequences, *rows, strands, self.letters_)
            except KeyboardInterrupt:
                search.ended_early = Status.INTERRUPTED
        self.kmer_weights_, self.kmer_intercept_ = kmers.weights, kmers.intercept
        areas = {name: evidence.auroc(score, labels) for name, score in scores.items()}
        self.evidence_ = {name: list(map(float, area)) for name, area in areas.items()}
        self.held_out_ = {"rows": test, "is_positive": labels, **scores}
        return kmers.C

    def _refit_kmers(self, search: MotifSearch, sequences: Ragged, C: float, shuffles: int) -> None:
        """Learn the k-mer model from all sequences."""
        try:
            settings = count_strands(self), search.seed, (C,), shuffles, self.letters_
            kmers = learn_kmers(sequences, search.is_positive, *settings)
            self.kmer_weights_, self.kmer_intercept_ = kmers.weights, kmers.intercept
        except KeyboardInterrupt:
            search.ended_early = Status.INTERRUPTED

    def _describe(self, search: MotifSearch) -> None:
        """Set the shapes, sites and p-values of the motifs, the most significant first.

        With "auto" a single motif that is not significant stays in the model, which needs one, but not in `motifs_`.
        """
        self.sites_ = self._orient(search)
        e_values = np.array(search.p_values) * search.n_tested
        kept = [m for m in range(e_values.size) if self.n_motifs != "auto" or e_values[m] < float(self.alpha)]
        kept.sort(key=lambda m: search.p_values[m])
        self.motif_order_ = np.array(kept, dtype=np.int64)
        data = search.sequences, self.sites_, search.is_positive
        motifs = [
            describe_motif(
                *data, m, search.p_values[m], search.agreement[m], float(self.alpha), search.n_tested, self.letters_
            )
            for m in kept
        ]
        self.motifs_ = mark_overlaps(motifs, kept, self.sites_, search.is_positive)
        weights, strands = self.weights_["motif"], count_strands(self)
        each = [(*data, m, motif, weights[m], strands) for m, motif in zip(kept, self.motifs_, strict=True)]
        overhang = self.problem_.overhang
        self.placements_ = [place_motif(*one, overhang) for one in each]
        told = self.sites_per_sequence
        most = [
            ("any" if place.model == "any" else "zero-or-one") if told == "auto" else told for place in self.placements_
        ]
        self.site_lists_ = [choose_sites(*one, overhang, number) for one, number in zip(each, most, strict=True)]
        self.pairs_ = pair_motifs(*data, kept, self.motifs_)

    def _orient(self, search: MotifSearch) -> Sites:
        """Read every motif in the direction of most of its sites; return the best sites.

        On two strands, a motif and its reverse complement are one model. It stays as it was found where both strands
        have about as many sites.
        """
        sites = find_best_sites(self.problem_, self.schema_, self.coef_, search.sequences)
        if count_strands(self) == 1:
            return sites
        strand, is_site = sites.strand[search.is_positive], sites.value[search.is_positive] > 0
        share = (strand * is_site).sum(axis=0) / np.maximum(is_site.sum(axis=0), 1)
        turned = np.flatnonzero(share > TURNED_SHARE)
        if turned.size:
            self.coef_ = self.coef_.copy()
            blocks = self.weights_["motif"]
            blocks[turned] = blocks[turned, ::-1, ::-1]
            sites = find_best_sites(self.problem_, self.schema_, self.coef_, search.sequences)
        return sites

    # use

    @property
    def letters_(self) -> Alphabet:
        """The alphabet of the sequences."""
        return ALPHABETS[self.alphabet]

    @property
    def weights_(self) -> dict[str, Array]:
        """The named blocks of `coef_`."""
        return self.schema_.views(self.coef_)

    @property
    def problem_(self) -> MotifSites:
        """The problem that `coef_` belongs to."""
        return make_problem(self, int(self.schema_.blocks["motif"][0]), self.width_)

    def decision_function(self, X: Any) -> Array:
        """The log-odds of the positive class, for a prior of one half; above 0 where it is more likely."""
        check_is_fitted(self, "coef_")
        sequences = read_sequences(X, self.letters_)
        oracle = self.problem_.bind(append_flank(sequences, self.flank, self.letters_), None, self.schema_)
        score = oracle.label_scores(self.coef_)[:, 1]
        if self.motif_only:
            return np.asarray(score)
        kmers = KmerModel(self.kmer_weights_, self.kmer_intercept_).score(sequences, count_strands(self), self.letters_)
        return np.asarray(self.blend_[0] + self.blend_[1] * score + self.blend_[2] * kmers)

    def predict(self, X: Any) -> Array:
        """The label of every sequence."""
        return np.asarray(self.classes_[(self.decision_function(X) > 0).astype(np.int64)])

    def score(self, X: Any, y: Any) -> float:
        """Accuracy: the share of correct labels."""
        return float(np.mean(self.predict(X) == np.asarray(y)))

    # files

    def learned_attributes(self) -> dict[str, Any]:
        """What goes into a file: all but what describes the training sequences, and the held-out scores."""
        learned = super().learned_attributes()
        return {name: value for name, value in learned.items() if name not in NOT_STORED}

    def check_parameters(self) -> None:
        super().check_parameters()
        whole_number("overhang", self.overhang, 0, read_widths(self.width)[1] - 1)
        if self.flank and self.alphabet == "protein":
            raise ValueError(f"flank is for DNA and RNA; leave it out for protein, got flank={shorten(self.flank)}")
        if self.resume and self.checkpoint is None:
            raise ValueError("resume=True needs checkpoint=path, the file to resume from")

    def check_learned(self) -> None:
        super().check_learned()
        n = whole_number("n_motifs", self.schema_.blocks.get("motif", (0,))[0], 1, MOST_MOTIFS)
        make_problem(self, n, self.width_).check_schema(self.schema_)
        table(self.schema_.n_params)("coef_", self.coef_)
        table(count_kmer_columns(count_strands(self), self.letters_))("kmer_weights_", self.kmer_weights_)
        if self.classes_.shape != (2,):
            raise ValueError(f"classes_ must be two labels, got {shorten(self.classes_)}")
        for motif in self.motifs_:
            instance(FoundMotif, "a list of motifs")("motifs_", motif)
        order = self.motif_order_
        if order.size != len(self.motifs_) or not ((order >= 0) & (order < n)).all():
            raise ValueError(f"motif_order_ must be the indices of {len(self.motifs_)} motifs, got {shorten(order)}")


def choose_composition(alphabet: str, has_negatives: bool) -> int:
    """Letters of the longest k-mers of the composition; for protein 1, because there are 400 pairs."""
    if alphabet == "protein":
        return 1
    return LONGEST_SHARE if has_negatives else LONGEST_SHARE_OF_SHUFFLES


def read_classes(X: Any, y: Any, seed: int, alphabet: Alphabet = DNA) -> tuple[Ragged, Array, Array]:
    """Letter codes, which sequences are positive, and the two labels. Shards are read into memory.

    Without labels all are positive, and shuffles follow as negatives (`tacit.dna.sequences.shuffle`).

    >>> sequences, is_positive, classes = read_classes(["ACGTTG", "CCAGTA"], None, seed=0)
    >>> len(sequences), is_positive.tolist(), classes.tolist()
    (4, [True, True, False, False], [-1, 1])
    """
    sequences = read_sequences(load_letters(X) if isinstance(X, Shards) else X, alphabet)
    if y is None:
        shuffled = shuffle(sequences, seed, alphabet)
        offsets = np.concatenate([sequences.offsets, sequences.offsets[-1] + shuffled.offsets[1:]])
        both = Ragged(np.concatenate([sequences.values, shuffled.values]), offsets)
        return both, np.arange(len(both)) < len(sequences), np.array([-1, 1])
    classes = MotifSites(1, 1, alphabet=alphabet.name).schema(sequences, y).classes
    return sequences, np.asarray(y) == classes[1], classes


def check_enough(is_positive: Array, is_held_out: Array) -> None:
    """Refuse classes that are too small to learn and test."""
    for kind, name in ((True, "positive"), (False, "negative")):
        n = int((is_positive == kind).sum())
        if n < LEAST_SEQUENCES:
            raise ValueError(f"X has {n} {name} sequences; {LEAST_SEQUENCES} or more are needed to learn and test")
        if np.unique(is_held_out[is_positive == kind]).size < 2:
            raise ValueError(f"the {name} sequences are copies of each other; give others to learn and test")
