"""Data sets of `benchmarks.ask`: samples with true hidden values, a learner, and a measure of quality."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import real_data
from benchmarks.motif_peaks import peaks
from benchmarks.partly_known import SIZES, STRIDE, digit_bags
from benchmarks.segmentation_classes import FACTOR, MIN_SIZE, NAMES, SCALE
from benchmarks.sentences import read_fine_grained
from benchmarks.whole_objects import read_data
from tacit import HiddenCRF, LatentSVM, Ragged, StructuredSVM, regions, weak_labels, windows
from tacit.datasets import boxes_csv, drawn_digits, ewt, find_folder, planted_motif
from tacit.dna.files import read_motifs
from tacit.dna.sequences import read_sequences, shuffle_pairs, write_letters
from tacit.problems import Candidates, Chain, Motif, Sentences, Transforms, rotations
from tacit.solvers import Subgradient
from tacit.text import SentenceVectors, WordFeatures
from tacit.vision.boxes import nearest, overlap, predict_boxes
from tacit.vision.photos import read_image, read_photo, scale_image
from tacit.vision.regions.class_labels import VOID, read_class_names
from tacit.vision.segmentation.class_segmenter import TOL, class_problem, label_classes
from tacit.vision.segmentation.segmenter import region_problem


class Data(NamedTuple):
    """One draw of a data set: how to learn from the samples with known answers, and the quality on held-out samples.

    ``learn`` takes a mask of the samples that were answered, and returns the model and the arguments of `ask`. Where
    ``offsets`` are given, answers are single parts, such as tags, and the mask has one entry per part.
    """

    n: int
    first: int
    learn: Callable[[np.ndarray], tuple[Any, dict[str, Any]]]
    quality: Callable[[Any], float]
    can_ask: np.ndarray | None = None
    offsets: np.ndarray | None = None


def with_hidden(
    model: Any, X: Any, y: Any, truth: Any, quality: Callable[[Any], float], first: int, **more: Any
) -> Data:
    """Samples with one hidden value each: a position, or a list of them."""

    def learn(known: np.ndarray) -> tuple[Any, dict[str, Any]]:
        if isinstance(truth, np.ndarray):
            hidden = np.where(known.reshape(-1, *[1] * (truth.ndim - 1)), truth, -1)
        else:
            hidden = [own if is_known else None for own, is_known in zip(truth, known, strict=True)]
        return model.fit(X, y, hidden=hidden), {"X": X, "y": y, "hidden": hidden}

    return Data(len(y), first, learn, quality, **more)


def learner(problem: Any, C: float = 100.0, **more: Any) -> LatentSVM:
    return LatentSVM(problem, **{"C": C, "tol": 1e-2, "unknown_weight": 1.0, "verbose": 0, **more})


def planted_bags(draw: int) -> Data:
    """Gaussian noise, one instance per bag shifted by its class; four classes, ten instances, weak signal."""
    rng = np.random.default_rng(draw)

    def bags(n: int) -> tuple[Ragged, np.ndarray, np.ndarray]:
        X, y, place = rng.standard_normal((n, 10, 20)), rng.integers(0, 4, n), rng.integers(0, 10, n)
        X[np.arange(n), place, :] += 2.0 * np.eye(4, 20)[y] + 1.0 * np.eye(20)[10]
        return Ragged(X.reshape(-1, 20), 10 * np.arange(n + 1)), y, place

    (X, y, truth), (Z, z, places) = bags(300), bags(600)
    return with_hidden(learner(Candidates(), 10.0), X, y, truth, lambda m: m.score_hidden(Z, z, places), 5)


def bags_for_timing(n: int) -> tuple[LatentSVM, Ragged, np.ndarray]:
    """A learner that is not fitted, bags and labels."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, 10, 20)), rng.integers(0, 4, n)
    X[np.arange(n), rng.integers(0, 10, n), :] += 2.0 * np.eye(4, 20)[y]
    return learner(Candidates(), 10.0), Ragged(X.reshape(-1, 20), 10 * np.arange(n + 1)), y


def bags_of_digits(draw: int) -> Data:
    rng = np.random.default_rng(draw)
    (X, y, truth), (Z, z, places) = digit_bags(150, rng, 12), digit_bags(600, rng, 12)
    return with_hidden(learner(Candidates()), X, y, truth, lambda m: m.score_hidden(Z, z, places), 3)


def motif(draw: int) -> Data:
    X, y, truth = planted_motif(200, 60, "ACGTTGCA", noise=0.35, seed=2 * draw)
    Z, z, places = planted_motif(600, 60, "ACGTTGCA", noise=0.35, seed=2 * draw + 1)
    is_there = z == 1
    model = learner(Motif(width=8))
    return with_hidden(
        model, X, y, truth, lambda m: m.score_hidden(Z[is_there], z[is_there], places[is_there]), 3, can_ask=y == 1
    )


