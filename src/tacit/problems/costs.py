"""Cost matrices as users write them, and the loss tables they become."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.data.arrays import Array, find_uneven
from tacit.data.parameters import numbers, shorten
from tacit.oracle import LossTable


def read_costs(loss: Any, classes: Array, others: tuple[str, ...] = ()) -> Array:
    """``costs[true, predicted]`` from "0/1" or from a cost matrix in the order of the classes."""
    k = len(classes)
    if isinstance(loss, str):
        if loss != "0/1":
            names = ", ".join(map(repr, ("0/1", *others)))
            raise ValueError(f"loss must be {names} or a cost matrix, got {shorten(loss)}")
        return 1.0 - np.eye(k)
    why = find_uneven(loss)
    if why:
        raise ValueError(f"loss must be '0/1' or a cost matrix of numbers, rows of equal length: {why}")
    costs = numbers("loss", loss, "'0/1' or a cost matrix of numbers, rows of equal length")
    if costs.shape != (k, k):
        raise ValueError(
            f"the cost matrix has shape {costs.shape}, the data have {k} classes {shorten(classes.tolist())}; "
            "give one row per true and one column per predicted class, and classes=[...] if some may be absent"
        )
    if not np.isfinite(costs).all() or (costs < 0).any():
        i, j = np.argwhere(~np.isfinite(costs) | (costs < 0))[0]
        raise ValueError(f"loss[{i}, {j}] is {costs[i, j]}: costs must be finite and not negative")
    if costs.diagonal().any():
        i = int(np.flatnonzero(costs.diagonal())[0])
        raise ValueError(f"loss[{i}, {i}] is {costs[i, i]}: predicting the truth must cost nothing")
    return costs


def class_losses(loss: Any, classes: Array, labels: Array) -> LossTable:
    """The loss table of a cost matrix. A label that training never saw costs 1 under 0/1 loss."""
    costs = read_costs(loss, classes)
    if isinstance(loss, str):
        costs = np.vstack([costs, np.ones(len(classes))])
    elif (labels == len(classes)).any():
        i = int(np.argmax(labels == len(classes)))
        raise ValueError(
            f"y[{i}] is a label that training never saw, and a cost matrix has no row for it; "
            f"the classes are {shorten(classes.tolist())}: list all of them in classes=[...]"
        )
    return LossTable(costs.T, labels)
