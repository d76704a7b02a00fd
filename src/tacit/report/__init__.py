"""One self-contained HTML page for a run: nothing is fetched, so it opens from disk, in years, and without a network.

A page is built of blocks (`page`), charts are inline SVG (`charts`), and `render` turns both into one file.

>>> from tacit.report import Page, Prose, Section, render
>>> html = render(Page("Motifs", sections=[Section("What was found", [Prose("<nothing>")])]))
>>> "&lt;nothing&gt;" in html and "<nothing>" not in html
True
"""

from tacit.report.charts import bar_chart, histogram, line_chart, roc_chart, scatter_chart
from tacit.report.page import Code, Column, Facts, Figure, Notice, Page, Picture, Prose, Row, Section, Table
from tacit.report.rendering import render

__all__ = [
    "Code",
    "Column",
    "Facts",
    "Figure",
    "Notice",
    "Page",
    "Picture",
    "Prose",
    "Row",
    "Section",
    "Table",
    "bar_chart",
    "histogram",
    "line_chart",
    "render",
    "roc_chart",
    "scatter_chart",
]
