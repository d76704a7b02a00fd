"""Pictures of spectral learning: singular values, Hankel matrices, automata as graphs. Needs matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.arrays import Array
from tacit.plot.canvas import BLUE, GREY, INK, ORANGE, pyplot
from tacit.spectral.automaton import WeightedAutomaton
from tacit.spectral.hankel import Hankel

MOST_STATES = 12
"""Above this a graph is a tangle."""
BESIDE_LOOP = np.array([[np.cos(1.0), -np.sin(1.0)], [np.sin(1.0), np.cos(1.0)]])
"""Turns the arrow into a start away from the loop of the same state, which stands outward."""


def singular_values(model: Any, ax: Any = None) -> Any:
    """The singular values of the Hankel matrix; those of the chosen rank are filled.

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
        raise ValueError(f"a fitted model with singular_values_ is needed, got {model!r}; call fit first")
    ax = _axes(ax)
    values = np.asarray(model.singular_values_)
    rank = min(int(model.spectral_.n_states), values.size)
    places = np.arange(1, values.size + 1)
    ax.plot(places, values, color=GREY, lw=0.8, zorder=1)
    ax.scatter(places[:rank], values[:rank], color=BLUE, zorder=2, s=28)
    ax.scatter(places[rank:], values[rank:], facecolor="white", edgecolor=GREY, zorder=2, s=28)
    ax.axvline(rank + 0.5, color=ORANGE, lw=1.0, ls=":")
    ax.annotate(f"rank {rank} ", (rank + 0.5, values[0]), ha="right", va="top", color=ORANGE)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set(yscale="log", xlabel="number", ylabel="singular value", title="How many states the strings show")
    return ax


def hankel_heat(hankel: Hankel, symbols: Any = None, rows: int = 20, ax: Any = None) -> Any:
    """The top left corner of a Hankel block as a heat map, on a logarithmic scale; entries of zero stay white.

    Parameters
    ----------
    hankel : of `tacit.spectral.hankel.count` or `WeightedAutomaton.hankel`
    symbols : what the codes stand for; None shows the codes
    rows : how many prefixes and suffixes, the most frequent

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit.spectral import WeightedAutomaton
    >>> coin = WeightedAutomaton([1.0], [[[0.3]], [[0.5]]], [0.2], symbols=["a", "b"])
    >>> hankel_heat(coin.hankel(["", "a"], ["", "b"]), coin.symbols).get_title()
    'H(u, v) = f(uv)'
    """
    ax = _axes(ax)
    block = hankel.block[:rows, :rows].toarray()
    shown = np.where(block > 0, np.log10(np.where(block > 0, block, 1.0)), np.nan)
    image = ax.imshow(shown, cmap="Blues", interpolation="nearest")
    names = [_names(part, symbols, rows) for part in (hankel.prefixes, hankel.suffixes)]
    ax.set_yticks(range(len(names[0])), names[0], fontsize=8)
    ax.set_xticks(range(len(names[1])), names[1], fontsize=8, rotation=90)
    ax.spines[:].set_visible(False)
    ax.figure.colorbar(image, ax=ax, shrink=0.8, label="log₁₀ f")
    ax.set(xlabel="suffix v", ylabel="prefix u", title="H(u, v) = f(uv)")
    return ax


