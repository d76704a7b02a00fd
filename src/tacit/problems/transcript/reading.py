"""Transcripts and what is known of their timing, as users write them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.labels import find_labels, read_listed
from tacit.data.parameters import entries, has_length, is_whole, shorten
from tacit.data.ragged import Ragged
from tacit.problems.chain.tags import read_tags
from tacit.problems.transcript.automata import Layout


def read_transcripts(y: Any, n: int) -> tuple[Array, Array]:
    """The labels of all transcripts in one array, and where those of each begin.

    >>> read_transcripts([["one", "two"], ["six"]], 2)
    (array(['one', 'two', 'six'], dtype='<U3'), array([0, 2, 3]))
    """
    if y is None:
        raise ValueError("this learner requires y to be passed, but the target y is None")
    given: Any = y if isinstance(y, Ragged) else entries("y", y, "one list of labels per recording")
    if len(given) != n:
        raise ValueError(f"X has {n} recordings, y has {len(given)} transcripts; give one for each")
    if isinstance(y, Ragged):
        sizes = y.lengths
    else:
        given = [entries(f"y[{i}]", one, "a list of labels (a word is list('word'))") for i, one in enumerate(given)]
        sizes = np.array([len(one) for one in given], dtype=np.int64)
    if not sizes.all():
        i = int(np.argmin(sizes))
        raise ValueError(f"y[{i}] is empty, but a transcript has at least one label; leave the recording out")
    tags = read_tags(given, sizes)
    if tags.missing.any():
        i = int(np.searchsorted(np.cumsum(sizes), np.argmax(tags.missing), side="right"))
        raise ValueError(f"y[{i}] has a missing label; write the whole transcript, or leave the recording out")
    return tags.values, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def read_label_classes(classes: Any, labels: Array, offsets: Array) -> Array:
    """All labels: those the user lists (y must be among them), or those that occur in y, sorted."""
    if classes is None:
        found = np.unique(labels)
        if found.size < 2:
            raise ValueError(
                f"y has only one label, {shorten(found)}; add other transcripts, or list all labels with classes=[...]"
            )
        return found
    listed = read_listed(classes, "labels")
    unknown = np.flatnonzero(find_labels(listed, labels) < 0)
    if unknown.size:
        i = int(np.searchsorted(offsets, unknown[0], side="right")) - 1
        raise ValueError(
            f"y[{i}] has the label {shorten(labels[unknown[0]].item())}, which is not among "
            f"{shorten(listed.tolist())}; correct it, or list it in classes=[...]"
        )
    return listed


def read_lexicon(lexicon: Any, classes: Array) -> list[Array] | None:
    """The transcripts that may be predicted, as positions of labels, each once."""
    if lexicon is None:
        return None
    lexicon = entries("lexicon", lexicon, "a list of transcripts")
    if not lexicon:
        raise ValueError("lexicon must be a list of transcripts with at least one, got []")
    try:
        flat, offsets = read_transcripts(lexicon, len(lexicon))
    except ValueError as error:
        raise ValueError(f"lexicon must be a list of transcripts: {error}".replace("y[", "lexicon[")) from error
    found = find_labels(classes, flat)
    if (found < 0).any():
        wrong = shorten(flat[np.argmin(found)].item())
        raise ValueError(f"lexicon has the label {wrong}, which is not among {shorten(classes.tolist())}")
    listed = [tuple(found[a:b].tolist()) for a, b in itertools.pairwise(offsets)]
    return [np.array(entry, dtype=np.int64) for entry in dict.fromkeys(listed)]


def check_lengths(layout: Layout, labels: Array, offsets: Array, frames: Array) -> None:
    """Refuse transcripts that need more frames than their recordings have."""
    repeats = np.zeros(labels.size, dtype=np.int64)
    if layout.n_per_label == 1:
        repeats[1:] = labels[1:] == labels[:-1]
        repeats[offsets[:-1]] = 0
        if repeats.any() and not layout.has_silence:
            i = int(np.searchsorted(offsets, np.argmax(repeats), side="right")) - 1
            raise ValueError(
                f"y[{i}] has a label twice in a row, and one state without silence cannot tell it from one label; "
                "use states=2, or silence=True"
            )
    needed = np.add.reduceat(layout.least_frames + repeats, offsets[:-1])
    short = np.flatnonzero(frames < needed)
    if short.size:
        i = int(short[0])
        raise ValueError(
            f"y[{i}] has {offsets[i + 1] - offsets[i]} labels, which take at least {needed[i]} frames with "
            f"states={layout.n_per_label} and skips={layout.skips}, but X[{i}] has {frames[i]}; use fewer states "
            "or more skips, or leave the recording out"
        )


def read_alignments(hidden: Any, layout: Layout, labels: Array, offsets: Array, frames: Array) -> tuple[Any, Any]:
    """Known states of frames, −1 where unknown, and windows of labels; None where nothing is known.

    An entry of ``hidden`` is None, a state per frame, or a pair (start, stop) of frames per label. There None stands
    for an unknown pair, and a pair of numbers in place of a start or stop for a time between the two.
    """
    hidden = entries("hidden", hidden, f"a list with one alignment or None per recording ({frames.size})", frames.size)
    cuts = np.concatenate([[0], np.cumsum(frames)])
    states, windows = np.full(int(cuts[-1]), -1, dtype=np.int64), np.full((labels.size, 4), -1, dtype=np.int64)
    for i, own in enumerate(hidden):
        if own is None or (is_whole(own) and own == -1):
            continue
        if not has_length(own) or isinstance(own, str | bytes | dict):
            raise ValueError(f"hidden[{i}] must be a state per frame or a pair of frames per label, got {shorten(own)}")
        if all(is_whole(one) for one in own):
            path = np.array([int(one) for one in own], dtype=np.int64)
            if path.size != frames[i]:
                raise ValueError(
                    f"hidden[{i}] has {path.size} states, but X[{i}] has {frames[i]} frames; give one each"
                )
            if path.size and not (path.min() >= -1 and path.max() < layout.n_states):
                wrong = path[(path < -1) | (path >= layout.n_states)][0]
                raise ValueError(
                    f"hidden[{i}] has the state {wrong}; give states from 0 to {layout.n_states - 1}, or -1"
                )
            states[cuts[i] : cuts[i + 1]] = path
            continue
        size = int(offsets[i + 1] - offsets[i])
        if len(own) != size:
            raise ValueError(f"hidden[{i}] has {len(own)} pairs of frames, but y[{i}] has {size} labels; give one each")
        windows[offsets[i] : offsets[i + 1]] = [_window(one, i, int(frames[i])) for one in own]
    return (states if (states >= 0).any() else None), (windows if (windows >= 0).any() else None)


def _window(pair: Any, i: int, size: int) -> tuple[int, int, int, int]:
    if pair is None:
        return -1, -1, -1, -1
    ends: list[int] = []
    if has_length(pair) and not isinstance(pair, str | bytes | dict) and len(pair) == 2:
        for one in pair:
            both = (one, one) if is_whole(one) else one
            if has_length(both) and len(both) == 2 and all(is_whole(part) for part in both):
                ends += [int(part) for part in both]
    if len(ends) != 4 or not (0 <= ends[0] <= ends[1] and ends[2] <= ends[3] <= size and ends[0] < ends[3]):
        raise ValueError(
            f"hidden[{i}] has {shorten(pair)}; give (start, stop) in frames from 0 to {size}, or None; a start or stop "
            "that is not known exactly is a pair (earliest, latest)"
        )
    return ends[0], ends[1], ends[2], ends[3]
