"""The motifs found so far in a file, so that a search that was cut off goes on from there to the same result."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.parameters import is_positive, whole_number
from tacit.data.ragged import Ragged
from tacit.dna.finder.settings import MOST_MOTIFS, make_problem, read_widths
from tacit.oracle.digests import checksum
from tacit.runtime.checkpoint import Checkpoint, stored, stored_number

COMPARED = ("width", "n_motifs", "learner", "C", "strands", "overhang", "flank", "held_out", "alpha")
"""Settings of a finder that must be the same for a search to be resumed."""


def open_checkpoint(search: Any) -> Checkpoint | None:
    """The file that the finder of a search asks for, if it does."""
    finder = search.finder
    if finder.checkpoint is None:
        return None
    fingerprint = {
        "sequences and labels": checksum(search.sequences.values, search.sequences.offsets, search.is_positive),
        "seed": search.seed,
        **{name: repr(getattr(finder, name)) for name in COMPARED},
    }
    return Checkpoint(finder.checkpoint, fingerprint, bool(finder.resume), every_step=True)


def keep_motifs(keeper: Checkpoint, search: Any) -> None:
    """Write the motifs of a search."""
    keeper.write(
        {
            "width": search.width,
            "C": search.C,
            "w": search.w,
            "before": np.zeros(0) if search.before is None else search.before,
            "p_values": np.array(search.p_values),
            "agreement": np.array(search.agreement),
            "n_tested": search.n_tested,
        }
    )


def restore_motifs(keeper: Checkpoint, search: Any, own: Ragged, labels: Any) -> bool:
    """Give a search the motifs of the file; False if there are none to resume from."""
    saved = keeper.read()
    if saved is None:
        return False
    with keeper.restoring():
        n = whole_number("the number of motifs", np.asarray(saved["p_values"]).size, 1, MOST_MOTIFS)
        search.p_values = stored(saved, "p_values", (n,)).tolist()
        search.agreement = stored(saved, "agreement", (n,)).tolist()
        low, high = read_widths(search.finder.width)
        search.width = int(stored_number(saved, "width", low))
        search.C = stored_number(saved, "C", 0.0)
        if not (search.width <= high and is_positive(search.C)):
            raise ValueError(f"width {search.width} and C {search.C} are none that were asked for")
        search.schema = make_problem(search.finder, n, search.width).schema(own, labels)
        search.w = stored(saved, "w", (search.schema.n_params,))
        if n > 1:
            schema = make_problem(search.finder, n - 1, search.width).schema(own, labels)
            search.before = stored(saved, "before", (schema.n_params,))
        search.n_tested = int(stored_number(saved, "n_tested", n))
        search.history = [[] for _ in search.p_values]
    return True
