"""How `make docs` builds these pages."""

import re
import sys
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

import tacit

sys.path.insert(0, str(Path(__file__).parent))
from command_reference import Commands
from gallery import Gallery, write_notebooks
from pictures import draw_pictures

project = "tacit"
author = "the tacit developers"
version = release = tacit.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
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
    app.connect("autodoc-process-docstring", lay_out)
    app.add_html_math_renderer("mathml", (write_math, None), (write_math, None))


def lay_out(app, what, name, obj, options, lines):
    """Turn the sections of a docstring into what Sphinx reads.

    Under "Parameters" and "Attributes", ``C : weight of the mean loss`` becomes an item
    of a definition list; an example after them gets a title.
    """
    out, in_fields, has_fields, has_example = [], False, False, False
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line in ("Parameters", "Attributes") and following.startswith("----"):
            out.append(f".. rubric:: {line}")
            in_fields = has_fields = True
        elif in_fields and line.startswith("----"):
            out.append("")
        elif has_fields and not has_example and line.startswith(">>>"):
            out += [".. rubric:: Example", "", line]
            in_fields, has_example = False, True
        elif in_fields and (field := re.match(r"([\w, ]+) : (.*)", line)):
            out += [f"``{field[1]}``", f"    {field[2]}"]
        else:
            out.append(line)
    lines[:] = out


def write_math(writer, node):
    """Formulas as MathML, which browsers draw by themselves, without a network."""
    is_block = isinstance(node, nodes.math_block)
    writer.body.append(tex2mathml(node.astext(), as_block=is_block))
    raise nodes.SkipNode
