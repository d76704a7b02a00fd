"""Edit distance between transcripts, and the automaton that counts edits while a transcript is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel
from tacit.data.labels import kind_of_label
from tacit.data.parameters import has_length, shorten
from tacit.problems.transcript.automata import Layout, Segments, link

MAX_COLUMNS = 20_000
"""Columns of the edit distance per transcript: with all edits counted there may be three to the power of its length."""


def error_rate(y: Any, predicted: Any) -> float:
    """The edit distance of all transcripts, divided by the length of the true ones: the word error rate.

    Parameters
    ----------
    y : the true transcripts, lists of labels
    predicted : as many transcripts, of any lengths

    >>> error_rate([["one", "two", "two"], ["six"]], [["one", "two"], ["six"]])
    0.25
    """
    pairs = [_read_labels(name, given) for name, given in (("y", y), ("predicted", predicted))]
    true, found = pairs
    if len(true) != len(found):
        raise ValueError(f"y has {len(true)} transcripts, predicted has {len(found)}; give one for each")
    if not any(true):
        raise ValueError("all transcripts of y are empty, so the error rate is not defined")
    names = {
        label: number for number, label in enumerate(dict.fromkeys(label for one in true + found for label in one))
    }
    flat = [np.array([names[label] for one in side for label in one], dtype=np.int64) for side in pairs]
    cuts = [np.concatenate([[0], np.cumsum([len(one) for one in side])]).astype(np.int64) for side in pairs]
    return float(edit_distances(flat[0], cuts[0], flat[1], cuts[1]).sum() / flat[0].size)


def _read_labels(name: str, given: Any) -> list[list[Any]]:
    if isinstance(given, str | bytes | dict) or not has_length(given) or not len(given):
        raise ValueError(f"{name} must be a list of transcripts, got {shorten(given)}")
    found = []
    for i, one in enumerate(given):
        if isinstance(one, bytes | dict) or not (isinstance(one, str) or has_length(one)):
            raise ValueError(f"{name}[{i}] must be a list of labels, got {shorten(one)}")
        labels = one.tolist() if isinstance(one, np.ndarray) else list(one)
        wrong = [label for label in labels if not kind_of_label(label)] if isinstance(labels, list) else [labels]
        if wrong:
            raise ValueError(f"{name}[{i}] must hold whole numbers or strings, got {shorten(wrong[0])}")
        found.append(labels)
    return found


def align_labels(true: Sequence[Any], found: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Pairs (true, found) of a shortest edit of one transcript into the other, "" where one has no label.

    >>> align_labels(["one", "two", "six"], ["two", "six"])
    [('one', ''), ('two', 'two'), ('six', 'six')]
    """
    table = np.zeros((len(true) + 1, len(found) + 1), dtype=np.int64)
    table[:, 0], table[0] = np.arange(len(true) + 1), np.arange(len(found) + 1)
    for i, a in enumerate(true):
        for j, b in enumerate(found):
            table[i + 1, j + 1] = min(table[i, j] + (a != b), table[i, j + 1] + 1, table[i + 1, j] + 1)
    pairs, i, j = [], len(true), len(found)
    while i or j:
        if i and j and table[i, j] == table[i - 1, j - 1] + (true[i - 1] != found[j - 1]):
            i, j = i - 1, j - 1
            pairs.append((true[i], found[j]))
        elif i and table[i, j] == table[i - 1, j] + 1:
            i -= 1
            pairs.append((true[i], ""))
        else:
            j -= 1
            pairs.append(("", found[j]))
    return pairs[::-1]


def edit_distances(first: Array, first_starts: Array, second: Array, second_starts: Array) -> Array:
    """The least number of insertions, deletions and substitutions between two transcripts each (Levenshtein 1966).

    >>> edit_distances(np.array([0, 1]), np.array([0, 2]), np.array([1]), np.array([0, 1]))
    array([1])
    """
    found = np.empty(first_starts.size - 1, dtype=np.int64)
    fill_distances(first, first_starts, second, second_starts, found)
    return found


