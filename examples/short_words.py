"""The language of short words: what letters follow each other, learned without being told about vowels.

Run it: python examples/short_words.py. It learns from the words of Python's own documentation strings, which every
machine has, and draws docs/images/short_words.png.
"""

# ruff: noqa: T201
from __future__ import annotations

import pydoc_data.topics
import re
from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from tacit.spectral import SpectralAutomaton, SpectralHMM
from tacit.spectral.hankel import count
from tacit.spectral.pictures import graph, hankel_heat, singular_values
from tacit.spectral.symbols import encode


def words() -> tuple[list[str], list[str]]:
    """Words of three to nine letters to learn from, frequent ones repeated, and 400 others to test."""
    text = " ".join(pydoc_data.topics.topics.values()).lower()
    found = Counter(re.findall(r"\b[a-z]{3,9}\b", text))
    distinct = np.random.default_rng(0).permutation(sorted(found)).tolist()
    train = [word for word in distinct[400:] for _ in range(int(np.ceil(np.log2(1 + found[word]))))]
    return train, distinct[:400]


def main() -> None:
    train, test = words()
    hidden = SpectralHMM(4).fit(train)
    plain = SpectralAutomaton().fit(train)
    automaton = SpectralAutomaton(refine="em").fit(train)
    print(f"{len(train)} words to learn from, {len(test)} others to test")
    for name, model in (
        ("HMM of 4 states", hidden),
        (f"spectral automaton of rank {plain.n_states_}", plain),
        (f"automaton of {automaton.n_states_} states after EM", automaton),
    ):
        print(f"{name}: perplexity {model.perplexity(test):.2f} a letter; 26 letters and the end would be 27")
    print("words it makes up:", " ".join("".join(x) for x in automaton.sample(12, random_state=1)))
    print("after 'th':", automaton.predict_next(["th"])[0], " after 'q':", automaton.predict_next(["q"])[0])
    for state, row in enumerate(hidden.emissionprob_):
        print(f"state {state}:", " ".join(hidden.symbols_[np.argsort(-row)[:8]]))
    figure, axes = plt.subplots(1, 3, figsize=(15, 5), layout="constrained")
    counted = count(encode(train, hidden.symbols_), len(hidden.symbols_), statistics="substring", length=1)
    hankel_heat(counted, hidden.symbols_, rows=21, ax=axes[0])
    singular_values(plain, ax=axes[1])
    graph(hidden, ax=axes[2]).set_title("Four hidden states")
    target = Path(__file__).parents[1] / "docs" / "images" / "short_words.png"
    figure.savefig(target, dpi=110)
    print("picture:", target)


if __name__ == "__main__":
    main()
