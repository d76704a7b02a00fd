"""Several DNA motifs, each at most once per sequence, beside the composition of sequences."""

from __future__ import annotations

import itertools
from typing import Any, Self

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import whole_number
from tacit.data.specs import choice, estimator, parameter, whole
from tacit.dna.kmers import COMPOSITION_SCALE, count_shares
from tacit.dna.motif.hidden import NO_SITE, SiteLayout, read_sites, site_shape
from tacit.dna.motif.problem import SequenceProblem, label_loss, mean_feature
from tacit.dna.motif.site_oracle import SiteOracle
from tacit.dna.sequences import ALPHABETS, Alphabet, read_sequences
from tacit.oracle import Example, Schema
from tacit.oracle.losses import read_costs

LONGEST_SHARE = 5
"""Letters of the longest k-mer of the composition, at most: there are then 4⁵ and more shares per sequence."""

MOST_MOTIFS = 8
"""Motifs in one model, at most."""


@estimator
class MotifSites(SequenceProblem):
    """Positive sequences may hold sites of several motifs; the composition of sequences counts beside them.

    A model has ``n_motifs`` motifs, each with at most one site per sequence. ``Ψ(x, positive, h)`` has the letters of
    every site (zeros for a motif without one), the composition, and a 1 for the intercept; ``Ψ(x, negative)`` is zero.
    The composition has the share of every k-mer of 1 to ``composition`` letters, standardised
    (`tacit.dna.kmers.standard_shares`); with both strands a k-mer and its reverse complement are one. So, unlike in
    `Motif`, composition does not have to be explained by motifs, and positives may lack a motif. This is what
    `tacit.apps.MotifFinder` learns.

    The hidden value is the start of the site, with both strands an array (n, 2) of start and strand (0 as written, 1
    reverse complement). It is −1 for negatives and where it is unknown, and −2 for a motif without a site. With several
    motifs the shape is (n, n_motifs) or (n, n_motifs, 2). Starts count from ``overhang`` letters before the sequence.
    Sequences are given as in `Motif`. O(letters · n_motifs · strands · ⌈width / 5⌉) per pass.

    Parameters
    ----------
    width : length of a motif
    composition : letters of the longest k-mer of the composition, 1 to 5
    strands : "one" or "both"
    n_motifs : number of motifs, 1 to 8
    overhang : letters of a site that may lie outside its sequence, at either end; they count as N
    alphabet : "dna"; "rna" or "protein" for sequences that are read in one direction
    loss : "0/1", or a cost matrix ``loss[true, predicted]`` in the order of the classes
    classes : [negative, positive]; None takes those of y, sorted (as numbers where possible), the second is positive

    >>> from tacit import StructuredSVM
    >>> from tacit.datasets import planted_motif
    >>> X, y, start = planted_motif(200, 30, "TGACTCA", seed=0)
    >>> model = StructuredSVM(MotifSites(width=7), C=100).fit(X, y, hidden=start)
    >>> "".join("ACGT"[i] for i in model.weights_["motif"][0].argmax(axis=1))
    'TGACTCA'
    >>> model.predict(["ccccctgactcacccc", "cccccccccccccccc"]), model.predict_hidden(["ccccctgactcacccc"])
    (array([ 1, -1]), array([5]))
    """

    longest_kmer = "composition"

    width: int = parameter(whole())
    composition: int = parameter(whole(1, LONGEST_SHARE, remedy="w has 4^composition weights and more"), default=3)
    strands: str = parameter(choice("one", "both"), default="one")
    n_motifs: int = parameter(whole(1, MOST_MOTIFS), default=1)
    overhang: int = parameter(whole(0), default=0)
    alphabet: str = parameter(choice(*ALPHABETS), default="dna")
    loss: Any = "0/1"
    classes: Any = None

    def check(self) -> None:
        super().check()
        if self.alphabet != "dna" and self.strands != "one":
            raise ValueError(f"alphabet={self.alphabet!r} is read in one direction; set strands='one'")
        whole_number("overhang", self.overhang, 0, int(self.width) - 1)

    def blocks(self) -> dict[str, tuple[int, ...]]:
        layout = self._layout()
        size = ALPHABETS[self.alphabet].size
        n_shares = count_shares(layout.longest, layout.strands, size)
        return {"motif": (layout.n_motifs, layout.width, size), "composition": (n_shares,), "intercept": (1,)}

    def shortest(self) -> tuple[int, str]:
        return int(self.width) - int(self.overhang), "overhang"

    def check_loss(self, classes: Array) -> None:
        read_costs(self.loss, classes)

    def bind(self, X: Any, y: Any, schema: Schema, *, hidden: Any = None) -> SiteOracle:
        sequences = self.ensure_read(X)
        self.check_schema(schema)
        layout = self._layout()
        supervision = {} if y is None else self.read_supervision(y, schema, len(sequences))
        if hidden is not None:
            sizes = 1 + layout.strands * layout.count_starts(sequences.lengths)
            supervision["hidden"] = read_sites(hidden, sizes, layout, supervision.get("labels"), schema.classes)
        return SiteOracle(sequences, schema, layout, alphabet=ALPHABETS[self.alphabet], **supervision)

    def _read_letters(self, X: Any) -> Any:
        return read_sequences(X, ALPHABETS[self.alphabet])

    def _layout(self) -> SiteLayout:
        sizes = self.width, self.composition, self.n_strands, self.n_motifs, self.overhang
        return SiteLayout(*map(int, sizes))

    def example(self, rng: np.random.Generator) -> Example:
        layout = self._layout()
        classes = np.array(["-1", "1"] if self.classes is None else self.classes)
        lengths = layout.width + rng.integers(0, 2, int(rng.integers(3, 5)))
        alphabet = ALPHABETS[self.alphabet]
        plain, mixed = ("ACGTacgtu", "NRy") if alphabet.size == 4 else (alphabet.letters + "acU", "BZj")
        X = np.array(["".join(rng.choice(list(plain), length)) for length in lengths])
        X[0] = X[0][:1] + rng.choice(list(mixed)) + X[0][2:]
        y = np.concatenate([classes, rng.choice(classes, len(X))])[: len(X)]
        schema = self.schema(X, y)

        def list_sites(x: Any) -> list[Any]:
            starts = range(layout.count_starts(len(x)))
            if layout.strands == 1:
                return [NO_SITE, *starts]
            return [(NO_SITE, NO_SITE), *((h, s) for h in starts for s in (0, 1))]

        def outputs(x: Any) -> list[tuple[Any, Any]]:
            one = -1 if layout.strands == 1 else (-1, -1)
            if layout.n_motifs == 1:
                return [(classes[0], one), *((classes[1], site) for site in list_sites(x))]
            several = itertools.product(list_sites(x), repeat=layout.n_motifs)
            return [(classes[0], (one,) * layout.n_motifs), *((classes[1], combination) for combination in several)]

        def joint_feature(x: Any, label: Any, h: Any) -> Array:
            if label == classes[0]:
                return np.zeros(schema.n_params)
            sites = np.asarray(h).reshape(layout.n_motifs, layout.strands)
            return mean_feature(x, lambda letters: _feature(letters, sites, layout, schema, alphabet), alphabet)

        chosen = [list_sites(x)[int(rng.integers(len(list_sites(x))))] for x in X for _ in range(layout.n_motifs)]
        hidden = np.array(chosen).reshape(len(X), *site_shape(layout))
        hidden[y == classes[0]] = -1
        return Example(X, y, hidden, outputs, joint_feature, label_loss(self.loss, classes))

    @classmethod
    def variants(cls) -> list[Self]:
        return [
            cls(3, composition=2, strands="both", overhang=1),
            cls(3, composition=1, overhang=1, alphabet="protein"),
            cls(2, composition=1, n_motifs=2, overhang=1, loss=[[0, 3], [0.5, 0]], classes=["b", "a"]),
        ]


