"""Words, tags and paired sequences: spoiled parameters, sentences and files."""

from __future__ import annotations

import numpy as np

from tacit.apps import Tagger
from tacit.datasets import read_conllu, read_tagged, read_two_columns, write_two_columns
from tacit.problems import error_rate
from tacit.signals import cut_frames
from tacit.spectral import FeatureClusters, HashedSymbols, RareWords, SpectralTagger, average_f1
from tacit.text import (
    StepFeatures,
    WordClusters,
    WordFeatures,
    convert_tags,
    find_entities,
    find_invalid_pairs,
    has_entities,
    read_raw_text,
    read_steps,
    score_entities,
    split_text,
    stand_off,
)
from tests.fuzz.draws import Draw
from tests.fuzz.fits import answers
from tests.fuzz.readers import read, write_file
from tests.fuzz.registry import target

CONLLU = "# a\n1\tDogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n2\tbark\tbark\tVERB\tVBP\t_\t0\troot\t_\t_\n\n"


def sentences(draw: Draw):
    """Sentences of a few words, and a tag for each."""
    sizes = [draw.between(1, 6) for _ in range(draw.between(4, 12))] + [4]
    words = [[draw.pick(["the", "dog", "Cats", "é", "9,5"]) for _ in range(size)] for size in sizes]
    tags = [[draw.pick(["N", "V"]) for _ in range(size)] for size in sizes]
    return words, tags


@target("SpectralTagger")
def spectral_taggers(draw: Draw):
    theme = draw.pick(["nothing", "parameters", "data", "asked"])
    words, tags = sentences(draw)
    parameters = {
        "rank": draw.pick([2, draw.whole(1, 5), [1, 2], "auto"]),
        "conditional": draw.pick([False, True, "markov"]),
        "context": draw.pick(["pairs", "tags", "symbols"]),
        "size": draw.whole(1, 50),
        "smoothing": draw.real(0, 2),
        "decoding": draw.pick(["marginal", "viterbi"]),
        "refine": draw.pick([None, None, "em"]),
        "max_iter": draw.whole(1, 4),
        "tol": 1e-4,
        "random_state": 0,
    }
    if parameters["conditional"]:
        parameters["refine"] = None
    model = SpectralTagger(**draw.spoil_some(parameters, float(theme == "parameters")), verbose=0)
    model.fit(**draw.spoil_some({"X": words, "y": tags}, float(theme == "data")))
    asked = draw.spoil(words) if theme == "asked" else words
    asking = [
        lambda: model.predict_proba(asked),
        lambda: model.filter_proba(asked),
        lambda: float(len(model.predict(asked))),
    ]
    return answers(asking)


@target("average_f1")
def tag_scores(draw: Draw):
    _, tags = sentences(draw)
    other = [[draw.pick(["N", "V", "X"]) for _ in each] for each in tags]
    return average_f1(**draw.spoil_some({"y": tags, "predicted": other}, 0.6))


@target("error_rate")
def transcript_errors(draw: Draw):
    _, tags = sentences(draw)
    other = [[draw.pick(["N", "V", "X"]) for _ in range(draw.between(0, 4))] for _ in tags]
    return error_rate(**draw.spoil_some({"y": tags, "predicted": other}, 0.6))


@target("cut_frames")
def frames_of_signals(draw: Draw):
    rng = np.random.default_rng(draw.between(0, 9))
    signals = [rng.standard_normal(draw.between(100, 2000)) for _ in range(draw.between(1, 3))]
    parameters = {
        "kind": draw.pick(["mfcc", "log-mel"]),
        "step": draw.real(0.005, 0.05),
        "n_mels": draw.whole(13, 40),
        "deltas": draw.whole(0, 2),
        "normalise": draw.pick([True, False, "speech"]),
        "squares": draw.pick([True, False]),
        "warp": draw.real(0.8, 1.2),
    }
    return cut_frames(**draw.spoil_some({"signals": signals, "rate": 8000, **parameters}, 0.6)).values.sum()


@target("WordFeatures")
def word_features(draw: Draw):
    words, _ = sentences(draw)
    parameters = {
        "prefixes": draw.whole(0, 5),
        "suffixes": draw.whole(0, 5),
        "window": draw.whole(0, 3),
        "min_count": draw.whole(1, 3),
        "columns": draw.pick([None, draw.whole(1, 100)]),
    }
    model = WordFeatures(**draw.spoil_some(parameters, 0.3))
    model.fit(draw.spoil(words) if draw.chance(0.5) else words)
    return float(len(model.transform(draw.spoil(words) if draw.chance(0.3) else words)))


