"""From a page to one HTML file: the template, the style and the script are put into it, and nothing is linked."""

from __future__ import annotations

import functools
import math
from importlib import resources
from typing import Any

from markupsafe import Markup

from tacit.report.page import Page, show_number


def render(page: Page) -> str:
    """The page as one HTML file. Text is escaped by the template engine; only `Markup` is taken as it is."""
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
    """The style or the script: files of tacit's own, so they need no escaping."""
    return Markup(resources.files("tacit.report").joinpath(name).read_text(encoding="utf-8"))


def _show(value: Any) -> Any:
    """A cell or a fact as the page shows it."""
    is_text = isinstance(value, str)  # Markup is one too
    return value if is_text else ("yes" if value else "no") if isinstance(value, bool) else show_number(value)


def _sort_key(value: Any) -> str:
    """What the script sorts a cell of numbers by: all digits, and nothing for no number."""
    if isinstance(value, str) or value is None or not math.isfinite(float(value)):
        return ""
    return repr(float(value))
