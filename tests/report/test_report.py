"""Reports: escaped, self-contained, sortable, and quiet in a browser."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from markupsafe import Markup

from tacit import report
from tacit.report.charts import round_numbers
from tests.chromium import needs_chromium, open_page, take_screenshot

HOSTILE = '"><script>document.title="taken"</script><img src=x onerror=alert(1)>{{7*7}}\'</title>&amp;'


@pytest.fixture(scope="module")
def page():
    """Every block and every chart, with hostile text wherever a user's text can go."""
    x = np.linspace(0, 1, 1000)
    columns = [report.Column(HOSTILE), report.Column("score", True, HOSTILE)]
    rows = [[f"{HOSTILE} {i}", value] for i, value in enumerate([3.0, -1.0, None, 20.0, 0.5] * 3)]
    blocks = [
        *(report.Prose(HOSTILE), report.Notice(HOSTILE, "warning"), report.Facts([(HOSTILE, HOSTILE), ("n", 3)])),
        *(report.Code(HOSTILE), report.Table(columns, rows, HOSTILE), report.Picture(b"no image", HOSTILE, HOSTILE)),
        report.Row(
            [
                report.Figure(report.roc_chart({HOSTILE: (x, x**0.5), "b": (x, x)}), HOSTILE),
                report.Figure(report.bar_chart([HOSTILE, "b"], [0.5, 0.7], HOSTILE, intervals=[(0.4, 0.6)] * 2)),
                report.Figure(report.histogram({HOSTILE: x}, HOSTILE, title=HOSTILE)),
                report.Figure(report.scatter_chart({HOSTILE: (x[:9], x[:9])}, HOSTILE, HOSTILE)),
                report.Figure(report.line_chart({HOSTILE: ([1], [2])}, HOSTILE, HOSTILE, whole_x=True)),
            ]
        ),
    ]
    return report.Page(HOSTILE, HOSTILE, HOSTILE, [report.Section(HOSTILE, blocks)] * 3)


def test_text_is_escaped_wherever_it_stands(page):
    html = report.render(page)
    assert html.count("<script>") == 1  # the page's own
    assert "<img src=x" not in html
    assert "{{7*7}}" in html


class Attributes(HTMLParser):
    """Collects what the tags of a page point to."""

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attributes):
        self.addresses += [value for name, value in attributes if name in ("src", "href", "action", "xlink:href")]


def test_a_page_links_to_nothing_outside(page):
    html = report.render(page)
    parser = Attributes()
    parser.feed(html)
    assert len(parser.addresses) > 3
    assert all(address.startswith(("#", "data:")) for address in parser.addresses)
    assert "@import" not in html
    assert "url(" not in html


def test_charts_are_well_formed_for_any_numbers():
    from xml.etree import ElementTree

    wild = [np.nan, np.inf, -np.inf, 0.0, 1e300, -5.0]
    for chart in (
        report.line_chart({"a": (range(6), wild), "b": ([], [])}, "x", "y"),
        report.line_chart({"a": ([1], [1])}, "x", "y"),
        report.scatter_chart({"a": ([0.0], [0.0])}, "x", "y"),
        report.histogram({"a": []}, "x"),
        report.histogram({"a": [2.0, 2.0]}, "x"),
        report.bar_chart(["a", "b"], [0.0, 0.0]),
        report.bar_chart(["a"], [-2.0]),
    ):
        assert isinstance(chart, Markup)
        text = ElementTree.tostring(ElementTree.fromstring(chart), encoding="unicode")
        assert "nan" not in text.lower()
        assert "inf" not in text.lower()


def test_ticks_are_round_and_inside():
    for low, high in ((0, 1), (-3.7, 12.2), (1e-9, 3e-9), (1e6, 1e6 + 1), (0, 7)):
        ticks = round_numbers(low, high)
        assert 2 <= len(ticks) <= 12
        assert all(low - 1e-12 <= tick <= high + 1e-6 for tick in ticks)


@needs_chromium
def test_a_browser_shows_the_page_without_errors_or_requests(page, tmp_path):
    (tmp_path / "report.html").write_text(report.render(page), encoding="utf-8")
    document, console, asked = open_page(tmp_path / "report.html", tmp_path)
    assert console == []
    assert asked == []
    assert document.count('<button type="button">') == 6  # the script made every head of a column sort
    assert "taken</title>" not in document


@needs_chromium
def test_tables_sort_and_filter(page, tmp_path):
    """A script that is added to the page presses the button and types into the field."""
    script = """<script>
      const box = document.querySelector(".table");
      const shown = () => [...box.querySelectorAll("tbody tr")].filter((row) => !row.hidden)
        .map((row) => row.cells[1].textContent).join(" ");
      box.querySelectorAll("th button")[1].click(); document.body.dataset.falling = shown();
      box.querySelectorAll("th button")[1].click(); document.body.dataset.rising = shown();
      const field = box.querySelector(".filter"); field.value = "amp; 14"; field.dispatchEvent(new Event("input"));
      document.body.dataset.filtered = shown();
    </script></body>"""
    (tmp_path / "report.html").write_text(report.render(page).replace("</body>", script), encoding="utf-8")
    document = open_page(tmp_path / "report.html", tmp_path)[0]
    found = dict(re.findall(r'data-(falling|rising|filtered)="([^"]*)"', document))
    assert found["falling"].split() == ["20"] * 3 + ["3"] * 3 + ["0.5"] * 3 + ["-1"] * 3 + ["–"] * 3
    assert found["rising"].split() == found["falling"].split()[::-1]
    assert found["filtered"] == "0.5"


@needs_chromium
def test_screenshots_at_two_widths_show_something(page, tmp_path):
    import matplotlib.pyplot as plt

    (tmp_path / "report.html").write_text(report.render(page), encoding="utf-8")
    for width in (1200, 500):
        take_screenshot(tmp_path / "report.html", tmp_path / f"{width}.png", width, 900)
        image = plt.imread(tmp_path / f"{width}.png")
        assert image.shape[1] == width
        assert image.std() > 0.02