def _feature(x: str, sites: Array, layout: SiteLayout, schema: Schema, alphabet: Alphabet) -> Array:
    """Ψ of a positive sequence of plain letters; a letter outside it is an equal part of each."""
    psi = np.zeros(schema.n_params)
    blocks = schema.views(psi)
    size, plain = alphabet.size, alphabet.letters
    letters = np.full((len(x) + 2 * layout.overhang, size), 1 / size)
    letters[layout.overhang : layout.overhang + len(x)] = np.eye(size)[[plain.index(letter) for letter in x]]
    for motif, (start, *strand) in zip(blocks["motif"], sites.tolist(), strict=True):
        if start != NO_SITE:
            window = letters[start : start + layout.width]
            motif += window[::-1, ::-1] if strand == [1] else window
    shares = []
    for length in range(1, layout.longest + 1):
        seen = [x[p : p + length] for p in range(len(x) - length + 1)]
        for kmer in map("".join, itertools.product(plain, repeat=length)):
            twin = kmer[::-1].translate(str.maketrans("ACGT", "TGCA"))
            if layout.strands == 2 and twin < kmer:
                continue
            alike = {kmer, twin} if layout.strands == 2 else {kmer}
            chance = len(alike) / size**length
            excess = sum(other in alike for other in seen) - len(seen) * chance
            shares.append(excess / np.sqrt(max(len(seen), 1) * chance * (1 - chance)) / COMPOSITION_SCALE)
    blocks["composition"][:] = shares
    blocks["intercept"][0] = 1.0
    return psi
