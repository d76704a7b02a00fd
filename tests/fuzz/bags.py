"""Containers, boxes, windows and generators."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import sparse

import tacit
from tacit import BagClassifier, LatentSVM, MinEntropySVM, Ragged, StructuredSVM, boxes
from tacit.datasets import BoxTable, drawn_digits, join_boxes, planted_motif
from tacit.problems import Bags, Candidates, FeatureMap
from tests.fuzz.draws import Draw
from tests.fuzz.registry import target


@target("Ragged")
def ragged(draw: Draw):
    rows, d = draw.between(1, 6), draw.between(1, 3)
    values = draw.pick([np.ones((rows, d)), np.arange(rows), sparse.csr_array(np.ones((rows, d))), [[1.0] * d] * rows])
    cuts = np.sort(draw.rng.integers(0, rows + 1, draw.between(0, 3)))
    given = {"values": values, "offsets": np.concatenate([[0], cuts, [rows]]), "boxes": None}
    if draw.chance(0.3):
        given["boxes"] = np.tile([0.0, 0, 1, 1], (rows, 1))
    bags = Ragged(**draw.spoil_some(given, share=0.7))
    keys = (0, -1, slice(None, None, -1), [0], np.array([0]), ..., np.ones(len(bags), bool))
    key = draw.odd() if draw.chance(0.5) else draw.pick(keys)
    parts = [bags.lengths.astype(float)]
    if len(bags):
        parts.append(np.shape(bags[key]))
    return parts


@target()
def ragged_makers(draw: Draw):
    samples = [np.ones((draw.between(0, 3), 2)) for _ in range(draw.between(1, 3))]
    frame = pd.DataFrame({"id": [0, 0, 1], "x": [1.0, 2.0, 3.0]})
    tables = [[[0, 0, 1, 1]] * len(sample) for sample in samples]
    bags = Ragged.from_list(samples)
    calls = (
        lambda: Ragged.of(draw.spoil(samples)),
        lambda: Ragged.of(draw.odd()),
        lambda: Ragged.from_list(draw.spoil(samples)),
        lambda: Ragged.from_frame(draw.spoil(frame) if draw.chance(0.5) else frame, draw.pick(["id", draw.odd()])),
        lambda: bags.with_boxes(draw.spoil(tables)),
        lambda: Ragged.concatenate(draw.spoil([bags, bags])),
        lambda: bags.map(draw.pick([draw.odd(), lambda rows: rows[:1], lambda rows: rows * 2])),
    )
    return len(draw.pick(calls)())


def bags_with_boxes(draw: Draw):
    n = draw.between(2, 4)
    corners = draw.rng.random((2 * n, 2)) * 5
    return Ragged(draw.rng.random((2 * n, 3)), np.arange(n + 1) * 2).with_boxes(np.hstack([corners, corners + 2]))


@target("overlap", "nearest", "Nearest", "pick_boxes", "average_precision")
def box_arithmetic(draw: Draw):
    bags = bags_with_boxes(draw)
    n = len(bags)
    drawn = bags.boxes[::2].copy()
    ranks = {"scores": np.arange(n) / n, "is_right": np.arange(n) % 2 == 0, "n_objects": n}
    calls = (
        lambda: np.nan_to_num(boxes.overlap(**draw.spoil_some({"first": drawn, "second": drawn[0]}))),
        lambda: boxes.nearest(**draw.spoil_some({"bags": bags, "boxes": drawn})).overlap,
        lambda: np.nan_to_num(boxes.pick_boxes(**draw.spoil_some({"bags": bags, "hidden": np.zeros(n, int)}))),
        lambda: boxes.average_precision(**draw.spoil_some(ranks)),
    )
    return draw.pick(calls)()


@target("predict_boxes", "report_boxes", "BoxReport", "FoundBoxes")
def box_reports(draw: Draw):
    bags = bags_with_boxes(draw)
    y = np.arange(len(bags)) % 2
    model = StructuredSVM(Candidates(), C=1, verbose=0).fit(bags, y, hidden=np.zeros(len(bags), int))
    given = {"model": model, "bags": bags, "y": y, "boxes": bags.boxes[::2].copy(), "threshold": 0.5}
    if draw.chance(0.5):
        found = boxes.predict_boxes(**draw.spoil_some({"model": model, "bags": bags}))
        return found.boxes, found.scores
    report = boxes.report_boxes(**draw.spoil_some(given))
    return report.mean_overlap, report.share_above


def box_table(draw: Draw, n: int) -> BoxTable:
    corners = draw.rng.integers(0, 9, (n, 2)).astype(float)
    files = np.array([f"a/{i}.png" for i in range(n)])
    return BoxTable(
        files, np.array(["cat", "dog"])[np.arange(n) % 2], np.hstack([corners, corners + 5]), np.full((n, 2), 40)
    )


@target("join_boxes", "BoxTable")
def joined_boxes(draw: Draw):
    n = draw.between(1, 4)
    table = box_table(draw, n)
    if draw.chance(0.5):
        table = BoxTable(**draw.spoil_some(table._asdict()))
    files = [str(name) for name in box_table(draw, n).files]
    given = {
        "table": table,
        "files": files,
        "y": draw.pick([None, ["cat", "dog", "cat", "dog"][:n]]),
        "several": "error",
    }
    return np.nan_to_num(join_boxes(**draw.spoil_some(given)))


@target("windows")
def window_grids(draw: Draw):
    image = draw.rng.random((draw.between(4, 30), draw.between(4, 30)))
    image = draw.pick([image, (255 * image).astype(np.uint8), np.dstack([image] * draw.between(1, 4)), [image, image]])
    given = {
        "images": image,
        "sizes": [(draw.whole(4, 20), draw.whole(4, 20)) for _ in range(draw.between(1, 2))],
        "stride": draw.whole(1, 9),
        "cells": draw.whole(2, 4),
        "max_pixels": 10**6,
    }
    return tacit.windows(**draw.spoil_some(given), verbose=0)


@target("planted_motif", "drawn_digits", "DrawnDigits")
def generators(draw: Draw):
    planted = {"n": draw.whole(1, 9), "length": draw.whole(12, 30), "motif": "ACGT", "noise": 0.1}
    planted |= {"strands": draw.pick(["one", "both"]), "background": draw.pick([None, draw.whole(1, 4)]), "seed": 0}
    digits = {"n": draw.whole(1, 4), "side": draw.whole(12, 20), "max_angle": draw.real(0, 60)}
    digits |= {"seed": draw.whole(0, 9)}
    if draw.chance(0.5):
        return planted_motif(**draw.spoil_some(planted)).hidden.astype(float)
    return drawn_digits(**draw.spoil_some(digits)).X


@target("Bags")
def bag_rules(draw: Draw):
    rule = draw.pick(["witness", "instances", "both"])
    given = {"rule": rule, "background": draw.pick([None, 0, 1]), "loss": "0/1", "fit_intercept": True}
    learner = draw.pick([LatentSVM, MinEntropySVM])
    if rule == "instances" and learner is LatentSVM:
        given |= {"min_share": 0.25, "max_share": 0.5}
    X, y = [draw.rng.random((draw.between(1, 3), 2)) for _ in range(4)], [0, 1, 0, 1]
    hidden = draw.pick([None, [-1, 0, -1, 0]]) if given["background"] != 1 else None
    data = draw.spoil_some({"X": X, "y": y, "hidden": hidden}, share=0.4)
    model = learner(Bags(**draw.spoil_some(given, share=0.4)), max_iter=2, verbose=0).fit(**data)
    return [model.coef_, model.decision_function(X)]


@target("BagClassifier")
def bag_classifier(draw: Draw):
    given = {"rule": draw.pick(["witness", "instances", "both"]), "kernel": "linear", "C": draw.real(1, 99)}
    given |= {"combine": False, "background": draw.pick([None, 0, 1]), "class_weight": draw.pick([None, "balanced"])}
    X, y = [draw.rng.random((draw.between(1, 3), 2)) for _ in range(6)], [0, 1, 0, 1, 0, 1]
    if draw.chance(0.3):
        frame = pd.DataFrame({"id": np.repeat(range(6), 2), "x": draw.rng.random(12), "y": np.repeat(y, 2)})
        X, y = frame, None
        given |= {"bag": "id", "label": "y"}
    data = draw.spoil_some({"X": X, "y": y, "hidden": None, "sample_weight": draw.pick([None, np.ones(6)])}, share=0.4)
    model = BagClassifier(**draw.spoil_some(given, share=0.4), verbose=0).fit(**data)
    new = draw.spoil(X) if draw.chance(0.3) else X
    return [model.predict_proba(new), model.instance_scores(new).values, model.witnesses(new)]


@target("FeatureMap")
def kernel_features(draw: Draw):
    n = 10
    bags = Ragged(draw.rng.random((3 * n, 2)), np.arange(n + 1) * 3)
    settings = {
        "kernel": draw.pick(["rbf", "fourier", "linear"]),
        "gamma": draw.pick(["auto", 0.5]),
        "scale": draw.chance(0.5),
    }
    problem = FeatureMap(**draw.spoil_some({"problem": draw.pick([Bags(), Candidates()]), **settings}, 0.3))
    learner = LatentSVM(problem, C=1, max_iter=2, verbose=0)
    data = draw.spoil_some({"X": bags, "y": np.arange(n) % 2}, 0.3)
    model = learner.fit(**data)
    return [model.coef_, model.decision_function(draw.pick([bags, draw.spoil(bags)]))]
