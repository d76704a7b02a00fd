"""Parallel text, word links and documents: damaged files, odd sentences, links to words that are not there."""

from __future__ import annotations

from tacit import HiddenCRF, Links, text
from tacit.apps import Parser, ReasonFinder, Summariser, WordAligner
from tacit.problems import Tree
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


@target("read_trees", "parse_scores", "ParseScores", "SpanScore")
def bracketed(draw: Draw):
    trees = text.read_trees(write_file(draw, "trees", b"(ROOT (S (NP (PRP it))\n (VP (VBZ rains))))\n(S (UH oh))\n"))
    scores = text.parse_scores(**draw.spoil_some({"true": trees, "predicted": trees[::1]}, 0.3))
    return [scores.exact, scores.sentence_f1()]


@target("split_path", "SplitStep")
def split_trees(draw: Draw):
    trees = ["(S (NP (NP (N a)) (N b)) (V b))", "(S (N b) (VP (N b) (V b)))"]
    data = draw.spoil_some({"X": ["a/N b/N b/V", "b/N b/N b/V"], "y": trees}, 0.3)
    learner = HiddenCRF(Tree(spans=False, min_count=1), C=draw.real(0.1, 10), max_iter=3, verbose=0)
    parameters = {"rounds": draw.whole(1, 2), "share": draw.real(0, 1), "random_state": 0}
    path = text.split_path(**draw.spoil_some({"learner": learner}, 0.1), **data, **draw.spoil_some(parameters, 0.3))
    return [step.model.objective_ for step in path]


@target("Parser")
def parsers(draw: Draw):
    pool = ["(S (NP (D a) (N b)) (V b))", "(NP (D a) (N a) (N b))", "(S (V a))", "(S (NP (N a)) (VP (V b)))"]
    trees = [draw.pick(pool) for _ in range(draw.between(3, 6))]
    parameters = {"states": draw.whole(1, 2), "max_iter": 2, "C": draw.real(0.1, 1), "spans": draw.chance(0.5)}
    parser = Parser(**draw.spoil_some(parameters, 0.3), verbose=0)
    parser.fit(**draw.spoil_some({"trees": trees}, 0.3))
    return len(parser.predict(**draw.spoil_some({"X": [["a", "b"], [("a", "D"), ("b", "N")]]}, 0.3)))


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


@target("Summariser")
def summaries(draw: Draw):
    texts = ["A film. It is dull. So it ends."] * 3 + ["A play. It is fine! Then home."] * 3
    data = {"texts": texts, "summaries": draw.pick([None, ["It is dull.", None] * 3]), "y": ["-"] * 3 + ["+"] * 3}
    model = Summariser(**draw.spoil_some({"share": draw.real(0, 1), "min_documents": 1}, 0.3), verbose=0)
    model.fit(**draw.spoil_some(data, 0.5))
    return float(sum(map(len, model.predict(draw.pick([texts, draw.spoil(texts)])))))
