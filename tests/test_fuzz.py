"""Two runs of the fuzz harness (`make fuzz` is the longest), and that it covers everything and judges well."""

import importlib
import inspect

import numpy as np
import pytest

from tacit import Ragged
from tacit.data.parameters import whole_number
from tests.fuzz.campaign import CRASH, HANG, Report, cases, run, run_case
from tests.fuzz.draws import Draw
from tests.fuzz.targets import COVERED, TARGETS
from tests.fuzz.verdicts import CLEAN, CLEAR, RAW, judge

INPUTS = {"short": 400, "long": 12_000, "bounds": 2_000}
"""About ten, three hundred and fifty for each target."""

ROOMS = ("boxes", "datasets", "learners", "problems", "ranking", "solvers", "spectral", "text")
HOMES = ("tacit", *(f"tacit.{room}" for room in ROOMS))

NOT_CALLED_BY_USERS = {
    "AlignmentScores", "Decision", "EMStep", "JudgedRows", "MixtureStep", "Reason", "Solution", "Solver", "State",
    "Status", "Step", "Warm", "WarmStart",
}  # fmt: skip
"""Records and protocols: what comes out, and what nobody builds from input."""


@pytest.mark.parametrize("length", ["short", pytest.param("long", marks=pytest.mark.long)])
def test_nothing_raw_comes_of_bad_input(length):
    report = run(cases(list(TARGETS), 1_000_000, INPUTS[length]))
    assert report.raw == []
    assert report.counts[CLEAN] > INPUTS[length] // 10  # some get through: what lies behind the checks is reached
    assert report.total == INPUTS[length]


@pytest.mark.long
def test_no_kernel_leaves_its_arrays():
    """With bounds checks, reading or writing outside of an array is an IndexError, which is raw."""
    report = run(cases(list(TARGETS), 2_000_000, INPUTS["bounds"]), bounds_checks=True)
    assert report.raw == []
    assert report.total == INPUTS["bounds"]


def test_an_input_that_once_ended_in_a_raw_error_ends_in_words():
    """Dates among the labels that the user's function lists."""
    assert run_case("per_sample", 847851).kind == CLEAR


@pytest.mark.parametrize("home", HOMES)
def test_every_public_function_and_class_has_a_target(home):
    module = importlib.import_module(home)
    named = [name for name in module.__all__ if callable(getattr(module, name)) and not inspect.ismodule(name)]
    assert sorted(set(named) - COVERED - NOT_CALLED_BY_USERS) == []


def test_a_case_is_the_same_every_time(tmp_path):
    first, again = (Draw("load", 7, tmp_path).rng.random(5) for _ in range(2))
    assert np.array_equal(first, again)
    assert run_case("turns", 3) == run_case("turns", 3)


def test_errors_are_judged_by_who_raised_them():
    assert judge(lambda: Ragged([1, 2], [0, 2])).kind == CLEAN
    assert judge(lambda: Ragged.of(3)).kind == CLEAR
    assert judge(lambda: whole_number("k", 2.5)).kind == CLEAR
    for raw in (
        lambda: {}["key"],
        lambda: int("x"),
        lambda: np.zeros(3).reshape(2, 2),
        lambda: Ragged([1, 2], [0, 2]).map(lambda rows: rows[5]),
        lambda: [1.0, {"score": np.array([np.nan])}],
        lambda: _raise(ValueError("tacit did not raise this")),
    ):
        assert judge(raw).kind == RAW


def _raise(error):
    raise error


@pytest.mark.long
def test_a_process_that_dies_costs_one_case():
    report = run([("turns", -1), ("turns", 1)])  # there is no such seed: drawing from it ends the process
    assert report.total == 2
    assert [case for case, _ in report.raw] == ["turns:-1"]
    assert report.counts[CRASH] + report.counts[HANG] == 1  # where a busy machine is slow to see that it died


def test_a_report_names_what_is_not_well():
    report = Report()
    for kind in (CLEAN, CLEAR, RAW, CRASH, HANG):
        report.add(f"x:{kind}", kind, "")
    assert [case for case, _ in report.raw] == [f"x:{kind}" for kind in (RAW, CRASH, HANG)]
    assert str(report) == "5 inputs: 1 clean, 1 clear, 1 raw, 1 crash, 1 hang"
