"""Parallel text, word links and documents: damaged files, odd sentences, links to words that are not there."""

from __future__ import annotations

from tacit import Links, text
from tacit.apps import ReasonFinder, WordAligner
from tests.fuzz.draws import Draw
from tests.fuzz.readers import write_file
from tests.fuzz.registry import target


def sentence_pairs(draw: Draw):
    n = draw.between(3, 8)
    source = [[f"s{draw.between(0, 9)}" for _ in range(draw.between(1, 4))] for _ in range(n)]
    return source, [["t" + word[1:] for word in words] for words in source]


@target("read_parallel", "read_links", "write_links", "format_links")
def link_files(draw: Draw):
    links = text.read_links(write_file(draw, "links", b"1-1 2p3 4-4\n\n3-1\n"))
    pairs = text.read_parallel(write_file(draw, "text", b"a b ||| c d\nx ||| y\n"))
    given = draw.spoil_some({"links": [own.sure for own in links], "first": draw.whole(0, 1)})
    text.write_links(draw.folder / "out", **given)
    return len(text.format_links(**given)) + len(pairs)


@target("alignment_scores", "symmetrise", "Links")
def link_sets(draw: Draw):
    one, two = ([(draw.between(0, 3), draw.between(0, 3)) for _ in range(draw.between(0, 4))] for _ in range(2))
    way = draw.pick(["intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and"])
    joined = text.symmetrise(**draw.spoil_some({"forward": one, "backward": two, "method": way}, 0.3))
    gold = [Links(**draw.spoil_some({"sure": one, "possible": two}, 0.3))]
    return text.alignment_scores(**draw.spoil_some({"found": [joined], "gold": gold}, 0.3))


@target("IBM1", "WordPairs")
def translations(draw: Draw):
    source, target = sentence_pairs(draw)
    given = draw.spoil_some({"source": source, "target": target}, 0.3)
    parameters = {"diagonal": draw.real(0, 9), "null": draw.real(0, 0.9), "alpha": draw.real(0.01, 1), "n_iter": 2}
    model = text.IBM1(**draw.spoil_some(parameters, 0.3)).fit(**given)
    pairs = text.WordPairs(**draw.spoil_some({"folds": draw.whole(0, 4), "n_iter": 2, "random_state": 0}, 0.3))
    found = pairs.fit_transform(**given)
    return [
        *model.posteriors(**draw.spoil_some(given, 0.3)),
        found.values,
        pairs.transform_mismatched(draw.pick([1, 1, draw.odd()]))[0].values,
    ]


@target("SentenceVectors", "reasons")
def documents(draw: Draw):
    texts = ["A plot. A fine film!", ["dull", "film"], "", "Dull? Plot."]
    data = draw.spoil_some({"texts": texts, "y": ["+", "-", "+", "-"]}, 0.3)
    parameters = {"share": draw.real(0.1, 0.9), "budget": draw.pick(["sentences", "words"]), "min_documents": 1}
    finder = ReasonFinder(**draw.spoil_some(parameters, 0.3), verbose=0).fit(**data)
    vectors = text.SentenceVectors(**draw.spoil_some({"min_documents": 1, "with_lengths": draw.chance(0.5)}, 0.3))
    vectors.fit_transform(data["texts"])
    return [
        decision.margin
        for decision in text.reasons(finder.model_, finder._vectors(draw.pick([texts, draw.spoil(texts)])))
    ]


@target("WordAligner")
def aligners(draw: Draw):
    source, target = sentence_pairs(draw)
    gold = draw.pick([None, [draw.pick([None, Links([(0, 0)])]) for _ in source]])
    aligner = WordAligner(**draw.spoil_some({"C": draw.real(1, 100), "folds": draw.whole(2, 4)}, 0.3), verbose=0)
    aligner.fit(**draw.spoil_some({"source": source, "target": target, "gold": gold}, 0.3))
    return [
        aligner.scores_.values,
        aligner.predict(**draw.spoil_some({"source": source, "target": target}, 0.3)).values,
    ]
