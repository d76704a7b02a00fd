"""How `make docs` builds these pages."""

import re

import tacit

project = "tacit"
author = "the tacit developers"
version = release = tacit.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"tacit {version}"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False

default_role = "py:obj"  # `fit` in a docstring: a link where there is something to link to, else code
autodoc_member_order = "bysource"
autodoc_typehints = "none"


def lay_out(app, what, name, obj, options, lines):
    """Turn the sections of a docstring into what Sphinx reads.

    Under "Parameters" and "Attributes", ``C : weight of the mean loss`` becomes an item of a definition list; the
    example at the end gets a title where there are such sections before it.
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


def setup(app):
    app.connect("autodoc-process-docstring", lay_out)
