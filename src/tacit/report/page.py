"""The blocks of a report, and one HTML file of them: it contains template, style and script, and links nothing.

Text is escaped when the page is rendered. SVG is `Markup`, made by `tacit.report.charts` and similar functions, which
escape their input.
"""

from __future__ import annotations

import base64
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, ClassVar

from markupsafe import Markup

FILTERED_FROM = 12
"""Tables with at least this many rows have a field to filter them."""


@dataclass(frozen=True)
class Prose:
    """Plain sentences; an empty line begins a new paragraph."""

    text: str
    kind: ClassVar[str] = "prose"

    @property
    def paragraphs(self) -> list[str]:
        return [part for part in self.text.split("\n\n") if part.strip()]


@dataclass(frozen=True)
class Notice:
    """A sentence in a box. ``tone``: "plain", "good" or "warning"."""

    text: str
    tone: str = "plain"
    kind: ClassVar[str] = "notice"


@dataclass(frozen=True)
class Facts:
    """Names and values, one pair per line."""

    pairs: Sequence[tuple[str, Any]]
    kind: ClassVar[str] = "facts"


@dataclass(frozen=True)
class Code:
    """Verbatim text in a fixed-width font: a command line, aligned sites."""

    text: str
    kind: ClassVar[str] = "code"


@dataclass(frozen=True)
class Figure:
    """A chart with a caption."""

    svg: Markup
    caption: str = ""
    kind: ClassVar[str] = "figure"


@dataclass(frozen=True)
class Picture:
    """An image with a caption, contained in the page. ``alt`` describes it for screen readers."""

    content: bytes
    alt: str
    caption: str = ""
    media_type: str = "image/png"
    kind: ClassVar[str] = "picture"

    @property
    def source(self) -> str:
        return f"data:{self.media_type};base64,{base64.b64encode(self.content).decode('ascii')}"


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, whether it holds numbers, and what the name means."""

    name: str
    is_number: bool = False
    meaning: str = ""


@dataclass(frozen=True)
class Table:
    """Rows that a reader can sort, and filter where there are many. A cell is text, a number, None or a chart."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    caption: str = ""
    kind: ClassVar[str] = "table"

    @property
    def has_filter(self) -> bool:
        return len(self.rows) >= FILTERED_FROM


@dataclass(frozen=True)
class Row:
    """Blocks side by side, where the window is wide enough."""

    blocks: Sequence[Any]
    kind: ClassVar[str] = "row"


@dataclass(frozen=True)
class Section:
    """A heading and its blocks."""

    title: str
    blocks: Sequence[Any]


@dataclass(frozen=True)
class Page:
    """A whole report.

    Parameters
    ----------
    title, subtitle : the task in a few words
    banner : a sentence at the top, such as that the run was interrupted
    sections : in the order of reading
    verdict : the result in one sentence, with its quality on held-out data and that of a simple baseline
    origin : the inputs, and the date
    trust : blocks on how far to trust the result, for `tacit.commands.CommandRun.write_report`
    """

    title: str
    subtitle: str = ""
    banner: str = ""
    sections: Sequence[Section] = field(default_factory=list)
    verdict: str = ""
    origin: str = ""
    trust: Sequence[Any] = ()


def render(page: Page) -> str:
    """The page as one HTML file. The template engine escapes all text but `Markup`."""
    from tacit import __version__

    html: str = _template().render(page=page, version=__version__, style=_part("style.css"), script=_part("tables.js"))
    return html


@functools.cache
def _template() -> Any:
    from jinja2 import Environment, StrictUndefined

    engine = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    engine.filters["show"] = _show
    engine.filters["sort_key"] = _sort_key
    return engine.from_string(resources.files("tacit.report").joinpath("page.html.j2").read_text(encoding="utf-8"))


@functools.cache
def _part(name: str) -> Markup:
    """The style or the script, which are files of tacit and need not be escaped."""
    return Markup(resources.files("tacit.report").joinpath(name).read_text(encoding="utf-8"))


def _show(value: Any) -> Any:
    """A cell or a fact as the page shows it."""
    is_text = isinstance(value, str)  # Markup is one too
    return value if is_text else ("yes" if value else "no") if isinstance(value, bool) else show_number(value)


def _sort_key(value: Any) -> str:
    """The key by which the script sorts a numeric cell: all digits; empty for other values."""
    if isinstance(value, str) or value is None or not math.isfinite(float(value)):
        return ""
    return repr(float(value))


def show_number(value: Any) -> str:
    """A number with three significant digits, small ones as powers of ten; a dash for a missing one.

    >>> [show_number(v) for v in (0.94321, 12.0, 1234567, 3.2e-9, None, float("nan"))]
    ['0.943', '12', '1,234,567', '3.2e-09', '–', '–']
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    number = float(value)
    if number == int(number) and abs(number) < 1e15:
        return f"{int(number):,}"
    if abs(number) < 1e-3 or abs(number) >= 1e6:
        return f"{number:.2g}"
    return f"{number:.3g}" if abs(number) < 100 else f"{number:,.0f}"
