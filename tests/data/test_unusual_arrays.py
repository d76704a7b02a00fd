"""Arrays that are not plain, wherever they are given: used as the same numbers, or refused before they are copied."""

import numpy as np
import pytest

from tacit import HiddenCRF, LatentSVM, Ragged, Shards, StructuredSVM, path
from tacit.data.parameters import ArrayError, as_array, check_verbose, even_table, numbers, shorten
from tacit.problems import Candidates, Chain, Motif, Multiclass, Transforms, rotations
from tacit.runtime import Progress
from tacit.spectral import NextSymbol
from tacit.spectral.next_symbol import Conditional, constant_weights
from tacit.spectral.ngram import count_ngrams
from tests.fuzz.draws import HUGE, Silent, Unarrayed

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((12, 2)), np.arange(12) % 2
BAGS, IMAGES = X.reshape(6, 2, 2), RNG.random((12, 3, 3))
DNA = ["ACGTACGT"] * 6
FITS = {
    "Multiclass": (lambda: StructuredSVM(Multiclass(), C=1), X, Y),
    "Candidates": (lambda: LatentSVM(Candidates(), C=1), BAGS, Y[:6]),
    "HiddenCRF": (lambda: HiddenCRF(Candidates(), C=1), BAGS, Y[:6]),
    "Chain": (lambda: StructuredSVM(Chain(), C=1), BAGS, Y.reshape(6, 2)),
    "Transforms": (lambda: LatentSVM(Transforms(rotations(-9, 9, 2)), C=1), IMAGES, Y),
    "Motif": (lambda: LatentSVM(Motif(3), C=1), DNA, Y[:6]),
}
TABLES = [name for name in FITS if name != "Motif"]


class Own(np.ndarray):
    """A class of somebody else."""


def mask_one(values):
    return np.ma.masked_array(values, np.arange(values.size).reshape(values.shape) == 1)


@pytest.mark.parametrize("name", TABLES)
def test_masked_entries_are_refused(name):
    make, data, labels = FITS[name]
    with pytest.raises(ArrayError, match="masked"):
        make().fit(mask_one(data), labels)
    with pytest.raises(ValueError, match=r"masked|label|tag"):
        make().fit(data, mask_one(labels))


def test_masks_without_masked_entries_and_foreign_classes_change_nothing():
    expected = StructuredSVM(Multiclass(), C=1).fit(X, Y).coef_
    for same in (np.ma.masked_array(X), X.view(Own)):
        assert np.array_equal(StructuredSVM(Multiclass(), C=1).fit(same, np.ma.masked_array(Y)).coef_, expected)
    assert type(Ragged(np.ma.masked_array(X), [0, 12]).values) is np.ndarray


@pytest.mark.parametrize("name", FITS)
def test_labels_that_repeat_by_broadcasting_are_counted_before_they_are_copied(name):
    """Two to the power of 31 labels take 16 GB once they are copied: this test would fail, or be killed."""
    make, data, labels = FITS[name]
    repeated = np.broadcast_to(labels[0], (HUGE, *labels.shape[1:]))
    with pytest.raises(ValueError, match=r"y|labels|X|broadcasting"):
        make().fit(data, repeated)
    with pytest.raises(ValueError, match=r"broadcasting|sample_weight"):
        make().fit(data, labels, sample_weight=np.broadcast_to(1.0, HUGE))


@pytest.mark.parametrize("thing", [Silent(), Unarrayed()], ids=["no repr", "no array"])
def test_objects_whose_methods_raise_are_named_by_their_class(thing):
    assert type(thing).__name__ in shorten(thing)
    for name, (make, data, labels) in FITS.items():
        with pytest.raises((ValueError, TypeError)):
            make().fit(thing, labels)
        with pytest.raises((ValueError, TypeError)):
            make().fit(data, thing)
        with pytest.raises((ValueError, TypeError)):
            make().set_params(C=thing).fit(data, labels)
        assert name
    for read in (lambda: numbers("C", thing), lambda: even_table("C", Unarrayed()), lambda: as_array(Unarrayed())):
        with pytest.raises(ValueError, match="array"):
            read()


@pytest.mark.parametrize("verbose", [np.ones(2), "loud", -1, 0.5, Silent()])
def test_verbose_is_a_small_number(verbose):
    with pytest.raises(ValueError, match="verbose"):
        StructuredSVM(Multiclass(), verbose=verbose).fit(X, Y)
    with pytest.raises(ValueError, match="verbose"):
        Progress(verbose, 3)
    for allowed in (True, False, None, 0, 1, 2, np.int8(2), np.True_):
        check_verbose(allowed)


def test_tables_that_are_not_plain_are_not_written_to_shards(tmp_path):
    for table in (mask_one(X), np.broadcast_to(1.0, (HUGE, 2))):
        with pytest.raises(ArrayError, match=r"masked|broadcasting"):
            Shards.write(tmp_path / "shards", table)
        assert not (tmp_path / "shards").exists()


def test_parts_of_distributions_that_repeat_by_broadcasting_are_refused():
    one = np.ones(1)
    parts = [one, np.ones((1, 1, 1)), np.ones((2, 1)), one, np.ones((2, 1))]
    ngram = count_ngrams(Ragged(np.zeros(3, dtype=np.int32), [0, 1, 3]), 1, order=2)
    weights = constant_weights(1, 0.5)
    NextSymbol((Conditional(*parts),), ngram, weights).check()
    for i in range(5):
        wrong = [_repeat(part) if i == k else part for k, part in enumerate(parts)]
        with pytest.raises(ValueError, match=r"array|shapes"):
            NextSymbol((Conditional(*wrong),), ngram, weights).check()
    for name in ngram._fields[:-1]:
        with pytest.raises(ValueError, match=name):
            NextSymbol((), ngram._replace(**{name: _repeat(getattr(ngram, name))}), weights[:, 1:]).check()
    with pytest.raises(ValueError, match="weights"):
        NextSymbol((Conditional(*parts),), ngram, _repeat(weights)).check()


def _repeat(part):
    """A huge array that has the memory of one number."""
    return np.broadcast_to(part.flat[0], (HUGE, *part.shape[1:]))


def test_folds_that_cannot_be_printed_are_refused():
    with pytest.raises(ValueError, match="cv"):
        path(StructuredSVM(Multiclass()), X, Y, Cs=[1.0, 10.0], cv=Silent())
