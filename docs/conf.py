"""How `make docs` builds these pages."""

import functools
import inspect
import re
import sys
from itertools import pairwise
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

import tacit

sys.path.insert(0, str(Path(__file__).parent))
from command_reference import Commands
from gallery import Gallery, write_notebooks
from pictures import PAGES, draw_pictures

project = "tacit"
author = "the tacit developers"
version = release = tacit.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
]
templates_path = ["_templates"]
napoleon_google_docstring = False
napoleon_custom_sections = [("Learned", "params_style")]
myst_enable_extensions = ["dollarmath"]
exclude_patterns = ["_build"]

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["gallery.css"]
html_title = f"tacit {version}"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_math_renderer = "mathml"

# `fit` in a docstring: a link where there is something to link to, else code
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "none"


def setup(app):
    app.add_directive("tacit-commands", Commands)
    app.add_directive("tacit-gallery", Gallery)
    app.connect("builder-inited", lambda app: draw_pictures())
    app.connect(
        "build-finished",
        lambda app, error: write_notebooks(Path(app.outdir) / "notebooks"),
    )
    app.connect("autodoc-process-docstring", lay_out, priority=400)
    app.connect("autodoc-skip-member", leave_out)
    app.add_html_math_renderer("mathml", (write_math, None), (write_math, None))


def lay_out(app, what, name, obj, options, lines):
    """Put into a docstring what Python knows, in the form that napoleon reads.

    ``C : weight of the mean loss`` becomes ``C : float, default 1.0`` with the
    description below. A function gets the type that it returns, a class the pages
    that speak of it. A lower-case word is code: many classes have a `fit`.
    """
    out, section, example, kinds = [], "", None, describe_parameters(obj)
    for line, following in pairwise([*lines, ""]):
        if following.startswith("----"):
            section = line
            line = line.replace("Attributes", "Learned")
        field = re.match(r"(\*{0,2}\w[\w, ]*) : (.*)", line)
        if section in ("Parameters", "Attributes") and field:
            known = {kinds.get(one, "") for one in field[1].split(", ")}
            has_kind = section == "Parameters" and known != {""} and len(known) == 1
            out += [
                field[1] + (f" : {known.pop()}" if has_kind else ""),
                f"    {field[2]}",
            ]
            continue
        if line.startswith(">>>") and example is None:
            example = len(out)
        out.append(line)
    out, code = out[:example], [] if example is None else out[example:]
    kind = getattr(obj, "__annotations__", {}).get("return", "None")
    if (
        what in ("function", "method")
        and kind not in ("None", "Any")
        and "Returns" not in out
    ):
        out += ["", "Returns", "-------", f"``{kind}``"]
    out += ["", "Examples", "--------", *code] if code else []
    if what == "class" and (pages := find_pages(name)):
        out += ["", f".. seealso:: {', '.join(pages)}"]
    lines[:] = [re.sub(r"(?<![`:])`([a-z_]\w*)`(?!`)", r"``\1``", line) for line in out]


@functools.cache
def read_pages():
    return {page.stem: page.read_text(encoding="utf-8") for page in PAGES.glob("*.md")}


def find_pages(name):
    """Links to the guides that name a class most often, three at most."""
    word = re.compile(rf"\b{name.rpartition('.')[2]}\b")
    counts = {page: len(word.findall(text)) for page, text in read_pages().items()}
    best = sorted(counts, key=counts.get, reverse=True)[:3]
    return [f":doc:`/{page}`" for page in best if counts[page]]


def describe_parameters(obj):
    """Type and default of every parameter, as text."""
    try:
        parameters = inspect.signature(obj).parameters.values()
    except (TypeError, ValueError):
        return {}
    found = {}
    for one in parameters:
        kind = [] if one.annotation in (one.empty, "Any") else [str(one.annotation)]
        default = [] if one.default is one.empty else [f"default ``{one.default!r}``"]
        found[one.name] = ", ".join(kind + default)
    return found


def leave_out(app, what, name, obj, skip, options):
    """Whether scikit-learn made a method, or it serves model files alone."""
    made = r"set_(\w+_request|output)$|check(_\w+)?$|learned(_attributes)?$|get_meta"
    return True if skip or re.match(made, name) else None


def write_math(writer, node):
    """Formulas as MathML, which browsers draw by themselves, without a network."""
    is_block = isinstance(node, nodes.math_block)
    writer.body.append(tex2mathml(node.astext(), as_block=is_block))
    raise nodes.SkipNode