@kernel
def fill_distances(first: Array, first_starts: Array, second: Array, second_starts: Array, found: Array) -> None:
    longest = 0
    for i in range(first_starts.size - 1):
        longest = max(longest, first_starts[i + 1] - first_starts[i])
    row = np.empty(longest + 1, np.int64)
    for i in range(first_starts.size - 1):
        own = first[first_starts[i] : first_starts[i + 1]]
        for m in range(own.size + 1):
            row[m] = m
        for t in range(second_starts[i], second_starts[i + 1]):
            corner = row[0]
            row[0] += 1
            for m in range(own.size):
                change = corner + (0 if own[m] == second[t] else 1)
                corner = row[m + 1]
                row[m + 1] = min(change, corner + 1, row[m] + 1)
        found[i] = row[own.size]


def edit_segments(layout: Layout, transcript: Array, most: int) -> Segments:
    """The automaton of all transcripts with at least one label, whose end scores are their edits, at most ``most``.

    A segment is a label and the column of the edit distance after it: the distances of what is written so far to every
    prefix of the transcript, none above ``most`` (Schulz & Mihov 2002). So loss-augmented inference is exact.
    """
    n, size = layout.n_labels, transcript.size
    begin = tuple(min(m, most) for m in range(size + 1))
    columns = {begin: 0}
    steps: list[list[int]] = []
    own_labels = set(transcript.tolist())
    queue = [begin]
    while len(steps) < len(queue):
        now = queue[len(steps)]
        found = {label: _write(now, transcript, label, most) for label in (*own_labels, -1)}
        for new in found.values():
            if new not in columns:
                columns[new] = len(queue)
                queue.append(new)
        steps.append([columns[found[label if label in own_labels else -1]] for label in range(n)])
        if len(queue) > MAX_COLUMNS:
            raise ValueError(
                f"a transcript of {size} labels with max_edits={most} has more than {MAX_COLUMNS} columns of edits; "
                "lower max_edits"
            )
    pairs = sorted({(column, label) for row in steps for label, column in enumerate(row)})
    number = {pair: j for j, pair in enumerate(pairs)}
    written: list[list[int]] = [[] for _ in queue]  # the segments of labels of every column
    for (column, _), j in number.items():
        written[column].append(j)
    silences = [column for column in range(len(queue)) if written[column]] if layout.has_silence else []
    silent = {column: len(pairs) + place for place, column in enumerate(silences)}
    before = len(pairs) + len(silences)
    sources: list[list[int]] = [[] for _ in range(before + layout.has_silence)]
    for column, row in enumerate(steps):
        for label, column_after in enumerate(row):
            into = sources[number[column_after, label]]
            into += [j for j in written[column] if layout.n_per_label > 1 or pairs[j][1] != label]
            into += [silent[column]] if column in silent else []
            into += [before] if column == 0 and layout.has_silence else []
    for column, j in silent.items():
        sources[j] = written[column]
    labels = np.array([label for _, label in pairs] + [n] * (len(sources) - len(pairs)), dtype=np.int64)
    edits = [float(queue[column][-1]) for column, _ in pairs] + [float(queue[column][-1]) for column in silences]
    final = np.array(edits + [-np.inf] * layout.has_silence)
    first = np.array([steps[0][label] == column for column, label in pairs] + [False] * len(silences), dtype=bool)
    if layout.has_silence:
        first = np.append(first, True)
    arcs = [np.array(one, dtype=np.int64) for one in sources]
    return link(np.array([0, labels.size]), labels, first, final, arcs)


def _write(column: tuple[int, ...], transcript: Array, label: int, most: int) -> tuple[int, ...]:
    """The column after one more label."""
    new = [min(column[0] + 1, most)]
    for m, own in enumerate(transcript.tolist()):
        change = column[m] + (own != label)
        new.append(min(change, column[m + 1] + 1, new[m] + 1, most))
    return tuple(new)


def join_segments(parts: list[Segments]) -> Segments:
    """All automata in one table."""
    starts = np.concatenate([[0], np.cumsum([part.label.size for part in parts])]).astype(np.int64)
    arcs = np.concatenate([[0], np.cumsum([part.source.size for part in parts])])
    arc_starts = np.concatenate([[0], *(part.arc_starts[1:] + arc for part, arc in zip(parts, arcs[:-1], strict=True))])
    label, first, final, low, high = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("label", "first", "final", "low", "high")
    )
    source = np.concatenate([part.source for part in parts])
    return Segments(starts, label, first, final, low, high, arc_starts.astype(np.int64), source)
