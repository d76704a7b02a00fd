"""What all oracles of several parts share: `tacit.oracle.parts.PartsOracle`."""

import numpy as np
import pytest

from tacit import testing
from tacit.oracle import TARGET
from tacit.problems import Alignment, Chain, Coreference, Regions, Sentences


@pytest.fixture(params=[Alignment, Chain, Coreference, Regions, Sentences], ids=lambda problem: problem.__name__)
def oracle(request):
    return testing.example_task(request.param()).oracle


def test_questions_that_have_no_answer_are_refused(oracle):
    w = np.zeros(oracle.n_params)
    with pytest.raises(ValueError, match="target"):
        oracle.predict_augmented(w, rescaling="slack")
    with pytest.raises(ValueError, match="rescaling"):
        oracle.predict_augmented(w, rescaling="both")
    with pytest.raises(ValueError, match="rivals"):
        oracle.predict_augmented(w, rivals=True)


def test_a_sample_stands_for_its_target_as_a_whole(oracle):
    code = oracle.predict(np.zeros(oracle.n_params)).code
    assert oracle.accepts(code)
    cut = np.diff(oracle.code_offsets)
    i = int(np.argmax(cut > 1))
    first, last = oracle.code_offsets[i], oracle.code_offsets[i + 1]
    mixed = code.copy()
    mixed[first] = TARGET
    assert not oracle.accepts(mixed)
    mixed[first:last] = TARGET
    assert oracle.accepts(mixed)
    assert oracle.accepts(np.full_like(code, TARGET))


def test_codes_are_checked_before_they_are_read(oracle):
    w = np.zeros(oracle.n_params)
    code = oracle.predict(w).code.astype(np.int64)
    for wrong, message in [
        (code[:-1], "whole"),
        (code + 0.5, "whole"),
        (np.full_like(code, TARGET), "TARGET"),
        (np.full_like(code, 10**6), "and a"),
    ]:
        assert not oracle.accepts(wrong) or (wrong == TARGET).all()
        with pytest.raises(ValueError, match=message):
            oracle.score(w, wrong)
