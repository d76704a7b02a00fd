"""Groups of weights by name, for the blocks of a schema."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import shorten

NAMED_GROUPS = ("auto", "label-state", "state", "feature")
"""Names of groups that `tacit.penalties.GroupNorm` knows."""


def name_groups(name: str, schema: Any) -> Array:
    """The groups of a name, for the blocks of a schema."""
    parts = []
    if name == "feature":
        return repeat_groups(np.arange(schema.n_features), schema)
    if name == "auto":
        return _rows_of_blocks(schema)
    for shape in schema.blocks.values():
        if len(schema.facts.get("states", ())) == 0 or shape[:2] != (len(schema.classes), len(schema.facts["states"])):
            raise ValueError(
                f"groups={name!r} needs weights of their own for every label and state, and there are the blocks "
                f"{shorten(dict(schema.blocks))}; use Transforms(..., blocks='class and state'), or give an array "
                "with the group of every weight"
            )
        K, T = shape[:2]
        table = np.arange(K * T).reshape(K, T) if name == "label-state" else np.tile(np.arange(T), (K, 1))
        parts.append(np.broadcast_to(table.reshape(K, T, *[1] * (len(shape) - 2)), shape).ravel())
    return np.concatenate(parts)


def _rows_of_blocks(schema: Any) -> Array:
    """A group for every row of a block; a block with one number for each row of another, intercepts, joins those."""
    first: dict[tuple[int, ...], Array] = {}
    parts, n = [], 0
    for shape in sorted(schema.blocks.values(), key=len, reverse=True):
        if shape not in first:
            rows = shape[:-1] if len(shape) > 1 else shape
            first.setdefault(rows, np.arange(n, n + int(np.prod(rows))).reshape(rows))
            n = max(n, int(first[rows].max()) + 1)
    for shape in schema.blocks.values():
        table = first[shape] if shape in first else first[shape[:-1]][..., None]
        parts.append(np.broadcast_to(table, shape).ravel())
    return np.unique(np.concatenate(parts), return_inverse=True)[1].ravel()


def repeat_groups(given: Array, schema: Any) -> Array:
    """The groups of features for every block of a schema; weights of no feature, intercepts, are one more group."""
    parts, rest = [], int(given.max()) + 1
    for shape in schema.blocks.values():
        has_features = len(shape) > 1 and shape[-1] == schema.n_features
        parts.append(np.broadcast_to(given if has_features else np.full(shape[-1], rest), shape).ravel())
    return np.concatenate(parts)
