"""Arguments of the wrong kind for functions that do not fit: one clear error, raised on purpose."""

import traceback
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import tacit
from tacit import HiddenCRF, LatentSVM, Ragged, StructuredSVM, plot, report, solvers, testing
from tacit.apps import CoreferenceResolver
from tacit.data.parameters import list_entries, plain_array
from tacit.oracle.known_hidden import read_hidden
from tacit.problems import Candidates, Coreference, Multiclass, PerSample, rotations
from tacit.ranking import Triplets, measures
from tacit.spectral import WeightedAutomaton
from tacit.text import Document, mention_pairs, read_conll
from tacit.vision.boxes import FoundBoxes
from tacit.vision.maps.handmade import ColourMap, GradientMap, MapStack, WordMap

SOURCE = Path(tacit.__file__).parent
ENDLESS = np.broadcast_to(1.0, (2**31,))


class Boasting:
    """Claims more entries than there is memory for."""

    def __len__(self):
        return 1 << 62

    def __getitem__(self, i):
        if i > 2:
            raise IndexError(i)
        return float(i)


class Failing:
    """Nobody can go through it."""

    def __len__(self):
        return 3

    def __getitem__(self, i):
        raise RuntimeError("no entries")


TEXT = Document([["Alice", "saw", "her"]], [(0, 1), (2, 3)], [0, 0])
BAGS = Ragged(np.eye(4), [0, 2, 4])
IMAGES = np.zeros((2, 6, 6))
FOUND = FoundBoxes(np.array(["cat", "dog"]), np.array([[0, 0, 4, 4.0], [2, 0, 6, 4]]), np.array([1.5, 0.2]))
TASK = testing.example_task(Multiclass())


def features(x, y):
    return np.array([float(np.sum(x)) * (y == 0)])


CALLS = {
    "qid that repeats without end": lambda: Triplets.from_groups([1, 0], qid=ENDLESS),
    "qid of uneven rows": lambda: Triplets.from_groups([1, 0], qid=[[1], [1, 2]]),
    "qid of a measure": lambda: measures.ndcg([[0, 1]], [[1, 0]], qid=ENDLESS),
    "samples that claim too much": lambda: StructuredSVM(PerSample(features, outputs=[0, 1])).fit(Boasting(), [0, 1]),
    "samples that fail": lambda: StructuredSVM(PerSample(features, outputs=[0, 1])).fit(Failing(), [0, 1, 0]),
    "labels that claim too much": lambda: LatentSVM(Candidates()).fit(BAGS, Boasting()),
    "hidden values of the wrong count": lambda: read_hidden([[0], [1]], [2, 2, 2]),
    "an entry of a document": lambda: TEXT.words(5),
    "the name of a document": lambda: Document([["a"]], [], [], name=np.ones(2)),
    "paths": lambda: read_conll(np.float16(3)),
    "features of mentions": lambda: mention_pairs([TEXT], own=3),
    "an endless image": lambda: GradientMap()(np.broadcast_to(np.uint8(0), (2**31, 160, 3))),
    "colours": lambda: ColourMap()(np.full((9, 9), np.nan)),
    "no images": lambda: WordMap().fit([]),
    "images to learn from": lambda: WordMap().fit(3),
    "clusters": lambda: CoreferenceResolver().fit([TEXT], object()),
    "a tolerance": lambda: WeightedAutomaton([1.0], [[[0.5]]], [0.5]).minimise(np.ones(3)),
    "not an image": lambda: MapStack([GradientMap()])(object()),
    "callbacks": lambda: StructuredSVM(Multiclass(), callbacks=np.array(3)).fit(np.eye(2), [0, 1]),
    "a callback": lambda: StructuredSVM(Multiclass(), callbacks=[3]).fit(np.eye(2), [0, 1]),
    "a task": lambda: solvers.minimise(sparse.eye_array(2), solvers.Bundle()),
    "a solver": lambda: solvers.minimise(TASK, "bundle"),
    "a checkpoint": lambda: solvers.minimise(TASK, solvers.Bundle(), checkpoint="state"),
    "axes": lambda: plot.convergence([solvers.Step(0, 0.0, 9.0, 0.0, 1)], ax=3.0),
    "two axes": lambda: plot.descent([solvers.Step(0, 0.0, 9.0, 0.0, 1)], axes=3.0),
    "bags of a picture": lambda: plot.found_windows(IMAGES, [[1.0]], {"a": None}, [0]),
    "samples of a picture": lambda: plot.found_windows(
        IMAGES, BAGS.with_boxes([[[0, 0, 4, 4], [2, 0, 6, 4]]] * 2), {"a": None}, [np.ones(2)]
    ),
    "titles": lambda: plot.rotated_images(IMAGES, [0, 1], rotations(-45, 45, 3), titles=["a"]),
    "rotations": lambda: plot.rotated_images(IMAGES, [0, 1], [-45, 45]),
    "angles": lambda: plot.mean_images(IMAGES, [0, 1], ["a", "b"], rotations(-45, 45, 3)),
    "images": lambda: plot.mean_images([["a"]], [0, 1], [0, 1], rotations(-45, 45, 3)),
    "boxes of statistics": lambda: plot.box_statistics([[0, 0, 5, 5], [2]], [[10, 10], [10, 10]]),
    "found boxes": lambda: plot.predicted_boxes(IMAGES, ("cat", [0, 0, 1, 1])),
    "images of boxes": lambda: plot.predicted_boxes(sparse.eye_array(2), FOUND),
    "labels of boxes": lambda: plot.predicted_boxes(IMAGES, FOUND, y=np.array(3)),
    "regions": lambda: tacit.regions_in_boxes(3, [[0, 0, 1, 1]]),
    "a series": lambda: report.line_chart([1, 2], "x", "y"),
    "a curve": lambda: report.line_chart({"a": ([1, 2], [1])}, "x", "y"),
    "a range": lambda: report.line_chart({"a": ([1, 2], [1, 2])}, "x", "y", x_range=(2, 1)),
    "points": lambda: report.scatter_chart({"a": ([[1, 2]], [[1, 2]])}, "x", "y"),
    "bins": lambda: report.histogram({"a": [1, 2]}, "x", bins=0.5),
    "a histogram": lambda: report.histogram({"a": [1, 2]}, "x", x_range=3),
    "bars": lambda: report.bar_chart(["a", "b"], [1.0]),
    "no bars": lambda: report.bar_chart([], []),
    "whiskers": lambda: report.bar_chart(["a"], [1.0], intervals=[3.0]),
    "a confusion": lambda: report.confusion_chart(["a", "b"], [[1, 2]]),
    "an array that claims too much": lambda: plain_array(Boasting()),
    "a list that claims too much": lambda: list_entries("X", Boasting()),
    "a list that fails": lambda: list_entries("X", Failing()),
}


@pytest.mark.parametrize("name", CALLS)
def test_bad_calls_end_in_an_error_that_was_raised_on_purpose(name):
    with pytest.raises((ValueError, TypeError)) as caught:
        CALLS[name]()
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert SOURCE in Path(last.filename).parents
    assert "raise" in (last.line or "")
    assert len(str(caught.value)) < 500


def test_probabilities_of_links_name_what_is_missing():
    pairs = mention_pairs([TEXT, TEXT])
    model = HiddenCRF(Coreference("left"), C=1).fit(pairs, [TEXT.clusters, TEXT.clusters])
    with pytest.raises((ValueError, TypeError), match="predict_proba"):
        model.predict_proba(pairs)
