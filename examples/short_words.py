"""The language of short words: what letters follow each other, learned without being told about vowels.

Run it from anywhere: ``python examples/short_words.py --out short_words.png``. It learns from the words of Python's own
documentation, which every machine has, prints what it found and writes a picture.
"""

# ruff: noqa: T201
from __future__ import annotations

import argparse
import pydoc_data.topics
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from tacit import plot
from tacit.spectral import SpectralAutomaton, SpectralHMM

STATES, MOST_STATES, LETTERS = 4, 6, 26


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("short_words.png"), help="where the picture goes")
    out = parser.parse_args().out
    train, times, test = words()
    print(f"{len(train)} words to learn from, {len(test)} others to test")
    hidden = {n: SpectralHMM(n).fit(train, sample_weight=times) for n in range(1, MOST_STATES + 1)}
    automaton = SpectralAutomaton(refine="em").fit(train, sample_weight=times)
    for name, model in (
        ("HMM of one state, letters by frequency alone", hidden[1]),
        (f"HMM of {STATES} states", hidden[STATES]),
        (f"automaton of {automaton.n_states_} states", automaton),
    ):
        print(f"{name}: perplexity {model.perplexity(test):.2f} per letter")
    print("words it makes up:", " ".join("".join(x) for x in automaton.sample(12, random_state=1)))
    print("after 'th':", automaton.predict_next(["th"])[0], " after 'q':", automaton.predict_next(["q"])[0])
    for state, row in enumerate(hidden[STATES].emissionprob_):
        print(f"state {state}:", " ".join(hidden[STATES].symbols_[np.argsort(-row)[:8]]))
    for word, states in zip(("banana", "string"), hidden[STATES].predict(["banana", "string"]), strict=True):
        print(f"states of {word}:", *states)
    draw(train, test, hidden).savefig(out, dpi=110)
    print("picture:", out)


def words() -> tuple[list[str], list[float], list[str]]:
    """Words of three to nine letters to learn from, how much each counts, and 400 others to test."""
    text = " ".join(pydoc_data.topics.topics.values()).lower()
    found = Counter(re.findall(r"\b[a-z]{3,9}\b", text))
    distinct = np.random.default_rng(0).permutation(sorted(found)).tolist()
    train, test = distinct[400:], distinct[:400]
    return train, [float(np.ceil(np.log2(1 + found[word]))) for word in train], test


def draw(train: list[str], test: list[str], hidden: dict[int, SpectralHMM]) -> Any:
    """How letters follow each other, what a state more is worth, and the states themselves."""
    figure = plot.pyplot().figure(figsize=(9.6, 9.8), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=[1, 1.3])
    left, right = upper.subplots(1, 2, width_ratios=[1.35, 1])
    heat = plot.hankel_heat(train, rows=LETTERS + 1, ax=left)
    heat.set(title="How often letters follow each other", xlabel="then (row and column λ: how often at all)")
    heat.set(ylabel="first a letter")
    heat.tick_params(labelsize=9)
    perplexity = {n: model.perplexity(test) for n, model in hidden.items()}
    right.plot(list(perplexity), list(perplexity.values()), color="#0072b2", marker="o", lw=2)
    arrow = {"textcoords": "offset points", "arrowprops": {"arrowstyle": "->"}}
    right.annotate("drawn below", (STATES, perplexity[STATES]), (12, 28), **arrow)
    right.set(xlabel="hidden states", ylabel="perplexity per letter", title="More states guess other words better")
    right.set_ylim(10, 19)
    right.spines[["top", "right"]].set_visible(False)
    axes = plot.automaton_graph(hidden[STATES], ax=lower.subplots())
    axes.set_title(f"{STATES} hidden states of letters, found without being told about vowels")
    return figure


if __name__ == "__main__":
    main()
