"""``tacit examples``: small generated input files for every command, so that each command can be tried at once."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

import click
import numpy as np

from tacit import commands
from tacit.data.arrays import Array
from tacit.report import encode_png

Files = Mapping[str, str | bytes]
"""The content of files by their paths in the folder."""

SITE = "TGACTCATCC"
PEOPLE = {"Alice": ("She", "her"), "Bob": ("He", "him"), "Emma": ("She", "her"), "Tom": ("He", "him")}
WORDS = {
    "DET": ("the", "a", "every"),
    "ADJ": ("small", "green", "quiet", "old", "happy"),
    "NOUN": ("dog", "tree", "house", "river", "bird", "watch", "sound"),
    "VERB": ("sees", "follows", "finds", "likes", "watch", "sound"),
    "ADV": ("slowly", "often", "happily"),
}
PATTERNS = (
    ("DET", "NOUN", "VERB", "DET", "ADJ", "NOUN"),
    ("DET", "ADJ", "NOUN", "VERB", "ADV"),
    ("DET", "NOUN", "VERB"),
)
FRENCH = {
    "the": "le", "dog": "chien", "tree": "arbre", "bird": "oiseau", "house": "logis", "old": "vieux", "small": "petit",
    "sees": "voit", "finds": "trouve", "likes": "aime", "hears": "entend", "today": "aujourd'hui", "here": "ici",
}  # fmt: skip
NEUTRAL = (
    "We arrived in the evening.", "The room is on the second floor.", "There is a station near the house.",
    "Breakfast is from seven to ten.", "I stayed for two nights.", "The street has many shops.",
)  # fmt: skip
TONES = {"low": 300, "mid": 800, "high": 2000}
GOOD = ("The staff were wonderful.", "I loved the quiet garden.", "A great place, and very clean.")
BAD = ("The bed was awful.", "I hated the noise at night.", "A dirty place, and very rude.")


class ExampleSet(NamedTuple):
    """Files for one command, and how to call it on them."""

    make: Callable[[np.random.Generator], Files]
    call: str


def make_sequences(rng: np.random.Generator) -> Files:
    """Bound sequences with a motif, unbound ones without, and longer ones to scan."""

    def draw(n: int, length: int, n_sites: int) -> str:
        lines = []
        for i in range(n):
            letters = rng.choice(list("ACGT"), length)
            for _ in range(n_sites):
                start = rng.integers(0, length - len(SITE))
                site = np.where(rng.random(len(SITE)) < 0.08, rng.choice(list("ACGT"), len(SITE)), list(SITE))
                letters[start : start + len(SITE)] = site
            lines.append(f">sequence_{i + 1}\n{''.join(letters)}\n")
        return "".join(lines)

    return {"bound.fa": draw(200, 60, 1), "unbound.fa": draw(200, 60, 0), "genome.fa": draw(3, 5000, 4)}


def make_photos(rng: np.random.Generator) -> Files:
    """Drawings of a ball or a crate in a meadow, and the boxes around these objects."""
    files: dict[str, str | bytes] = {}
    rows = ["file,class,width,height,xmin,ymin,xmax,ymax"]
    for kind in ("ball", "crate"):
        for i in range(12):
            image, box = _draw_meadow(rng, 192, is_ball=kind == "ball")
            files[f"photos/{kind}/{kind}_{i + 1}.png"] = encode_png(image)
            rows.append(f"{kind}/{kind}_{i + 1}.png,{kind},192,192,{','.join(map(str, box))}")
    return files | {"photo_boxes.csv": "\n".join(rows) + "\n"}


def make_masks(rng: np.random.Generator) -> Files:
    """Images of one object, of which some have a mask and others a box."""
    files: dict[str, str | bytes] = {}
    rows = ["file,class,width,height,xmin,ymin,xmax,ymax"]
    for i in range(10):
        image, mask, box = _draw_object(rng, 96, (190, 120, 40), is_round=True)
        files[f"pebbles/images/pebble_{i + 1}.png"] = encode_png(image)
        if i < 4:
            files[f"pebbles/masks/pebble_{i + 1}.png"] = encode_png(np.where(mask, 255, 0).astype(np.uint8))
        elif i < 8:
            rows.append(f"pebble_{i + 1}.png,pebble,96,96,{','.join(map(str, box))}")
    return files | {"pebbles/boxes.csv": "\n".join(rows) + "\n"}


def make_trees(rng: np.random.Generator) -> Files:
    """Bracketed trees, and tagged sentences to parse."""

    def phrase(deep: bool) -> str:
        noun = f"(DT the) (NN {rng.choice(['dog', 'cat', 'bird'])})"
        return f"(NP (NP {noun}) (PP (IN near) {phrase(False)}))" if deep else f"(NP {noun})"

    def clause() -> str:
        verb = rng.choice(["sees", "likes"])
        return f"(ROOT (S {phrase(rng.random() < 0.4)} (VP (VBZ {verb}) {phrase(rng.random() < 0.4)})))"

    trees = "".join(f"{clause()}\n" for _ in range(60))
    words = ["the\tDT", "bird\tNN", "near\tIN", "the\tDT", "dog\tNN", "sees\tVBZ", "the\tDT", "cat\tNN"]
    return {"trees.ptb": trees, "sentences.tsv": "\n".join(words) + "\n"}


def make_tags(rng: np.random.Generator) -> Files:
    """Sentences with a tag per word, and words to tag."""
    sentences = [[(rng.choice(WORDS[tag]), tag) for tag in PATTERNS[rng.integers(len(PATTERNS))]] for _ in range(160)]
    train = "\n".join("".join(f"{word}\t{tag}\n" for word, tag in sentence) for sentence in sentences[:150])
    words = "\n".join("".join(f"{word}\n" for word, _ in sentence) for sentence in sentences[150:])
    return {"tagged.tsv": train, "words.txt": words}


def make_sounds(rng: np.random.Generator) -> Files:
    """Strings of tones in wav files, most of them with a transcript, which has no times."""
    from scipy.io import wavfile

    files: dict[str, str | bytes] = {}
    rows, rate = ["file\ttranscript"], 8000
    for i in range(24):
        words = rng.choice(list(TONES), rng.integers(2, 5)).tolist()
        parts = [0.002 * rng.standard_normal(1200)]
        for word in words:
            time = np.arange(int(rng.integers(1600, 3200))) / rate
            parts += [0.5 * np.sin(2 * np.pi * TONES[word] * time), 0.002 * rng.standard_normal(1200)]
        stream = io.BytesIO()
        wavfile.write(stream, rate, np.round(32000 * np.concatenate(parts)).astype(np.int16))
        files[f"sounds/sound_{i + 1:02}.wav"] = stream.getvalue()
        if i < 20:
            rows.append(f"sound_{i + 1:02}.wav\t{' '.join(words)}")
    return files | {"sounds.tsv": "\n".join(rows) + "\n"}


def make_tales(rng: np.random.Generator) -> Files:
    """Short tales in CoNLL-2012 format, with clusters of mentions in the last column."""
    return {f"tales/{'new' if i >= 12 else 'train'}_{i + 1}.conll": _tell_tale(rng, f"tale_{i + 1}") for i in range(14)}


def make_translations(rng: np.random.Generator) -> Files:
    """English sentences with their French translations, word for word in another order."""
    nouns, adjectives, verbs = ("dog", "tree", "bird", "house"), ("old", "small"), ("sees", "finds", "likes", "hears")
    lines = []
    for _ in range(200):
        one, other = rng.choice(nouns, 2, replace=False)
        english = ["the", rng.choice(adjectives), one, rng.choice(verbs), "the", other, rng.choice(("today", "here"))]
        order = (6, 0, 2, 1, 3, 4, 5)
        lines.append(" ".join(english) + " ||| " + " ".join(FRENCH[english[k]] for k in order))
    return {"sentences.en-fr": "\n".join(lines) + "\n"}


def make_reviews(rng: np.random.Generator) -> Files:
    """Reviews of which one or two sentences decide whether they are positive."""
    lines = []
    for i in range(120):
        opinions = rng.choice(GOOD if i % 2 else BAD, rng.integers(1, 3), replace=False)
        sentences = rng.permutation([*rng.choice(NEUTRAL, 4, replace=False), *opinions]).tolist()
        lines.append(json.dumps({"id": f"review {i + 1}", "sentences": sentences, "label": "good" if i % 2 else "bad"}))
    return {"reviews.jsonl": "\n".join(lines) + "\n"}


def make_molecules(rng: np.random.Generator) -> Files:
    """Conformations of molecules, a row each; one conformation of an active molecule has a large first number."""
    lines = ["molecule,active,x1,x2,x3"]
    for i in range(40):
        rows = rng.standard_normal((rng.integers(2, 6), 3))
        rows[rng.integers(len(rows)), 0] += 5 * (i % 2)
        label = "yes" if i % 2 else "no"
        lines += [f"molecule {i + 1},{label}," + ",".join(f"{value:.3f}" for value in row) for row in rows]
    return {"molecules.csv": "\n".join(lines) + "\n"}


EXAMPLES = {
    "motif": ExampleSet(make_sequences, "tacit motif bound.fa unbound.fa --out motifs"),
    "scan": ExampleSet(lambda rng: {}, "tacit scan motifs/model.tacit genome.fa --out sites"),
    "locate": ExampleSet(make_photos, "tacit locate photos --evaluate photo_boxes.csv --out boxes"),
    "segment": ExampleSet(make_masks, "tacit segment pebbles --out masks"),
    "bags": ExampleSet(make_molecules, "tacit bags molecules.csv --bag molecule --label active --out bags"),
    "transcribe": ExampleSet(make_sounds, "tacit transcribe sounds --transcripts sounds.tsv --out spoken"),
    "tag": ExampleSet(make_tags, "tacit tag tagged.tsv --predict words.txt --out tags"),
    "parse": ExampleSet(make_trees, "tacit parse trees.ptb --predict sentences.tsv --out trees"),
    "coref": ExampleSet(make_tales, "tacit coref tales/train_*.conll --predict tales/new_*.conll --out who"),
    "align": ExampleSet(make_translations, "tacit align sentences.en-fr --out links"),
    "reasons": ExampleSet(make_reviews, "tacit reasons reviews.jsonl --out reasons"),
    "summarise": ExampleSet(lambda rng: {}, "tacit summarise reviews.jsonl --out summaries"),
}
"""The files and the call of every command that reads files."""


@click.command(epilog=commands.examples("tacit examples --out examples"))
@commands.run_options(out="examples", is_parallel=False)
def examples(run: commands.CommandRun) -> None:
    """Write small input files for every command, to try it.

    Prints the commands that read the files, and writes them to commands.txt.
    """
    with run.writing() as folder:
        for example in EXAMPLES.values():
            for name, content in example.make(np.random.default_rng(run.seed)).items():
                if isinstance(content, bytes):
                    folder.write_bytes(name, content)
                else:
                    folder.write_text(name, content)
        folder.write_text("commands.txt", "".join(example.call + "\n" for example in EXAMPLES.values()))
    for example in EXAMPLES.values():
        run.say(example.call)
    found = f"{len(EXAMPLES)} commands to try"
    run.finish(found, "their input files are generated", f"cd {run.out}, and run the commands above")


def _draw_meadow(rng: np.random.Generator, size: int, *, is_ball: bool) -> tuple[Array, tuple[int, int, int, int]]:
    """An image of a striped ball or a wooden crate between grass and sky, and the box of the object."""
    from scipy import ndimage

    down, across = np.mgrid[:size, :size]
    blades = 40 * ndimage.gaussian_filter(rng.normal(size=(size, size)), 1.2)[..., None]
    grass = np.array([70, 110, 45]) + blades * np.array([1, 1.2, 0.5])
    sky = np.array([120, 160, 225]) + down[..., None] / size * np.array([80, 60, 0])
    image = np.where((down >= rng.integers(size // 3, 2 * size // 3))[..., None], grass, sky)
    side = int(rng.integers(int(0.4 * size), int(0.65 * size)))
    left, top = (int(v) for v in rng.integers(4, size - side - 4, 2))
    u, v = (across - left) / side, (down - top) / side
    stripe = np.floor(5 * (u if is_ball else v)) % 2 == 0
    if is_ball:
        mask = (u - 0.5) ** 2 + (v - 0.5) ** 2 <= 0.25
        colours = np.where(stripe[..., None], [210, 50, 45], [240, 225, 200])
    else:
        mask = (np.minimum(u, v) >= 0) & (np.maximum(u, v) < 1)
        frame = (np.abs(u - 0.5) > 0.42) | (np.abs(v - 0.5) > 0.42) | (np.abs(u - v) < 0.06)
        colours = np.where(stripe[..., None], [150, 105, 60], [130, 88, 48])
        colours = np.where(frame[..., None], [95, 62, 35], colours)
    image = np.where(mask[..., None], colours, image) + rng.normal(0, 4, (size, size, 1))
    return image.clip(0, 255).astype(np.uint8), (left, top, left + side, top + side)


def _draw_object(
    rng: np.random.Generator, size: int, colour: tuple[int, int, int], *, is_round: bool
) -> tuple[Array, Array, tuple[int, int, int, int]]:
    """An image of one object on a ground of noise, its mask and its box."""
    ground = rng.integers(90, 150, (size // 8, size // 8, 3)).repeat(8, axis=0).repeat(8, axis=1)
    half = int(rng.integers(size // 6, size // 4))
    x, y = (int(v) for v in rng.integers(half, size - half, 2))
    across, down = np.abs(np.arange(size) - x)[None, :], np.abs(np.arange(size) - y)[:, None]
    mask = across**2 + down**2 <= half**2 if is_round else np.maximum(across, down) <= half
    image = np.where(mask[..., None], np.array(colour), ground) + rng.integers(-12, 13, (size, size, 3))
    box = x - half, y - half, min(x + half + 1, size), min(y + half + 1, size)
    return image.clip(0, 255).astype(np.uint8), mask, box


def _tell_tale(rng: np.random.Generator, name: str) -> str:
    """A tale of a woman and a man, by names and pronouns; the last column opens and closes mentions."""
    people = [str(rng.choice(["Alice", "Emma"])), str(rng.choice(["Bob", "Tom"]))]
    told = [[(people[0], 0), ("met", None), (people[1], 1), (".", None)]]
    for _ in range(3):
        one = int(rng.integers(2))
        words = PEOPLE[people[one]][0], "greeted", PEOPLE[people[1 - one]][1], "."
        told.append(list(zip(words, (one, None, 1 - one, None), strict=True)))
    lines = [f"#begin document ({name}); part 000"]
    for sentence in told:
        lines += [
            f"{name}\t0\t{i}\t{word}\t_\t{'-' if who is None else f'({who})'}" for i, (word, who) in enumerate(sentence)
        ]
        lines.append("")
    return "\n".join([*lines, "#end document", ""])
