"""The page of the papers stays true: every number that it gives as ours is on the page of results that it names."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
VERDICTS = {"reproduced", "beaten", "refuted", "undecided", "not tried", "no data"}
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?![\d]|\.\d)")
TEXT = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
CELLS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in TEXT.splitlines() if line.startswith("|")]
ROWS = [row for row in CELLS if len(row) == 5 and row[3] in VERDICTS]


def missing_numbers(measured, text):
    """The numbers of a cell that are not in a text; signs count where the cell has them."""
    found = set(NUMBER.findall(text))
    found |= {number.lstrip("+-") for number in found}
    names = re.sub(r"\b\d-\d\b", "", measured)  # of pairs of digits
    return [number for number in NUMBER.findall(names) if number not in found]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_our_numbers_are_on_the_page_of_results(row):
    _, _, measured, verdict, page = row
    if page == "–":
        assert not NUMBER.findall(measured), "a number needs a page of results"
        assert verdict in ("no data", "not tried")
        return
    text = (RESULTS / f"{page.strip('`')}.md").read_text(encoding="utf-8")
    assert missing_numbers(measured, text) == [], f"not in benchmarks/results/{page.strip('`')}.md: measure or correct"


def test_every_row_has_a_verdict():
    headings = ("what", "verdict", "---")
    assert [row for row in CELLS if len(row) != 2 and row not in ROWS and row[0] not in headings] == []


def test_a_wrong_number_is_found():
    assert missing_numbers("15.00 ± 6.75, pair 2-7", "| 15.00 ± 6.75 |") == []
    assert missing_numbers("15.01 and -3", "15.00, 3") == ["15.01", "-3"]