def rotated_digits(draw: int) -> Data:
    turns = rotations(-60, 60, 11)

    def digits(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        found = drawn_digits(n, side=16, seed=seed)
        keep = np.isin(found.y, (2, 3, 6, 7))
        state = np.argmin(np.abs(np.array(turns.states)[None, :] + found.angles[:, None]), axis=1)
        return found.X[keep], found.y[keep], state[keep]

    (X, y, truth), (Z, z, places) = digits(500, 2 * draw), digits(750, 2 * draw + 1)
    model = learner(Transforms(turns, n_components=20))
    return with_hidden(model, X, y, truth, lambda m: float(np.mean(np.abs(m.impute(Z, z) - places) <= 1)), 4)


def photos(name: str) -> Callable[[int], Data]:
    def make(draw: int) -> Data:
        folder = find_folder(None, name)
        files, y, boxes, _ = boxes_csv(folder / "boxes.csv")
        kinds, counts = np.unique(y, return_counts=True)
        keep = np.isin(y, kinds[np.argsort(-counts, kind="stable")[:2]])
        files, y, boxes = np.asarray(files)[keep], y[keep], boxes[keep]
        cache = Path(tempfile.gettempdir()) / "tacit-windows"
        bags = windows([folder / str(file) for file in files], SIZES[name], STRIDE, cache=cache)
        order = np.random.default_rng(draw).permutation(len(y))
        train, test = np.sort(order[: int(0.6 * len(y))]), np.sort(order[int(0.6 * len(y)) :])
        truth = nearest(bags, boxes).hidden

        def quality(model: Any) -> float:
            return float(overlap(predict_boxes(model, bags[test]).boxes, boxes[test]).mean())

        return with_hidden(learner(Candidates()), bags[train], y[train], truth[train], quality, 3)

    return make


KANGAROO_SIDE, KANGAROO_SIZES = 160, [(48, 48), (64, 64), (48, 96), (96, 64), (96, 112)]


@cache
def kangaroo_windows() -> tuple[Any, np.ndarray, np.ndarray]:
    """Windows of photos scaled down, labels, and the box of the largest animal; photos of msrc are the second class."""
    found = read_data("kangaroo")
    pixels = [np.asarray(read_photo(file)) for file in found.files]
    scales = [KANGAROO_SIDE / max(own.shape[:2]) for own in pixels]
    boxes = np.tile([0.0, 0.0, 9.0, 9.0], (len(pixels), 1))  # that of photos without an animal is not used
    for i, own in enumerate(found.boxes):
        if len(own):
            boxes[i] = scales[i] * own[np.argmax((own[:, 2] - own[:, 0]) * (own[:, 3] - own[:, 1]))]
    bags = windows([scale_image(own, KANGAROO_SIDE) for own in pixels], KANGAROO_SIZES, STRIDE)
    return bags, found.y, boxes


def kangaroos(draw: int) -> Data:
    bags, y, boxes = kangaroo_windows()
    order = np.random.default_rng(draw).permutation(len(y))
    train, test = np.sort(order[:130]), np.sort(order[130:])
    test = test[y[test] != "none"]
    truth = np.where(y == "none", -1, nearest(bags, boxes).hidden)

    def quality(model: Any) -> float:
        rows = bags.offsets[test] + model.impute(bags[test], y[test])
        return float(overlap(bags.boxes[rows], boxes[test]).mean())

    is_animal = y[train] != "none"
    return with_hidden(learner(Candidates()), bags[train], y[train], truth[train], quality, 3, can_ask=is_animal)


def sentences(draw: int) -> Data:
    """Two of twenty sentences have one of twenty marking words and a word of the label; others have other words."""
    rng = np.random.default_rng(draw)
    y, texts, truth = np.where(rng.random(500) < 0.5, "pos", "neg"), [], []
    for label in y:
        truth.append(sorted(rng.choice(20, 2, replace=False).tolist()))
        lines = []
        for t in range(20):
            side = label if t in truth[-1] and rng.random() < 0.7 else rng.choice(["pos", "neg"])
            kind = "mark" if t in truth[-1] else "other"
            words = [f"plot{rng.integers(200)}" for _ in range(5)]
            lines.append(" ".join([*words, f"{kind}{rng.integers(20)}", f"{side}{rng.integers(10)}"]))
        texts.append(lines)
    X = SentenceVectors().fit_transform(texts)

    def quality(model: Any) -> float:
        found = model.impute(X[200:], y[200:])
        return float(np.mean([len(set(own) & set(true)) / 2 for own, true in zip(found, truth[200:], strict=True)]))

    model = learner(Sentences(share=0.1))
    return with_hidden(model, X[:200], y[:200], truth[:200], quality, 2)


def proteins(draw: int) -> Data:
    """Peaks of the factor ELK1; the site is the best window by its JASPAR matrix, which no model sees."""
    matrix = next(m for m in read_motifs(real_data() / "jaspar" / "matrices.jaspar") if "ELK1" in m.name.upper())
    weights = np.log(matrix.shares + 0.01)
    width = len(weights)
    X, _ = peaks(real_data() / "chip" / "ELK1_AC.tsv.gz")
    rng = np.random.default_rng(draw)
    X = [X[i] for i in rng.permutation(len(X))[:450] if set(X[i].upper()) <= set("ACGT")]

    def site(letters: str) -> tuple[int, int]:
        codes = np.array(["ACGT".index(letter) for letter in letters.upper()])
        rows = np.lib.stride_tricks.sliding_window_view(codes, width)
        scores = [weights[np.arange(width), rows].sum(axis=1), weights[np.arange(width), 3 - rows[:, ::-1]].sum(axis=1)]
        return int(np.argmax(np.max(scores, axis=0))), int(np.argmax(np.max(scores, axis=1)))

    places = np.array([site(letters) for letters in X])
    own, test = X[:150], X[150:]
    both = own + write_letters(shuffle_pairs(read_sequences(own), draw))
    y = np.repeat([1, -1], len(own))
    truth = np.concatenate([places[:150], np.full((len(own), 2), -1)])
    model = learner(Motif(width=width, strands="both"))

    def quality(fitted: Any) -> float:
        found = fitted.impute(test, np.ones(len(test), dtype=np.int64))
        return float(np.mean((np.abs(found[:, 0] - places[150:, 0]) <= 1) & (found[:, 1] == places[150:, 1])))

    return with_hidden(model, both, y, truth, quality, 3, can_ask=y == 1)


@cache
def horse_regions() -> tuple[Any, Any, list[np.ndarray]]:
    folder = real_data() / "horses"
    files = sorted(folder.rglob("*.jpg"))
    masks = [np.asarray(read_image(next(folder.rglob(f"{file.stem}.png")))) for file in files]
    masks = [(mask if mask.ndim == 2 else mask[..., 0]) > 0 for mask in masks]
    graphs = regions(files, cache=Path(tempfile.gettempdir()) / "tacit-regions", verbose=0)
    return graphs, weak_labels(graphs, masks), masks


def with_regions(make: Callable[[int], Any], X: Any, y: Any, quality: Callable[[Any], float], first: int) -> Data:
    """Photos as regions: an answer gives the labels of all. The model learns from the answered ones."""

    def learn(known: np.ndarray) -> tuple[Any, dict[str, Any]]:
        rows = np.flatnonzero(known)
        gaps = [np.asarray(own) if is_known else np.full(len(own), -1) for own, is_known in zip(y, known, strict=True)]
        return make(rows.size).fit(X[rows], y[rows]), {"X": X, "y": gaps}

    return Data(len(X), first, learn, quality)


def horses(draw: int) -> Data:
    graphs, y, masks = horse_regions()
    order = np.random.default_rng(draw).permutation(len(masks))
    train, test = np.sort(order[:180]), np.sort(order[180:])

    def quality(model: Any) -> float:
        found = graphs[test].paint(model.predict(graphs[test]))
        pairs = [(own == 1, masks[i]) for own, i in zip(found, test, strict=True)]
        return float(np.mean([(a & b).sum() / max((a | b).sum(), 1) for a, b in pairs]))

    def make(n: int) -> Any:
        return StructuredSVM(region_problem(graphs), C=float(n), tol=1e-2, verbose=0)

    return with_regions(make, graphs[train], y[train], quality, 3)


@cache
def class_regions() -> tuple[Any, Any]:
    folder = real_data() / "msrc"
    files = sorted((folder / "images").iterdir())
    values = [np.asarray(read_image(folder / "labels" / f"{file.stem}.png")).astype(np.int64) for file in files]
    masks = [np.where(own == 0, VOID, own - 1) for own in values]
    cache_folder = Path(tempfile.gettempdir()) / "tacit-regions"
    graphs = regions(files, scale=SCALE, min_size=MIN_SIZE, cache=cache_folder, verbose=0)
    kept = np.array([i for i, mask in enumerate(masks) if (mask >= 0).any()])
    X, y, _ = label_classes(graphs[kept], [masks[i] for i in kept], None, None, read_class_names(NAMES, None))
    return X, y


def classes_of_regions(draw: int) -> Data:
    X, y = class_regions()
    order = np.random.default_rng(draw).permutation(len(X))
    train, test = np.sort(order[:200]), np.sort(order[200:])

    def quality(model: Any) -> float:
        found = np.concatenate([np.asarray(own) for own in model.predict(X[test])])
        return float(X[test].areas @ (found == np.concatenate(list(y[test]))) / X[test].areas.sum())

    def make(n: int) -> Any:
        problem = class_problem(read_class_names(NAMES, None), "area").set_params(pairwise=False)
        return StructuredSVM(problem, C=FACTOR * n, tol=TOL, verbose=0)

    return with_regions(make, X[train], y[train], quality, 4)


def with_tags(model: Any, X: Any, tags: Any, quality: Callable[[Any], float], first: int, C_each: float = 0.1) -> Data:
    """Sequences: an answer gives one tag. The model learns from sequences with a tag, so that C is per sequence."""
    starts = np.asarray(X.offsets)

    def learn(known: np.ndarray) -> tuple[Any, dict[str, Any]]:
        given = np.where(known, tags.values.astype(object), None)
        y = [given[a:b].tolist() for a, b in pairwise(starts.tolist())]
        rows = np.flatnonzero(np.logical_or.reduceat(known, starts[:-1]))
        model.set_params(C=C_each * rows.size).fit(X[rows], [y[i] for i in rows])
        return model, {"X": X, "y": y}

    return Data(int(starts[-1]), first, learn, quality, offsets=starts)


def letters(draw: int) -> Data:
    data = np.load(real_data() / "letters" / "letters.npz")
    X = Ragged(data["pixels"].astype(np.float32), data["offsets"])
    tags = Ragged(data["letters"].astype(np.int64), data["offsets"])
    order = np.random.default_rng(draw).permutation(len(X))
    train, test = np.sort(order[:700]), np.sort(order[-1000:])
    model = LatentSVM(Chain(fit_intercept=True, classes=list(range(26))), tol=1e-2, verbose=0)
    return with_tags(model, X[train], tags[train], lambda m: m.score(X[test], tags[test]), 80)


def part_of_speech(draw: int) -> Data:
    words, tags = ewt("train")
    order = [i for i in np.random.default_rng(draw).permutation(len(words)).tolist() if len(words[i]) <= 25]
    train, test = order[:400], order[400:700]
    features = WordFeatures(window=1, min_count=2).fit([words[i] for i in train])
    X, Z = features.transform([words[i] for i in train]), features.transform([words[i] for i in test])
    kinds = sorted({tag for own in tags for tag in own})

    def numbered(rows: list[int]) -> Ragged:
        own = [[kinds.index(tag) for tag in tags[i]] for i in rows]
        return Ragged(np.concatenate(own), np.cumsum([0, *map(len, own)]))

    model = LatentSVM(Chain(classes=list(range(len(kinds)))), solver=Subgradient(), max_iter=3, verbose=0)
    known, held_out = numbered(train), numbered(test)
    return with_tags(model, X, known, lambda m: m.score(Z, held_out), 100)


def review_sentences(draw: int) -> Data:
    """Reviews as sequences of sentences, whose opinions are the tags; missing ones are summed over.

    An SVM that imputes missing tags learns less from 240 random single answers: .33 right in place of .45, on six other
    draws. C was chosen there, among 0.1, 1, 3, 10 and 30.
    """
    documents, _, truth = read_fine_grained()
    kinds = sorted({str(own) for review in truth for own in review})
    order = np.random.default_rng(draw).permutation(len(documents)).tolist()
    train, test = order[: int(0.6 * len(order))], order[int(0.6 * len(order)) :]
    vectors = SentenceVectors().fit([documents[i] for i in train])

    def table(rows: list[int]) -> tuple[Ragged, Ragged]:
        found = vectors.transform([documents[i] for i in rows])
        is_sentence = np.ones(found.offsets[-1], dtype=bool)
        is_sentence[found.offsets[:-1]] = False  # the first row is the whole review
        own = [[kinds.index(str(kind)) for kind in truth[i]] for i in rows]
        ends = np.cumsum([0, *map(len, own)])
        return Ragged(found.values[np.flatnonzero(is_sentence)], ends), Ragged(np.concatenate(own), ends)

    (X, tags), (Z, held_out) = table(train), table(test)
    model = HiddenCRF(Chain(classes=list(range(len(kinds)))), tol=1e-3, verbose=0)
    return with_tags(model, X, tags, lambda m: m.score(Z, held_out), 30, C_each=10.0)


SETS: dict[str, Callable[[int], Data]] = {
    "planted bags": planted_bags,
    "motif sites": motif,
    "protein sites": proteins,
    "pets boxes": photos("pets"),
    "kangaroo boxes": kangaroos,
    "horses masks": horses,
    "msrc regions": classes_of_regions,
    "letters": letters,
    "review sentences": review_sentences,
    "planted sentences": sentences,
    "bags of digits": bags_of_digits,
    "angles of drawn digits": rotated_digits,
    "caltech boxes": photos("caltech"),
    "part-of-speech tags": part_of_speech,
}