def graph(model: Any, least: float = 0.05, ax: Any = None) -> Any:
    """An automaton of probabilities, or an HMM, as a graph: up to a dozen states.

    States are larger the more often they are visited; arrows are darker the more probable, and name their symbols;
    those of an HMM stand in its states. The short arrow leads into the start, a ring marks states where strings
    often end.

    Parameters
    ----------
    model : a fitted `SpectralHMM` or `SpectralAutomaton`, or a `WeightedAutomaton` of probabilities
    least : moves less probable than this are left out

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from tacit.spectral import WeightedAutomaton
    >>> model = WeightedAutomaton.from_hmm([1, 0], [[0.5, 0.5], [0, 1]], [[0.9, 0.1], [0, 1]], [0.1, 0.5])
    >>> len(graph(model).texts) > 2
    True
    """
    automaton = model if isinstance(model, WeightedAutomaton) else model.automaton_
    if not automaton.is_probabilistic:
        raise ValueError(
            "only an automaton of probabilities can be drawn; fit a SpectralHMM, or use smoothing='project' or "
            "refine='em'"
        )
    hidden = automaton.to_hmm()
    is_hmm = hidden.startprob.size == automaton.n_states - 1
    if is_hmm:
        moves = (1 - hidden.stopprob)[:, None] * hidden.transmat
        start, stop = hidden.startprob, hidden.stopprob
    else:
        moves, start, stop = automaton.transitions.sum(axis=0), automaton.initial, automaton.final
    if start.size > MOST_STATES:
        raise ValueError(f"{start.size} states make no picture; draw one of up to {MOST_STATES}")
    ax = _axes(ax)
    angles = np.pi / 2 - 2 * np.pi * np.arange(start.size) / start.size
    places = np.column_stack([np.cos(angles), np.sin(angles)]) if start.size > 1 else np.zeros((1, 2))
    visits = start @ np.linalg.pinv(np.eye(start.size) - moves)
    sizes = 0.14 + 0.12 * np.sqrt(np.maximum(visits, 0) / max(visits.max(), 1e-300))
    for i, j in np.argwhere(moves >= least):
        label = "" if is_hmm else _top(automaton.transitions[:, i, j], automaton.symbols)
        _arrow(ax, places[i], places[j], sizes[i], sizes[j], float(moves[i, j]), label)
    for i in np.flatnonzero(start >= least):
        aside = BESIDE_LOOP @ (places[i] if start.size > 1 else np.array([0.0, 1.0]))
        out = places[i] + aside * (sizes[i] + 0.28)
        ax.annotate(
            "",
            places[i] + (out - places[i]) * (sizes[i] + 0.02) / np.linalg.norm(out - places[i]),
            out,
            arrowprops={"arrowstyle": "-|>", "color": ORANGE, "lw": 0.5 + 2.5 * start[i]},
        )
    for i, place in enumerate(places):
        name = _top(hidden.emissionprob[i], automaton.symbols) if is_hmm else str(i)
        _state(ax, place, sizes[i], float(stop[i]), name)
    ax.set(xlim=(-1.75, 1.75), ylim=(-1.6, 1.6), aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return ax


def _state(ax: Any, place: Any, size: float, stop: float, name: str) -> None:
    from matplotlib.patches import Circle

    if stop > 0.02:
        ax.add_patch(Circle(place, size + 0.035, facecolor="none", edgecolor=INK, lw=0.5 + 3 * stop, zorder=3))
    ax.add_patch(Circle(place, size, facecolor="#dce9f5", edgecolor=INK, lw=0.8, zorder=3))
    ax.text(*place, name, ha="center", va="center", fontsize=8, color=INK, zorder=4)


def _arrow(ax: Any, one: Array, two: Array, size_one: float, size_two: float, weight: float, label: str) -> None:
    """A curved arrow between two states, or a loop outside of one."""
    style = {"arrowstyle": "-|>", "color": BLUE, "alpha": 0.15 + 0.85 * weight, "lw": 0.5 + 2.5 * weight}
    if np.allclose(one, two):
        outward = one / max(float(np.linalg.norm(one)), 1e-9) if one.any() else np.array([0.0, -1.0])
        turn = np.array([-outward[1], outward[0]])
        begin, end = (one + size_one * (0.8 * outward + side * 0.6 * turn) for side in (-1, 1))
        ax.annotate("", end, begin, arrowprops={**style, "connectionstyle": "arc3,rad=1.6"}, zorder=2)
        middle = one + outward * (size_one + 0.22)
    else:
        along = (two - one) / np.linalg.norm(two - one)
        begin, end = one + along * size_one, two - along * (size_two + 0.03)
        ax.annotate("", end, begin, arrowprops={**style, "connectionstyle": "arc3,rad=0.15"}, zorder=2)
        middle = (begin + end) / 2 + 0.09 * np.linalg.norm(end - begin) * np.array([along[1], -along[0]])
    if label:
        box = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
        ax.text(*middle, label, ha="center", va="center", fontsize=7, color=INK, zorder=5, bbox=box)


def _top(weights: Array, symbols: Array, most: int = 4) -> str:
    """The most probable symbols, up to those half as probable as the first."""
    order = np.argsort(-weights, kind="stable")[:most]
    return " ".join(str(symbols[i]) for i in order if weights[i] >= 0.5 * weights.max())


def _names(strings: Any, symbols: Any, rows: int) -> list[str]:
    shown = [[str(code if symbols is None else symbols[code]) for code in x] for x in strings[:rows]]
    return ["".join(x) if all(len(s) == 1 for s in x) and x else " ".join(x) or "λ" for x in shown]


def _axes(ax: Any) -> Any:
    if ax is None:
        ax = pyplot().subplots(layout="constrained")[1]
    ax.spines[["top", "right"]].set_visible(False)
    return ax
