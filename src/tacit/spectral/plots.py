"""Pictures of spectral learning: singular values, Hankel matrices, automata as graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import entries, shorten, whole_number
from tacit.plot.canvas import BLUE, GREY, INK, ORANGE, plain_axes, whole_numbers
from tacit.spectral.automaton import WeightedAutomaton
from tacit.spectral.hankel import Hankel, count
from tacit.spectral.symbols import encode, read_alphabet, read_sequences

MAX_STATES = 12
"""States of a graph, at most: more cannot be read."""
UNITS = {
    "string": "probability of the string uv",
    "prefix": "probability to begin with uv",
    "substring": "how often uv occurs per string",
}
"""What an entry of a Hankel matrix is, by its statistics."""
OFTEN_ENDS = 0.02
"""States with at least this probability to end have a ring."""
BESIDE_LOOP = np.array([[np.cos(1.0), -np.sin(1.0)], [np.sin(1.0), np.cos(1.0)]])
"""Rotation of the arrow into a start, away from the loop of the same state, which points outward."""


def singular_values(model: Any, ax: Any = None) -> Any:
    """The singular values of the Hankel matrix; those that the model uses are filled.

    Parameters
    ----------
    model : a fitted `SpectralAutomaton` or `SpectralHMM`
    ax : matplotlib axes; None makes new ones

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit.spectral import SpectralAutomaton
    >>> model = SpectralAutomaton([1, 2]).fit([["a", "b"], ["a"], ["b", "b"]] * 9)
    >>> singular_values(model).get_ylabel()
    'singular value'
    """
    if not hasattr(model, "singular_values_"):
        raise ValueError(f"model must be fitted and have singular_values_, got {model!r}; call fit first")
    ax = plain_axes(ax)
    values = np.asarray(model.singular_values_)
    rank = min(int(model.spectral_.n_states), values.size)
    numbers = np.arange(1, values.size + 1)
    ax.plot(numbers, values, color=GREY, lw=0.8, zorder=1)
    ax.scatter(numbers[:rank], values[:rank], color=BLUE, zorder=2, s=28)
    ax.scatter(numbers[rank:], values[rank:], facecolor="white", edgecolor=GREY, zorder=2, s=28)
    if rank < values.size:
        ax.axvline(rank + 0.5, color=ORANGE, lw=1.0, ls=":")
        states = "state " if rank == 1 else "states "
        ax.annotate(f"{rank} {states}", (rank + 0.5, values[0]), ha="right", va="top", color=ORANGE)
    else:  # all are used: no line to draw
        ax.annotate(f"all {rank} are used", (rank, values[-1]), (0, 8), textcoords="offset points", ha="right")
    whole_numbers(ax)
    ax.set(yscale="log", xlabel="number", ylabel="singular value", title="How much each state explains")
    return ax


def hankel_heat(hankel: Any, symbols: Any = None, rows: int = 20, ax: Any = None) -> Any:
    """The top left corner of a Hankel block, how often v follows u, on a logarithmic scale; zero is white.

    Parameters
    ----------
    hankel : of `hankel.count` or `WeightedAutomaton.hankel`; or sequences, whose single symbols are then counted
    symbols : the symbols of the codes of a Hankel block; None shows the codes
    rows : number of prefixes and suffixes, the most frequent

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit.spectral import WeightedAutomaton
    >>> coin = WeightedAutomaton([1.0], [[[0.3]], [[0.5]]], [0.2], symbols=["a", "b"])
    >>> hankel_heat(coin.hankel(["", "a"], ["", "b"]), coin.symbols).get_title()
    'How often v follows u'
    >>> [label.get_text() for label in hankel_heat(["ab", "abb"]).get_yticklabels()]
    ['λ', 'b', 'a']
    """
    from matplotlib.colors import LogNorm

    if not isinstance(hankel, Hankel):
        sequences = read_sequences(hankel)
        symbols = read_alphabet(None, sequences)
        hankel = count(encode(sequences, symbols), len(symbols), statistics="substring", length=1)
    if symbols is not None:
        symbols = entries("symbols", symbols, f"a list of at least {hankel.n_symbols} symbols, or None")
        if len(symbols) < hankel.n_symbols:
            raise ValueError(f"symbols must be at least {hankel.n_symbols}, got {shorten(symbols)}")
    rows, ax = whole_number("rows", rows), plain_axes(ax)
    block = hankel.block[:rows, :rows].toarray()
    image = ax.imshow(np.where(block > 0, block, np.nan), cmap="Blues", norm=LogNorm(), interpolation="nearest")
    names = [_names(part, symbols, rows) for part in (hankel.prefixes, hankel.suffixes)]
    ax.set_yticks(range(len(names[0])), names[0])
    upright = max(map(len, names[1])) <= 1
    ax.set_xticks(range(len(names[1])), names[1], rotation=0 if upright else 90)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.figure.colorbar(image, ax=ax, shrink=0.8, label=UNITS[hankel.statistics])
    ax.set(xlabel="then v (λ: the empty string)", ylabel="first u", title="How often v follows u")
    return ax


def automaton_graph(model: Any, least: float = 0.05, ax: Any = None) -> Any:
    """A probabilistic automaton or an HMM as a graph of up to a dozen states.

    States are larger the more often they are visited. Arrows are wider and darker the more probable they are, and have
    the names of their symbols; those of an HMM are in its states. An orange arrow points to a state where strings
    begin. A ring marks one where they end. The legend explains this.

    Parameters
    ----------
    model : a fitted `SpectralHMM` or `SpectralAutomaton`, or a probabilistic `WeightedAutomaton`
    least : starts and moves less probable than this are left out
    ax : matplotlib axes; None makes new ones

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit.spectral import WeightedAutomaton
    >>> model = WeightedAutomaton.from_hmm([1, 0], [[0.5, 0.5], [0, 1]], [[0.9, 0.1], [0, 1]], [0.1, 0.5])
    >>> [text.get_text() for text in automaton_graph(model).texts if text.get_text()]
    ['0', '1']
    """
    automaton = model if isinstance(model, WeightedAutomaton) else getattr(model, "automaton_", None)
    if not isinstance(automaton, WeightedAutomaton):
        raise ValueError(f"model must be a fitted SpectralHMM or a WeightedAutomaton, got {shorten(model)}")
    if not automaton.is_probabilistic:
        raise ValueError("model must be probabilistic; fit a SpectralHMM, or use smoothing='project' or refine='em'")
    hidden = automaton.to_hmm()
    is_hmm = hidden.startprob.size == automaton.n_states - 1
    if is_hmm:
        moves = (1 - hidden.stopprob)[:, None] * hidden.transmat
        start, stop = hidden.startprob, hidden.stopprob
    else:
        moves, start, stop = automaton.transitions.sum(axis=0), automaton.initial, automaton.final
    if start.size > MAX_STATES:
        raise ValueError(f"model must have at most {MAX_STATES} states to be drawn, got {start.size}")
    ax = plain_axes(ax)
    angles = np.pi / 2 - 2 * np.pi * np.arange(start.size) / start.size
    centres = np.column_stack([np.cos(angles), np.sin(angles)]) if start.size > 1 else np.zeros((1, 2))
    visits = start @ np.linalg.pinv(np.eye(start.size) - moves)
    sizes = 0.16 + 0.16 * np.sqrt(np.maximum(visits, 0) / max(visits.max(), 1e-300))
    for i, j in np.argwhere(moves >= least):
        label = "" if is_hmm else _top(automaton.transitions[:, i, j], automaton.symbols)
        _arrow(ax, centres[i], centres[j], sizes[i], sizes[j], float(moves[i, j]), label)
    for i in np.flatnonzero(start >= least):
        aside = BESIDE_LOOP @ (centres[i] if start.size > 1 else np.array([0.0, 1.0]))
        out = centres[i] + aside * (sizes[i] + 0.28)
        ax.annotate(
            "",
            centres[i] + (out - centres[i]) * (sizes[i] + 0.02) / np.linalg.norm(out - centres[i]),
            out,
            arrowprops={"arrowstyle": "-|>", "color": ORANGE, "lw": 0.5 + 2.5 * start[i]},
        )
    for i, centre in enumerate(centres):
        name = _top(hidden.emissionprob[i], automaton.symbols) if is_hmm else str(i)
        _state(ax, centre, sizes[i], float(stop[i]), name)
    ax.set(xlim=(-1.75, 1.75), ylim=(-1.5, 1.6), aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    _draw_legend(ax, is_hmm, least)
    return ax


def _draw_legend(ax: Any, is_hmm: bool, least: float) -> None:
    """Draw the legend of circles, rings and arrows."""
    from matplotlib.lines import Line2D

    def disc(edge: float) -> Any:
        return Line2D([], [], ls="", marker="o", ms=11, mfc="#dce9f5", mec=INK, mew=edge)

    def arrow(colour: str) -> Any:
        return Line2D([], [], color=colour, lw=2, marker=">", markevery=[1], ms=7)

    what = "a state and what it emits most" if is_hmm else "a state"
    meanings = {
        f"{what}; larger: visited more often": disc(0.8),
        "ring: strings end here; wider: more often": disc(2.6),
        f"strings begin here (from {least:.0%} of them on); wider: more often": arrow(ORANGE),
        f"next state (from {least:.0%} on); wider: more probable": arrow(BLUE),
    }
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.02)}
    ax.legend(list(meanings.values()), list(meanings), frameon=False, fontsize=10, **below)


def _state(ax: Any, centre: Any, size: float, stop: float, name: str) -> None:
    from matplotlib.patches import Circle

    if stop > OFTEN_ENDS:
        ax.add_patch(Circle(centre, size + 0.035, facecolor="none", edgecolor=INK, lw=0.5 + 3 * stop, zorder=3))
    ax.add_patch(Circle(centre, size, facecolor="#dce9f5", edgecolor=INK, lw=0.8, zorder=3))
    ax.text(*centre, name, ha="center", va="center", fontsize=11, color=INK, zorder=4)


def _arrow(ax: Any, one: Array, two: Array, size_one: float, size_two: float, weight: float, label: str) -> None:
    """A curved arrow between two states, or a loop outside of one."""
    style = {"arrowstyle": "-|>", "color": BLUE, "alpha": 0.15 + 0.85 * weight, "lw": 0.5 + 2.5 * weight}
    if np.allclose(one, two):
        outward = one / max(float(np.linalg.norm(one)), 1e-9) if one.any() else np.array([0.0, -1.0])
        sideways = np.array([-outward[1], outward[0]])
        begin, end = (one + size_one * (0.8 * outward + side * 0.6 * sideways) for side in (-1, 1))
        ax.annotate("", end, begin, arrowprops={**style, "connectionstyle": "arc3,rad=1.6"}, zorder=2)
        middle = one + outward * (size_one + 0.22)
    else:
        along = (two - one) / np.linalg.norm(two - one)
        begin, end = one + along * size_one, two - along * (size_two + 0.03)
        ax.annotate("", end, begin, arrowprops={**style, "connectionstyle": "arc3,rad=0.15"}, zorder=2)
        middle = (begin + end) / 2 + 0.09 * np.linalg.norm(end - begin) * np.array([along[1], -along[0]])
    if label:
        box = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
        ax.text(*middle, label, ha="center", va="center", fontsize=9, color=INK, zorder=5, bbox=box)


def _top(weights: Array, symbols: Array, most: int = 4) -> str:
    """The most probable symbols, up to those half as probable as the first."""
    order = np.argsort(-weights, kind="stable")[:most]
    return " ".join(str(symbols[i]) for i in order if weights[i] >= 0.5 * weights.max())


def _names(strings: Any, symbols: Any, rows: int) -> list[str]:
    shown = [[str(code if symbols is None else symbols[code]) for code in x] for x in strings[:rows]]
    return ["".join(x) if all(len(s) == 1 for s in x) and x else " ".join(x) or "λ" for x in shown]
