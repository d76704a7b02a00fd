"""Samples that are tables of feature rows: bags of candidates, sequences of tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.arrays import first_non_finite, locate
from tacit.data.ragged import Ragged
from tacit.data.shards import Shards


def read_ragged(X: Any, sample: str, row: str) -> Ragged:
    """Check samples of at least one row each, finite numbers throughout; errors use the words ``sample`` and ``row``.

    >>> read_ragged([[[1, 2]], [[3, 4], [5, 6]]], "bag", "candidate")
    Ragged(2 samples, 1–2 rows each; 3 × 2 float64)
    """
    samples = Ragged.of(X)
    if len(samples) == 0:
        raise ValueError(f"no {sample}s: X holds 0 samples, a minimum of 1 is required")
    if samples.values.ndim == 1 and samples.values.size and isinstance(samples.values[0], dict):
        raise ValueError(
            f"{row}s are dicts of features, and numbers are needed; put a vectoriser in front: "
            "make_pipeline(Ragged.map(DictVectorizer()), model)"
        )
    if samples.values.ndim != 2:
        raise ValueError(
            f"a {row} is a vector of numbers, these {sample}s have rows of shape {samples.values.shape[1:]}; for a "
            f"single {sample} pass [{sample}], and {sample}.reshape(-1, 1) makes numbers into {row}s"
        )
    empty = np.flatnonzero(samples.lengths == 0)
    if empty.size:
        raise ValueError(f"{sample} {empty[0]} has 0 {row}s; drop it or give it one")
    if samples.values.shape[1] == 0:
        raise ValueError(f"{row}s have 0 feature(s) while a minimum of 1 is required")
    if samples.dtype not in (np.float64, np.float32):
        if samples.dtype.kind not in "biuf":
            raise ValueError(f"{row}s hold {samples.dtype}, not numbers; encode them first (DictVectorizer, say)")
        kind = np.float32 if samples.dtype == np.float16 else np.float64
        samples = samples.with_values(samples.values.astype(kind))
    place = first_non_finite(samples.values)
    if place:
        i, t = locate(samples.offsets, place[0])
        raise ValueError(
            f"X contains NaN or infinity: {samples.values[place]} in {sample} {i}, {row} {t}, "
            f"feature {place[1]}; drop the {row} or fill the gap"
        )
    return samples


def read_shards(shards: Shards, sample: str, row: str) -> Shards:
    """Check shards of samples of several rows: files as they were written, finite numbers, no empty sample."""
    if shards.manifest.kind != "bags":
        held = "a table" if shards.is_table else "letters"
        raise ValueError(f"these shards hold {held}, and {sample}s are needed; write them with Ragged.to_shards")
    empty = np.flatnonzero(shards.lengths == 0)
    if empty.size:
        raise ValueError(f"{sample} {empty[0]} has 0 {row}s; drop it or give it one")
    return _checked(shards, row)


def read_table_shards(shards: Shards) -> Shards:
    """Check shards of a table: files as they were written, finite numbers."""
    if not shards.is_table:
        raise ValueError(
            f"these shards hold {shards.manifest.kind}, and one row per sample is needed; write them with Shards.write"
        )
    return _checked(shards, "row")


def _checked(shards: Shards, row: str) -> Shards:
    if shards.values.shape[1] == 0:
        raise ValueError(f"{row}s have 0 feature(s) while a minimum of 1 is required")
    shards.verify()
    return shards