@target("RareWords", "HashedSymbols", "FeatureClusters")
def vocabularies(draw: Draw):
    words, _ = sentences(draw)
    tables = [draw.rng.random((len(sentence), 2)) for sentence in words]
    kind = draw.between(0, 3)
    if kind == 0:
        model, data = RareWords(**draw.spoil_some({"min_count": 2, "suffix": 3}, 0.3)), words
    elif kind == 1:
        model, data = HashedSymbols(**draw.spoil_some({"columns": 50}, 0.3)), words
    else:
        model, data = FeatureClusters(**draw.spoil_some({"n_clusters": 3, "random_state": 0}, 0.3)), tables
    return float(len(model.fit(draw.spoil(data) if draw.chance(0.5) else data).transform(data)))


@target("read_conllu", "read_two_columns", "read_tagged", "TaggedWords", "ewt")
def tagged_files(draw: Draw):
    name, text = draw.pick([("a.conllu", CONLLU), ("a.tsv", "Dogs\tN\nbark\tV\n\nCats\tN\n")])
    reader = draw.pick([read_tagged, read_conllu if name == "a.conllu" else read_two_columns])
    return float(len(read(draw, reader, write_file(draw, name, text.encode())).words))


@target("write_two_columns")
def tagged_writers(draw: Draw):
    words, tags = sentences(draw)
    given = draw.spoil_some({"path": draw.folder / "out.tsv", "words": words, "tags": tags}, 0.6)
    write_two_columns(**given)
    return np.zeros(1)


@target("RawText", "read_raw_text", "split_text", "stand_off")
def raw_texts(draw: Draw):
    text = "Dr. Grey didn't wait. “Oh!” 3.5 l'eau\n\nEnd…"
    raw = split_text(**draw.spoil_some({"text": text}, 0.5))
    spans = [(int(a), int(b), "word") for own in raw.spans for a, b in own]
    stand_off(**draw.spoil_some({"text": raw.text, "spans": spans}, 0.4))
    return float(len(read(draw, read_raw_text, write_file(draw, "a.txt", text.encode())).words))


@target("WordClusters")
def word_clusters(draw: Draw):
    words, _ = sentences(draw)
    given = {"n_clusters": draw.between(2, 4), "rank": draw.between(1, 3), "min_count": 1, "random_state": 0}
    model = WordClusters(**draw.spoil_some(given, 0.4)).fit(**draw.spoil_some({"X": words}, 0.5))
    return float(model.codes_.max())


@target(
    *("Entity", "EntityScore", "EntityScores", "find_entities", "find_invalid_pairs", "has_entities"),
    *("convert_tags", "score_entities"),
)
def entities(draw: Draw):
    choices = ["O", "B-a", "I-a", "B-b", "I-b", "E-a", "S-b"]
    tags = [[draw.pick(choices) for _ in range(draw.between(1, 4))] for _ in range(3)]
    other = [[draw.pick(choices) for _ in own] for own in tags]
    scores = score_entities(**draw.spoil_some({"true": tags, "predicted": other}, 0.6))
    find_invalid_pairs(**draw.spoil_some({"sentences": tags}, 0.4))
    has_entities(**draw.spoil_some({"tags": tags[0]}, 0.4))
    find_entities(**draw.spoil_some({"tags": tags[0]}, 0.4))
    convert_tags(**draw.spoil_some({"tags": tags[0], "scheme": draw.pick(["bio", "iobes"])}, 0.4))
    return [scores.macro_f1, scores.overall.f1, scores.overall.precision, scores.overall.recall]


@target("StepFeatures", "read_steps")
def time_steps(draw: Draw):
    lines = ["sequence,x,y,tag", *(f"{k // 3},{draw.real(-1, 1)},{k % 2},{'ab'[k % 2]}" for k in range(9))]
    found, _ = read(draw, read_steps, write_file(draw, "a.csv", "\n".join(lines).encode()))
    steps = [draw.rng.normal(size=(4, 2)) for _ in range(4)]
    parameters = draw.spoil_some({"window": draw.whole(0, 3)}, 0.3)
    table = StepFeatures(**parameters).fit_transform(**draw.spoil_some({"X": steps}, 0.5))
    tagger = Tagger(**parameters, verbose=0).fit(**draw.spoil_some({"X": steps, "y": [["a", "b"] * 2] * 4}, 0.5))
    return float(len(table) + len(found.words) + len(tagger.predict(steps)))
