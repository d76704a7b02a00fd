"""Shards: samples of the wrong kind, damaged files of a folder, loaders that fail."""

from __future__ import annotations

import numpy as np

from tacit import Ragged, Shards
from tests.fuzz.draws import Draw
from tests.fuzz.registry import target


@target("Shards")
def shards(draw: Draw):
    bags = Ragged(draw.rng.random((9, 2)), [0, 2, 5, 9])
    given = draw.spoil_some(
        {"folder": draw.folder / "bags", "X": draw.pick([bags, draw.rng.random((5, 3)), ["ACGT", "NUA"]])}
    )
    made = Shards.write(**given, shards=draw.spoil(2) if draw.chance(0.2) else draw.whole(1, 3))
    if draw.chance(0.5) and (draw.folder / "bags").is_dir():
        place = draw.pick(sorted((draw.folder / "bags").iterdir()))
        place.write_bytes(draw.corrupt(place.read_bytes()))
    source = draw.pick([draw.folder / "bags", [lambda: bags, lambda: bags], [lambda: np.ones((2, 2))], made])
    found = Shards.open(draw.spoil(source) if draw.chance(0.3) else source)
    found.verify()
    return float(len(found))
