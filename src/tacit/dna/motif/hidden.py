"""Known windows and sites of motifs as users write them: starts, pairs of start and strand, sets of them, masks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tacit.data.arrays import Array
from tacit.data.labels import is_missing
from tacit.data.parameters import is_list, plain_array, shorten
from tacit.oracle.contracts import KnownHidden
from tacit.oracle.known_hidden import from_masks, read_hidden, read_positions

NO_SITE = -2
"""The start of a motif without a site in the sequence; −1 means that the start is unknown."""


def read_windows(hidden: Any, starts: Array, strands: int, labels: Array | None, classes: Array) -> KnownHidden:
    """The states of starts (and strands) that a user knows; negatives have state 0.

    Parameters
    ----------
    hidden : per sample a start, or with two strands a pair of start and strand (−1: either); −1, None or NaN where it
        is unknown, and for negatives. If it is one of several: a list of starts (or pairs), an `AnyOf`, or a mask with
        one boolean per start (or per start and strand)
    starts : (n,) number of starts per sample
    labels : positions among the classes; None if they are unknown

    >>> read_windows([-1, 3, -1], np.array([5, 5, 5]), 1, np.array([0, 1, 1]), np.array(["free", "bound"])).states
    array([ 0,  3, -1])
    """
    n = starts.size
    if strands == 1:
        known = read_hidden(hidden, starts, "starts")
    elif np.shape(hidden if isinstance(hidden, np.ndarray) else _as_pairs(hidden)) == (n, 2):
        known = _read_pairs(plain_array(hidden), starts)
    else:
        known = _read_pair_sets(hidden, starts)
    if labels is None:
        return known
    is_open = known.states < 0
    if known.allowed is not None:
        firsts = strands * (np.cumsum(starts) - starts)
        is_open &= np.logical_and.reduceat(known.allowed, firsts)
    wrong = np.flatnonzero((labels == 0) & ~is_open)
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(
            f"hidden[{i}] must be -1, got {shorten(list(hidden)[i])}: sample {i} is {shorten(classes[0].item())}, the "
            f"negative class, which is without a motif; if it is positive, set classes={classes[::-1].tolist()}"
        )
    return known._replace(states=np.where(labels == 0, 0, known.states))


def _as_pairs(hidden: Any) -> Any:
    """Pairs as an array where every sample has one; else an array of another shape, or None."""
    try:
        table = plain_array(hidden)
        if table.dtype == object:
            table = np.array([np.nan if is_missing(v) else v for v in table.ravel()], np.float64).reshape(table.shape)
        return table.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def _read_pairs(given: Array, starts: Array) -> KnownHidden:
    """(n, 2) starts and strands, −1 for unknown ones."""
    given = read_positions(given, given.shape)
    start, strand = given.T
    wrong = np.flatnonzero((start < -1) | (start >= starts) | (strand < -1) | (strand > 1))
    if wrong.size:
        i = int(wrong[0])
        raise ValueError(
            f"hidden[{i}] is {given[i].tolist()}; sample {i} has starts 0 to {starts[i] - 1} and strands 0 and 1 "
            "(-1 if unknown)"
        )
    is_known = (start >= 0) & (strand >= 0)
    half = np.flatnonzero(~is_known & ((start >= 0) | (strand >= 0)))
    states = np.where(is_known, 2 * start + strand, -1)
    if not half.size:
        return KnownHidden(states)
    masks: list[Array | None] = [None] * starts.size
    for i in np.flatnonzero(is_known).tolist():
        masks[i] = np.arange(2 * starts[i]) == states[i]
    for i in half.tolist():
        states_of = np.arange(2 * starts[i])
        masks[i] = states_of // 2 == start[i] if start[i] >= 0 else states_of % 2 == strand[i]
    return from_masks(masks, 2 * starts)


def _read_pair_sets(hidden: Any, starts: Array) -> KnownHidden:
    """Per sample a pair, unknown (−1, None), or several pairs or a mask."""
    n = starts.size
    is_numbers = isinstance(hidden, np.ndarray) and hidden.dtype != object
    entries = [] if is_numbers or not is_list(hidden) else list(hidden)
    if len(entries) != n or not any(is_list(entry) for entry in entries):
        raise ValueError(
            f"hidden has shape {hidden.shape if is_numbers else (len(entries),)} for {n} samples; give a start and a "
            "strand (0 or 1) each, shape (n, 2), -1 for unknown and negatives"
        )
    masks: list[Array | None] = []
    for i, entry in enumerate(entries):
        values = _as_positions(entry)
        if values.dtype.kind == "b" and values.shape in ((starts[i],), (starts[i], 2)):
            masks.append(np.repeat(values, 2) if values.ndim == 1 else values.ravel())
        elif values.ndim == 0 and values.dtype.kind in "iuf" and values == -1:
            masks.append(None)
        elif values.dtype.kind in "iu" and values.size and values.shape[-1] == 2 and values.ndim <= 2:
            known = [_read_pairs(pair[None], starts[i : i + 1]) for pair in np.atleast_2d(values)]
            masks.append(np.logical_or.reduce([_mask_of(one, 2 * int(starts[i])) for one in known]))
        else:
            raise ValueError(
                f"hidden[{i}] is {shorten(entry)}; give a start and a strand (0 or 1), -1 if unknown, a list of pairs, "
                f"or a mask of {starts[i]} starts"
            )
    return from_masks(masks, 2 * starts)


def _as_positions(entry: Any) -> Array:
    """An entry as an array, −1 where it is missing; an empty array where that fails."""
    try:
        return np.asarray(-1 if is_missing(entry) else list(entry) if is_list(entry) else entry)
    except ValueError:
        return np.empty(0)


def _mask_of(known: KnownHidden, size: int) -> Array:
    """Which states of a single sample are possible."""
    if known.states[0] >= 0:
        return np.asarray(np.arange(size) == known.states[0])
    return np.ones(size, dtype=bool) if known.allowed is None else known.allowed


class SiteLayout(NamedTuple):
    """The sizes of a model of sites: letters of a motif (``width``) and of the longest k-mer, strands (1 or 2), motifs,
    and letters of a site that may lie outside its sequence (``overhang``)."""

    width: int
    longest: int
    strands: int
    n_motifs: int
    overhang: int

    def count_starts(self, lengths: Any) -> Any:
        return lengths + 2 * self.overhang - self.width + 1


def read_sites(hidden: Any, sizes: Array, layout: SiteLayout, labels: Array | None, classes: Array) -> Array:
    """(n, motifs) states of starts (and strands) that a user knows; −1 where unknown, 0 for negatives.

    Parameters
    ----------
    hidden : (n,) starts, with two strands (n, 2) starts and strands; with several motifs one more axis after the first.
        A start is −1 where it is unknown, and `NO_SITE` in a sequence without a site of the motif
    sizes : (n,) states per sequence
    labels : positions among the classes; None if they are unknown
    """
    shape = (sizes.size, *site_shape(layout))
    given = read_positions(hidden, shape).reshape(sizes.size, layout.n_motifs, -1)
    start = given[..., 0]
    strand = given[..., 1] if layout.strands == 2 else np.zeros_like(start)
    last = (sizes[:, None] - 1) // layout.strands - 1
    is_site = start >= 0
    wrong = (start < NO_SITE) | (start > last) | (is_site & ((strand < 0) | (strand > 1)))
    if wrong.any():
        i = int(np.argwhere(wrong)[0, 0])
        raise ValueError(
            f"hidden[{i}] is {shorten(given[i].tolist())}; sample {i} has starts 0 to {int(last[i, 0])}"
            f"{' and strands 0 and 1' if layout.strands == 2 else ''} (-1 if unknown, {NO_SITE} without a site)"
        )
    states = np.where(is_site, 1 + start * layout.strands + strand, np.where(start == NO_SITE, 0, -1))
    if labels is None:
        return states
    has_sites = (labels == 0) & (states >= 0).any(axis=1)
    if has_sites.any():
        i = int(np.argmax(has_sites))
        raise ValueError(
            f"hidden[{i}] must be -1, got {shorten(given[i].tolist())}: sample {i} is {shorten(classes[0].item())}, "
            "the negative class, which is without sites"
        )
    return np.where((labels == 0)[:, None], 0, states)


def write_sites(states: Array, layout: SiteLayout) -> Array:
    """The inverse of `read_sites` for known states."""
    start, strand = np.divmod(states - 1, layout.strands)
    pairs = np.stack([start, strand], axis=-1) if layout.strands == 2 else start[..., None]
    pairs = np.where((states == 0)[..., None], NO_SITE, pairs)
    return pairs.reshape(len(states), *site_shape(layout))


def site_shape(layout: SiteLayout) -> tuple[int, ...]:
    """The shape of the hidden value of one sequence."""
    motifs = (layout.n_motifs,) if layout.n_motifs > 1 else ()
    return (*motifs, 2) if layout.strands == 2 else motifs
