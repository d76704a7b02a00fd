"""Positions of labels among the classes: small whole numbers by a table, all others by a search, with one answer."""

import numpy as np
import pytest

from tacit.data.labels import MAX_GAPS, find_labels

CLASSES = [3, -2, 7, 0]
LABELS = [7, 3, 3, 1, -2, 100, -100, 0]
FOUND = [2, 0, 0, -1, 1, -1, -1, 3]


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64, np.float64, str])
@pytest.mark.parametrize("of_labels", [np.int8, np.int64])
def test_every_kind_of_number_finds_the_same(kind, of_labels):
    labels = np.array(LABELS).astype(kind if kind is str else of_labels)
    assert find_labels(np.array(CLASSES).astype(kind), labels).tolist() == FOUND


@pytest.mark.parametrize("kind", [np.uint8, np.uint32, np.uint64])
def test_unsigned_labels_are_found_among_signed_classes(kind):
    classes, labels = np.array([3, -2, 200]), np.array([200, 3, 254], dtype=kind)
    assert find_labels(classes, labels).tolist() == [2, 0, -1]
    assert find_labels(labels, classes).tolist() == [1, -1, 0]


def test_classes_far_apart_take_no_table():
    classes = np.array([0, 10 * MAX_GAPS, 10**18])
    assert find_labels(classes, np.array([10**18, 1, 0, -(10**18)])).tolist() == [2, -1, 0, -1]
