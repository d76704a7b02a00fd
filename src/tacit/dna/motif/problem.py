"""DNA motifs: a short pattern somewhere in every positive sequence."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.utils import ClassifierTags

from tacit.data.arrays import Array
from tacit.data.labels import check_listed, find_labels, read_classes, read_labels
from tacit.data.parameters import shorten
from tacit.data.shards import Shards
from tacit.data.specs import choice, estimator, parameter, whole
from tacit.dna.motif.hidden import read_windows
from tacit.dna.motif.oracle import Layout, MotifOracle
from tacit.dna.sequences import DNA, Alphabet, check_letters, check_shard_letters, find_flipped, read_sequences
from tacit.oracle import Example, HiddenLoss, Problem, Schema
from tacit.oracle.losses import by_kind, class_losses, read_costs

LONGEST_KMER = 8


class SequenceProblem(Problem):
    """Sequences of two classes, the second of them positive: what `Motif` and `MotifSites` share."""

    width: Any
    strands: str
    loss: Any
    classes: Any

    reads_once = True
    longest_kmer: str
    """The name of the parameter with the length of the longest k-mer."""

    @abstractmethod
    def blocks(self) -> dict[str, tuple[int, ...]]:
        """The named blocks of w."""

    @abstractmethod
    def shortest(self) -> tuple[int, str]:
        """The length of the shortest sequence, and the parameter beside width on which it depends."""

    @abstractmethod
    def check_loss(self, classes: Array) -> None:
        """Refuse a loss that does not fit the classes."""

    def check(self) -> None:
        super().check()
        check_listed(self.classes)

    def check_schema(self, schema: Schema) -> None:
        self.check()
        super().check_schema(schema)
        if schema.blocks != self.blocks() or len(schema.classes) != 2:
            raise ValueError(
                f"{self._show(self.longest_kmer)} do not match the fit: it has {len(schema.classes)} classes and "
                f"weights of the shapes {shorten(schema.blocks)}; fit again"
            )
        self.check_loss(schema.classes)

    def read(self, X: Any) -> Any:
        self.check()
        sequences = self._read_letters(X)
        shortest, other = self.shortest()
        short = np.flatnonzero(sequences.lengths < shortest)
        if short.size:
            i = int(short[0])
            raise ValueError(
                f"sequence {i} has {sequences.lengths[i]} letters; {self._show(other)} need {shortest} or more: drop "
                f"it ({short.size} are too short) or lower width"
            )
        return sequences

    def _read_letters(self, X: Any) -> Any:
        return read_sequences(X)

    def _show(self, other: str) -> str:
        return f"width={self.width} and {other}={getattr(self, other)}"

    def schema(self, X: Any, y: Any) -> Schema:
        sequences = self.ensure_read(X)
        classes = read_classes(self.classes, y, len(sequences))
        if len(classes) != 2:
            raise ValueError(
                f"{type(self).__name__} needs two classes, negative and positive, got {len(classes)}: "
                f"{classes.tolist()}; merge some, or fit one model per class"
            )
        if self.classes is None:
            classes = _sort_as_numbers(classes)
        self.check_loss(classes)
        return Schema(classes, 1, self.blocks())

    def read_supervision(self, y: Any, schema: Schema, n: int) -> dict[str, Any]:
        """Positions of the labels among the classes (2 for a label unseen in training), and the losses of labels where
        these do not depend on hidden values."""
        found = find_labels(schema.classes, read_labels(y, n))
        labels = np.where(found < 0, 2, found)
        if _is_start_loss(self.loss):
            return {"labels": labels}
        return {"labels": labels, "losses": class_losses(self.loss, schema.classes, labels)}

    @property
    def n_strands(self) -> int:
        """1 or 2."""
        return 1 if self.strands == "one" else 2

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.classifier_tags = ClassifierTags(multi_class=False)
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags


def _check_features(name: str, features: Any) -> None:
    if isinstance(features, str) and features == "sites":
        raise ValueError("features='sites' is a problem of its own: use tacit.problems.MotifSites")
    choice("full", "literature")(name, features)


@estimator
class Motif(SequenceProblem):
    """Motif discovery: positive sequences hold a motif at a hidden start; negatives are background.

    This is the model of Yu & Joachims (2009).

    ``Ψ(x, positive, h)`` has the letters of the window ``x[h : h + width]``, one of four at each position (4·width
    numbers), and the counts of all k-mers of ``background`` letters, k for short (4^k numbers), except those that
    *start* inside the window. ``Ψ(x, negative)`` has the counts of all k-mers and no motif. Every window and k-mer of a
    sequence counts. Letters and k-mers are in the order A, C, G, T.

    With ``strands="both"`` the motif may also lie on the other strand: its letters are then those of the window's
    reverse complement. K-mers are counted on both strands too, each read in its own direction, so a sequence and its
    reverse complement are the same to the model, to the last bit.

    With ``features="literature"`` windows and k-mers are those of the code of Kumar, Packer & Koller (2010), so that
    objectives can be compared with those of the papers. K-mers start at 0 … L−k−1, and h runs over 0 … L−width−k−1: the
    end of a sequence is left out. With both strands k-mers are counted on the strand as written.

    The hidden value is the start; with both strands an array (n, 2) of start and strand (0 as written, 1 reverse
    complement). It is −1 for negatives, and where it is unknown. `MotifSites` has several motifs, each in some of the
    positives.

    Sequences are a list, array or column of strings; fixed-width arrays ('S', 'U') are read without Python objects.
    Case does not matter, and U is T. Other letters of the IUPAC code (N, R, Y, ...) stand for several bases: Ψ is then
    its mean over all sequences that they stand for, every base equally likely. O(letters · ⌈width / 5⌉) per pass.

    Parameters
    ----------
    width : length of the motif
    background : length k of the background k-mers, 1 to 8
    strands : "one" or "both"
    features : "full", or "literature" for the windows and k-mers of the papers
    loss : "0/1", a cost matrix ``loss[true, predicted]`` in the order of the classes, or "start". The last costs 1 for
        a wrong label; for the right one it costs the distance of the starts divided by the width, at most 1, and 1 on
        different strands. Where the true start is unknown, only the label counts
    classes : [negative, positive]; None takes those of y, sorted (as numbers where possible), the second is positive

    >>> from tacit import StructuredSVM
    >>> from tacit.datasets import planted_motif
    >>> X, y, start = planted_motif(200, 30, "TGACTCA", seed=0)
    >>> model = StructuredSVM(Motif(width=7), C=10).fit(X, y, hidden=start)
    >>> "".join("ACGT"[i] for i in model.weights_["motif"].argmax(axis=1))
    'TGACTCA'
    >>> model.predict(["ccccctgactcacccc", "cccccccccccccccc"]), model.predict_hidden(["ccccctgactcacccc"])
    (array([ 1, -1]), array([5]))
    """

    takes_shards = True
    has_smooth_start = True
    longest_kmer = "background"

    width: int = parameter(whole())
    background: int = parameter(whole(1, LONGEST_KMER, remedy="w has 4^background weights"), default=3)
    strands: str = parameter(choice("one", "both"), default="one")
    features: str = parameter(_check_features, default="full")
    loss: Any = "0/1"
    classes: Any = None

    @classmethod
    def from_old_parts(cls, n_motifs: int = 1, overhang: int = 0, **parts: Any) -> Problem:
        """The problem of a model file, also of one where `MotifSites` is called ``Motif(features="sites")``."""
        if parts.get("features") != "sites":
            return cls(**parts)
        from tacit.problems import MotifSites

        same = {name: parts[name] for name in ("width", "strands", "loss", "classes")}
        return MotifSites(composition=parts["background"], n_motifs=n_motifs, overhang=overhang, **same)

    @property
    def hidden_kinds(self) -> tuple[str, ...]:
        return ("start",) if self.strands == "one" else ("strand", "start")

    def blocks(self) -> dict[str, tuple[int, ...]]:
        return {"motif": (int(self.width), 4), "background": (4 ** int(self.background),)}

    def shortest(self) -> tuple[int, str]:
        return self._layout().shortest, "background"

    def _read_letters(self, X: Any) -> Any:
        return self._read_shards(X) if isinstance(X, Shards) else super()._read_letters(X)

    def _read_shards(self, shards: Shards) -> Shards:
        if shards.manifest.kind != "letters":
            held = "a table" if shards.is_table else shards.manifest.kind
            raise ValueError(f"these shards hold {held}; Motif needs sequences: Shards.write(folder, X)")
        shards.verify()
        if shards.is_here:
            check_shard_letters(shards)
        return shards

    def describe_rows(self, table: Any, offsets: Array) -> Array | None:
        """With both strands: which sequences come after their reverse complement in the alphabet."""
        if table.dtype != np.uint8:  # not letters: `read` refuses the shards
            return None
        check_letters(table, offsets)
        return find_flipped(table, offsets) if self.features == "full" and self.strands == "both" else None

    def bind(self, X: Any, y: Any, schema: Schema, *, hidden: Any = None) -> MotifOracle:
        sequences = self.ensure_read(X)
        self.check_schema(schema)
        layout = self._layout()
        starts = layout.count_starts(sequences.lengths)
        supervision = {} if y is None else self.read_supervision(y, schema, len(sequences))
        if _is_start_loss(self.loss):
            make = partial(start_loss, starts, layout)
            supervision["hidden_loss"] = make if y is None else make()
        if hidden is not None:
            labels = supervision.get("labels")
            supervision["hidden"] = read_windows(hidden, starts, layout.strands, labels, schema.classes)
        return MotifOracle(sequences, schema, layout, **supervision)

    def check_loss(self, classes: Array) -> None:
        if not _is_start_loss(self.loss):
            read_costs(self.loss, classes, ("start",))

    def _layout(self) -> Layout:
        return Layout(int(self.width), int(self.background), self.n_strands, self.features == "full")

    def example(self, rng: np.random.Generator) -> Example:
        classes = np.array(["-1", "1"] if self.classes is None else self.classes)
        layout = self._layout()
        lengths = layout.shortest + rng.integers(0, 3, int(rng.integers(3, 6)))
        X = np.array(["".join(rng.choice(list("ACGTacgtu"), length)) for length in lengths])
        X[0] = X[0][:1] + rng.choice(list("NnRyB")) + X[0][2:] if len(X[0]) > 1 else "N"
        y = np.concatenate([classes, rng.choice(classes, len(X))])[: len(X)]
        windows = [(h, s) for h in range(layout.count_starts(int(lengths.min()))) for s in (0, 1)]
        chosen = rng.choice(windows, len(X)) if self.strands == "both" else rng.choice([h for h, _ in windows], len(X))
        hidden = np.where(y == classes[1], chosen.T, -1).T

        def outputs(x: Any) -> list[tuple[Any, Any]]:
            starts = range(layout.count_starts(len(x)))
            if self.strands == "one":
                return [(classes[0], -1), *((classes[1], h) for h in starts)]
            return [(classes[0], (-1, -1)), *((classes[1], (h, s)) for h in starts for s in (0, 1))]

        def joint_feature(x: Any, label: Any, h: Any) -> Array:
            start, strand = (h, 0) if self.strands == "one" else h
            return mean_feature(x, lambda letters: self._feature(letters, int(start), int(strand)))

        loss = label_loss("0/1" if _is_start_loss(self.loss) else self.loss, classes)
        return Example(X, y, hidden, outputs, joint_feature, loss)

    def _feature(self, x: str, start: int, strand: int) -> Array:
        """Ψ of a sequence of A, C, G and T, by its definition; a start of −1 means background alone."""
        motif, background = np.zeros((self.width, 4)), np.zeros((4,) * self.background)
        window = range(start, start + self.width) if start >= 0 else range(0)
        letters = ["ACGT".index(x[p]) for p in window]
        for j, letter in enumerate(letters if strand != 1 else [3 - letter for letter in reversed(letters)]):
            motif[j, letter] += 1
        layout, k = self._layout(), self.background
        for p in range(len(x) - k + 1 if layout.is_full else len(x) - k):
            kmer = ["ACGT".index(letter) for letter in x[p : p + k]]
            if p not in window:
                background[tuple(kmer)] += 1
            if layout.is_symmetric and p + k - 1 not in window:  # it starts there on the other strand
                background[tuple(3 - letter for letter in reversed(kmer))] += 1
        return np.concatenate([motif.ravel(), background.ravel()])

    @classmethod
    def variants(cls) -> list[Self]:
        return [
            cls(2, background=1),
            cls(3, background=2, strands="both"),
            cls(6, background=1, loss=[[0, 3], [0.5, 0]], classes=["bound", "background"]),
            cls(1, background=3),
            cls(2, background=3, strands="both"),
            cls(2, background=2, features="literature"),
            cls(2, background=1, strands="both", features="literature"),
        ]


def _is_start_loss(loss: Any) -> bool:
    return isinstance(loss, str) and loss == "start"


def mean_feature(x: Any, feature: Callable[[str], Array], alphabet: Alphabet = DNA) -> Array:
    """The mean of Ψ over all sequences of plain letters that ``x`` stands for."""
    meanings = list(alphabet.meaning.values())
    plain = itertools.product(*(meanings[alphabet.codes[ord(letter)]] for letter in str(x)))
    return np.asarray(np.mean([feature("".join(letters)) for letters in plain], axis=0))


def label_loss(loss: Any, classes: Array) -> Callable[[Any, Any, Any], float]:
    """The loss of a predicted label, in the form that an `Example` needs."""
    costs, order = read_costs(loss, classes), classes.tolist()
    return lambda true, label, h: float(costs[order.index(true), order.index(label)])


def start_loss(starts: Array, layout: Layout) -> HiddenLoss:
    """The distance of two starts divided by the width, at most 1, and 1 on different strands. Sequences with as many
    starts share a table."""

    def table(i: int) -> Array:
        start, strand = np.divmod(np.arange(int(starts[i]) * layout.strands), layout.strands)
        distance = np.minimum(np.abs(start[:, None] - start[None]) / layout.width, 1.0)
        return np.where(strand[:, None] == strand[None], distance, 1.0)

    return by_kind((b"%d" % size for size in starts), table, lambda i: int(starts[i]) * layout.strands)


def _sort_as_numbers(classes: Array) -> Array:
    """Labels sorted as numbers where they can be read as such: as text "+1" comes before "-1".

    >>> _sort_as_numbers(np.array(["+1", "-1"]))
    array(['-1', '+1'], dtype='<U2')
    """
    if classes.dtype.kind not in "US":
        return classes
    try:
        return classes[np.argsort(classes.astype(np.float64), kind="stable")]
    except ValueError:
        return classes
