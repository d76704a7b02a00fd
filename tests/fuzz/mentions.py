"""Documents with mentions: damaged files, odd spans and clusters, and fits to them."""

from __future__ import annotations

from tacit import LatentPerceptron, text
from tacit.problems import Coreference
from tests.fuzz.draws import Draw
from tests.fuzz.fits import answers
from tests.fuzz.readers import write_file
from tests.fuzz.registry import target

CONLL = b"""#begin document (tale); part 000
tale 0 0 Alice - - - - - - - - (0)
tale 0 1 saw - - - - - - - - -
tale 0 2 her - - - - - - - - (1|(0)
tale 0 3 sister - - - - - - - - 1)

#end document
"""
JSON = b'[{"name": "tale", "sentences": [["Alice", "saw", "her"]], "mentions": [[0, 1], [2, 3]], "clusters": [0, 0]}]'


def tale(draw: Draw) -> dict:
    return {
        "sentences": [["Alice", "saw", "Bob", "."], ["She", "left", "him", "."]],
        "mentions": [(0, 1), (2, 3), (4, 5), (6, 7)],
        "clusters": draw.pick([None, [0, 1, 0, 1]]),
    }


@target("Document", "mention_pairs", "MentionPairs")
def documents_with_mentions(draw: Draw):
    document = text.Document(**draw.spoil_some(tale(draw)))
    given = draw.spoil_some({"documents": [document], "candidates": draw.whole(1, 5), "text": True})
    return text.mention_pairs(**given).values


@target("read_conll", "write_conll", "read_json", "write_json")
def mention_files(draw: Draw):
    read, write, name, content = draw.pick(
        [(text.read_conll, text.write_conll, "a.conll", CONLL), (text.read_json, text.write_json, "a.json", JSON)]
    )
    found = read(write_file(draw, name, content))
    write(draw.folder / "out", draw.spoil(found) if draw.chance(0.3) else found)
    return float(len(found))


@target("coreference_scores", "CoreferenceScores", "Score")
def coreference_measures(draw: Draw):
    clusters = [[draw.between(0, 3) for _ in range(5)] for _ in range(2)]
    return list(text.coreference_scores(**draw.spoil_some({"gold": clusters, "predicted": clusters})).values())


@target("Coreference")
def coreference(draw: Draw):
    problem = Coreference(
        **draw.spoil_some({"links": draw.pick(["left", "forest"]), "r": draw.real(0, 1), "candidates": 5})
    )
    document = text.Document(**(tale(draw) | {"clusters": None}))
    data = draw.spoil_some({"X": [document, document], "y": [[0, 1, 0, 1], [0, 1, 0, 0]]})
    model = LatentPerceptron(problem, epochs=2, verbose=0).fit(**data)
    other = draw.spoil(data["X"]) if draw.chance(0.3) else data["X"]
    return [model.coef_, *answers([lambda: model.predict(other).values, lambda: model.score(other, data["y"])])]
