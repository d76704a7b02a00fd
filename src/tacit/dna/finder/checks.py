"""What a motif finder refuses: parameters before any work, and learned attributes that no fit could have made."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.arrays import is_table
from tacit.data.parameters import is_positive, number, one_of, shorten, switch, whole_number
from tacit.dna.finder.kmers import count_words
from tacit.dna.finder.settings import MOST_MOTIFS, check_flank, count_strands, make_problem, read_widths
from tacit.dna.finder.shapes import FoundMotif
from tacit.oracle import Schema
from tacit.runtime import Status
from tacit.runtime.deadline import Deadline


def check_settings(finder: Any) -> None:
    """Refuse invalid parameters of a finder."""
    longest = read_widths(finder.width)[1]
    if not isinstance(finder.n_motifs, str) or finder.n_motifs != "auto":
        whole_number("n_motifs", finder.n_motifs, 1, MOST_MOTIFS, remedy='or "auto"')
    one_of("learner", finder.learner, ("logistic", "latent svm"))
    if not isinstance(finder.C, str) or finder.C != "auto":
        number("C", finder.C, "a number above 0 or 'auto'", is_positive)
    one_of("strands", finder.strands, ("both", "one"))
    whole_number("overhang", finder.overhang, 0, longest - 1)
    check_flank(finder.flank)
    switch("motif_only", finder.motif_only)
    number("held_out", finder.held_out, "a share between 0.1 and 0.9", lambda share: 0.1 <= share <= 0.9)
    number("alpha", finder.alpha, "a probability above 0", lambda alpha: 0 < alpha < 1)
    if switch("resume", finder.resume) and finder.checkpoint is None:
        raise ValueError("resume=True needs checkpoint=path: there is no file to resume from")
    Deadline(finder.time_budget)


def check_fitted(finder: Any) -> None:
    """Refuse a finder, read from a file, whose learned attributes are missing or do not fit each other."""
    model = ("schema_", "coef_", "width_", "C_", "composition_", "motifs_", "classes_", "blend_")
    words = ("kmer_weights_", "kmer_intercept_", "length_area_", "motif_order_", "status_")
    missing = [name for name in (*model, *words) if not hasattr(finder, name)]
    if missing:
        raise ValueError(f"{missing[0]} is missing; a fitted MotifFinder has it")
    whole_number("width_", finder.width_, 1, 100)
    whole_number("composition_", finder.composition_, 1, 5)
    if not isinstance(finder.schema_, Schema):
        raise ValueError(f"schema_ is {shorten(finder.schema_)}, no Schema")
    finder.schema_.check()
    n = finder.schema_.blocks.get("motif", (0,))[0]
    make_problem(finder, whole_number("n_motifs", n, 1, MOST_MOTIFS), finder.width_).check_schema(finder.schema_)
    n_words = count_words(count_strands(finder))
    for name, size in (("coef_", finder.schema_.n_params), ("kmer_weights_", n_words), ("blend_", 3)):
        values = getattr(finder, name)
        if not is_table(values, 1, "f") or values.shape != (size,):
            raise ValueError(f"{name} is {shorten(values)}, not {size} finite numbers")
    number("kmer_intercept_", finder.kmer_intercept_, "a number")
    number("length_area_", finder.length_area_, "a number from 0 to 1", lambda area: 0 <= area <= 1)
    if not isinstance(finder.classes_, np.ndarray) or finder.classes_.shape != (2,):
        raise ValueError(f"classes_ is {shorten(finder.classes_)}, not two labels")
    _check_motifs(finder, n)
    if not isinstance(finder.status_, Status):
        raise ValueError(f"status_ is {shorten(finder.status_)}, no Status")


def _check_motifs(finder: Any, n_motifs: int) -> None:
    """Refuse descriptions that are none, and an order that is none of theirs."""
    if not isinstance(finder.motifs_, list) or not all(isinstance(motif, FoundMotif) for motif in finder.motifs_):
        raise ValueError("motifs_ is no list of motifs")
    order, n = finder.motif_order_, len(finder.motifs_)
    if not is_table(order, 1, "iu") or order.size != n or not ((order >= 0) & (order < n_motifs)).all():
        raise ValueError(f"motif_order_ is {shorten(order)}, not the places of {n} motifs")
    for motif in finder.motifs_:
        motif.check()
