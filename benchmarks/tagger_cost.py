"""Time and memory of the tagger on the English Web Treebank, beside python-crfsuite with the same features."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

from benchmarks.harness import Page, real_data
from tacit.apps import Tagger
from tacit.text import WordFeatures
from tacit.text.tagged_words import read_tagged
from tacit.text.tagger import PREFIXES, SUFFIXES

EPOCHS, STEPS = 10, 50
MODELS = {
    "**Tagger()**": (),
    "**Tagger(states=2)**": (),
    f"crfsuite, averaged perceptron, {EPOCHS} epochs": ("ap", EPOCHS),
    f"crfsuite, L-BFGS, {STEPS} steps": ("lbfgs", STEPS),
}


def run() -> Page:
    page = Page(
        "Tagger: time and memory",
        "English Web Treebank, 17 universal tags: 204,577 words to learn from, 25,147 words of the development set to "
        "tag. CPU seconds from words to tags: features, learning, and tagging; one thread. Each row is a process of "
        "its own, whose memory is its peak, with the words and the features. crfsuite gets the same features, "
        "one sentence at a time. To reach: at most 1.5 times the CPU seconds of crfsuite.",
        ["model", "CPU seconds", "peak memory, MB", "dev error %"],
    )
    for model in MODELS:
        command = [sys.executable, "-m", "benchmarks.tagger_cost", model]
        seconds, memory, error = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        page.rows.append((model, f"{seconds:.1f}", f"{memory:.0f}", f"{100 * error:.2f}"))
        print(page.rows[-1], flush=True)
    page.notes.append("Python, tacit and the words take about 220 MB before anything is learned.")
    return page


def measure(model: str) -> tuple[float, float, float]:
    """CPU seconds, peak memory in MB, and the share of wrong tags."""
    train, dev = (read_tagged(real_data() / "ewt" / f"{part}.tsv.gz") for part in ("train", "dev"))
    if not MODELS[model]:
        Tagger(verbose=0, epochs=1).fit(train.words[:50], train.tags[:50])  # compiles
    began = time.process_time()
    found: Any
    if MODELS[model]:
        found = learn_crfsuite(*MODELS[model], train, dev.words)
    else:
        states = 2 if "states" in model else 1
        found = Tagger(states=states, epochs=EPOCHS, verbose=0).fit(train.words, train.tags).predict(dev.words)
    seconds = time.process_time() - began
    wrong = [a != b for own, tags in zip(found, dev.tags, strict=True) for a, b in zip(own, tags, strict=True)]
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, float(np.mean(wrong))


def learn_crfsuite(algorithm: str, steps: int, train: Any, words: Any) -> list[list[str]]:
    import pycrfsuite

    features = WordFeatures(prefixes=PREFIXES, suffixes=SUFFIXES)
    X = features.fit_transform(train.words)
    names = features.get_feature_names_out()
    trainer = pycrfsuite.Trainer(verbose=False, algorithm=algorithm)
    trainer.set_params({"max_iterations": steps})
    for table, tags in zip(X, train.tags, strict=True):
        trainer.append(_items(table, names), tags)
    with tempfile.TemporaryDirectory() as folder:
        trainer.train(os.path.join(folder, "model"))
        tagger = pycrfsuite.Tagger()
        tagger.open(os.path.join(folder, "model"))
        return [tagger.tag(_items(table, names)) for table in features.transform(words)]


def _items(table: Any, names: Any) -> Any:
    import pycrfsuite

    return pycrfsuite.ItemSequence(
        [names[table.indices[a:b]].tolist() for a, b in zip(table.indptr[:-1], table.indptr[1:], strict=True)]
    )


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
