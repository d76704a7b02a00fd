"""Models of sites by their definition, letter by letter: what the common tests compare with."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.dna.letters import MEANING
from tacit.dna.motif.sites import NO_SITE, SiteLayout
from tacit.dna.words import COMPOSITION_SCALE
from tacit.oracle import Example, Schema
from tacit.problems.shared.costs import read_costs


def site_example(problem: Any, layout: SiteLayout, rng: np.random.Generator) -> Example:
    """A few short sequences, one with a letter that stands for several bases, and all outputs of each."""
    classes = np.array(["-1", "1"] if problem.classes is None else problem.classes)
    lengths = layout.width + rng.integers(0, 2, int(rng.integers(3, 5)))
    X = np.array(["".join(rng.choice(list("ACGTacgtu"), length)) for length in lengths])
    X[0] = X[0][:1] + rng.choice(list("NRy")) + X[0][2:]
    y = np.concatenate([classes, rng.choice(classes, len(X))])[: len(X)]
    schema = problem.schema(X, y)
    costs = read_costs(problem.loss, classes)

    def sites(x: Any) -> list[Any]:
        starts = range(layout.count_starts(len(x)))
        if layout.strands == 1:
            return [NO_SITE, *starts]
        return [(NO_SITE, NO_SITE), *((h, s) for h in starts for s in (0, 1))]

    def outputs(x: Any) -> list[tuple[Any, Any]]:
        one = -1 if layout.strands == 1 else (-1, -1)
        if layout.n_motifs == 1:
            return [(classes[0], one), *((classes[1], site) for site in sites(x))]
        several = itertools.product(sites(x), repeat=layout.n_motifs)
        return [(classes[0], (one,) * layout.n_motifs), *((classes[1], combination) for combination in several)]

    def joint_feature(x: Any, label: Any, h: Any) -> Array:
        if label == classes[0]:
            return np.zeros(schema.n_params)
        plain = itertools.product(*(MEANING[letter] for letter in str(x).upper().replace("U", "T")))
        places = np.asarray(h).reshape(layout.n_motifs, layout.strands)
        versions = [_feature("".join(letters), places, layout, schema) for letters in plain]
        return np.asarray(np.mean(versions, axis=0))

    def loss(true: Any, label: Any, h: Any) -> float:
        return float(costs[classes.tolist().index(true), classes.tolist().index(label)])

    chosen = [sites(x)[int(rng.integers(len(sites(x))))] for x in X for _ in range(layout.n_motifs)]
    shape = (len(X), *((layout.n_motifs,) if layout.n_motifs > 1 else ()), *((2,) if layout.strands == 2 else ()))
    hidden = np.array(chosen).reshape(shape)
    hidden[y == classes[0]] = -1
    return Example(X, y, hidden, outputs, joint_feature, loss)


def _feature(x: str, places: Array, layout: SiteLayout, schema: Schema) -> Array:
    """Ψ of a positive sequence of plain letters; a letter outside of it is a quarter of each base."""
    psi = np.zeros(schema.n_params)
    blocks = schema.views(psi)
    letters = np.full((len(x) + 2 * layout.overhang, 4), 0.25)
    letters[layout.overhang : layout.overhang + len(x)] = np.eye(4)[["ACGT".index(letter) for letter in x]]
    for motif, (start, *strand) in zip(blocks["motif"], places.tolist(), strict=True):
        if start != NO_SITE:
            window = letters[start : start + layout.width]
            motif += window[::-1, ::-1] if strand == [1] else window
    shares = []
    for length in range(1, layout.longest + 1):
        seen = [x[p : p + length] for p in range(len(x) - length + 1)]
        for word in map("".join, itertools.product("ACGT", repeat=length)):
            twin = word[::-1].translate(str.maketrans("ACGT", "TGCA"))
            if layout.strands == 2 and twin < word:
                continue
            alike = {word, twin} if layout.strands == 2 else {word}
            chance = len(alike) / 4**length
            excess = sum(other in alike for other in seen) - len(seen) * chance
            shares.append(excess / np.sqrt(max(len(seen), 1) * chance * (1 - chance)) / COMPOSITION_SCALE)
    blocks["composition"][:] = shares
    blocks["intercept"][0] = 1.0
    return psi
