"""Commands that are ended by SIGKILL and SIGTERM at random moments, and started again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Page, Skipped
from tacit.datasets import planted_motif
from tacit.vision.photos import pillow

ROUNDS = 100
"""Pairs of signals per command."""

MAX_SECONDS = 600
"""Seconds after which the benchmark ends with fewer."""

TIMES = ("run.json", "report.html", "model.tacit")
"""Results that hold times, and so differ from run to run; all others must have the same bytes."""


def write_inputs(folder: Path) -> dict[str, list[str]]:
    """Small inputs for every command that writes results, and the arguments of each."""
    rng = np.random.default_rng(0)
    X, y, _ = planted_motif(200, 40, "TGACTCA", noise=0.1, seed=1)
    for name, label in (("yes.fa", True), ("no.fa", False)):
        kept = [x for x, own in zip(X, y, strict=True) if (own > 0) == label]
        (folder / name).write_text("".join(f">s{i}\n{bytes(x).decode()}\n" for i, x in enumerate(kept)))
    sentences = ["the/D dog/N runs/V", "a/D cat/N sleeps/V", "the/D cat/N runs/V", "a/D dog/N sleeps/V"] * 10
    lines = [line.replace(" ", "\n").replace("/", "\t") for line in sentences]
    (folder / "words.tsv").write_text("\n\n".join(lines) + "\n")
    nouns = [("haus", "house"), ("buch", "book"), ("hund", "dog"), ("baum", "tree")]
    starts = [("das", "the"), ("ein", "a"), ("mein", "my"), ("kein", "no")]
    pairs = [f"{a} {noun} ||| {b} {own}" for a, b in starts for noun, own in nouns]
    (folder / "pairs.txt").write_text("\n".join(pairs) + "\n")
    texts = [("It is good. We like it. It rains.", "yes"), ("It is bad. We hate it. It rains.", "no")] * 15
    documents = [{"text": text, "label": label} for text, label in texts]
    (folder / "reviews.jsonl").write_text("".join(json.dumps(own) + "\n" for own in documents))
    tale = [("Alice", "(1)"), ("saw", "-"), ("Bob", "(2)"), (".", "-"), ("She", "(1)"), ("ran", "-")]
    rows = "\n".join(f"tale 0 {i} {word} - {mark}" for i, (word, mark) in enumerate(tale))
    parts = [f"#begin document (tale{k}); part 000\n{rows}\n\n#end document\n" for k in range(6)]
    (folder / "tales.conll").write_text("".join(parts))
    for part in ("images", "masks", "photos/cat", "photos/dog"):
        (folder / part).mkdir(parents=True)
    for i in range(6):
        photo = rng.integers(0, 80, (40, 48, 3)).astype(np.uint8)
        mask = np.zeros((40, 48), np.uint8)
        mask[10:30, 12 + i : 32 + i] = 1
        photo[mask > 0] += 150
        pillow().fromarray(photo).save(folder / "images" / f"p{i}.png")
        pillow().fromarray(photo).save(folder / "photos" / ("cat", "dog")[i % 2] / f"p{i}.png")
        if i < 4:
            pillow().fromarray(255 * mask).save(folder / "masks" / f"p{i}.png")
    return {
        "motif": ["motif", "yes.fa", "no.fa", "--width", "7", "--motifs", "1", "--checkpoint", "state", "--resume"],
        "tag": ["tag", "words.tsv", "--predict", "words.tsv"],
        "align": ["align", "pairs.txt"],
        "reasons": ["reasons", "reviews.jsonl"],
        "coref": ["coref", "tales.conll", "--predict", "tales.conll"],
        "segment": ["segment", "."],
        "locate": ["locate", "photos"],
    }


def start(arguments: list[str], folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tacit", *arguments, "--out", "out", "--force", "--quiet"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def results(folder: Path) -> dict[str, Any]:
    """The bytes of all results, but for those that hold times, and the names of these."""
    files = [path for path in sorted((folder / "out").rglob("*")) if path.is_file()]
    return {str(p.relative_to(folder)): None if p.name in TIMES else p.read_bytes() for p in files}


def unfinished(folder: Path) -> int:
    return len(list(folder.rglob(".tacit-*")))


def run() -> Page:
    if os.name != "posix":
        raise Skipped("there is no SIGKILL here")
    page = Page(
        "Commands that are ended and started again",
        "Each command is ended at random moments of its run, by SIGTERM and by SIGKILL in turn, and then started again "
        "with the same arguments. Must reach: after SIGTERM the exit code 143 and no unfinished files; after the last "
        "start the same bytes as without signals, in all results that hold no times.",
        ["command", "SIGTERM", "exit code 143, nothing left", "SIGKILL", "rounds", "same results"],
    )
    rng, began = np.random.default_rng(0), time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        commands = write_inputs(Path(home))
        counts = {name: [0, 0, 0, 0, 0] for name in commands}
        expected: dict[str, Any] = {}
        seconds: dict[str, float] = {}
        for _ in range(ROUNDS):
            for name, arguments in commands.items():
                if time.monotonic() - began > MAX_SECONDS and counts[name][3]:
                    continue
                folder = Path(home) / "rounds" / name
                shutil.rmtree(folder.parent, ignore_errors=True)
                shutil.copytree(home, folder, ignore=shutil.ignore_patterns("rounds"))
                if name not in expected:
                    first = time.monotonic()
                    if start(arguments, folder).wait() != 0:
                        raise RuntimeError(f"tacit {name} does not run without signals")
                    seconds[name], expected[name] = time.monotonic() - first, results(folder)
                    shutil.rmtree(folder / "out")
                    (folder / "state").unlink(missing_ok=True)
                for number in (signal.SIGTERM, signal.SIGKILL):
                    process = start(arguments, folder)
                    time.sleep(float(rng.uniform(0.1, 1.0)) * seconds[name])
                    process.send_signal(number)
                    code = process.wait()
                    if number == signal.SIGTERM and code != 0:
                        counts[name][0] += 1
                        counts[name][1] += code in (143, -signal.SIGTERM) and not unfinished(folder)
                    counts[name][2] += number == signal.SIGKILL and code == -signal.SIGKILL
                is_done = start(arguments, folder).wait() == 0
                counts[name][3] += 1
                counts[name][4] += is_done and results(folder) == expected[name]
    page.rows = [(name, *own) for name, own in counts.items()]
    page.rows.append(("all", *np.sum(list(counts.values()), axis=0).tolist()))
    page.notes.append(
        "A command that ended before the signal came is not counted. A SIGTERM while Python starts, before the command "
        "itself runs, ends the process by the signal: the shell shows 143 as well."
    )
    return page
