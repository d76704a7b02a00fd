"""How `make docs` builds these pages."""

import inspect
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
    of a definition list, parameters with their types and defaults. An example after
    them gets a title. The methods of a class, also inherited ones, come last.
    """
    out, in_fields, has_fields, has_example = [], False, False, False
    kinds = describe_parameters(obj)
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line in ("Parameters", "Attributes") and following.startswith("----"):
            out.append(f".. rubric:: {line}")
            in_fields = has_fields = True
            shown = kinds if line == "Parameters" else {}
        elif in_fields and line.startswith("----"):
            out.append("")
        elif has_fields and not has_example and line.startswith(">>>"):
            out += [".. rubric:: Example", "", line]
            in_fields, has_example = False, True
        elif in_fields and (field := re.match(r"([\w, ]+) : (.*)", line)):
            names = [f"``{one}``{shown.get(one, '')}" for one in field[1].split(", ")]
            out += [", ".join(names), f"    {field[2]}"]
        else:
            out.append(line)
    if what == "class" and (methods := list_methods(obj)):
        out += ["", ".. rubric:: Methods", "", ", ".join(methods), ""]
    lines[:] = out


def describe_parameters(obj):
    """Type and default of every parameter, as text that stands behind its name."""
    try:
        parameters = inspect.signature(obj).parameters.values()
    except (TypeError, ValueError):
        return {}
    found = {}
    for one in parameters:
        kind = "" if one.annotation in (one.empty, "Any") else f" : *{one.annotation}*"
        mark = "," if kind else " :"
        default = (
            "" if one.default is one.empty else f"{mark} default ``{one.default!r}``"
        )
        found[one.name] = kind + default
    return found


def list_methods(cls):
    """Links to the public methods of a class, also to those inherited from tacit.

    Left out are methods that scikit-learn generates, and those of the archive.
    """
    hidden = r"_|set_\w+_request$|check$|check_\w+|learned_attributes$"
    owners = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("tacit"):
            own = {
                n
                for n in vars(base)
                if not re.match(hidden, n) and callable(getattr(base, n))
            }
            owners |= dict.fromkeys(own, f"{base.__module__}.{base.__qualname__}")
    return [f":py:meth:`{name}() <{owners[name]}.{name}>`" for name in sorted(owners)]


def write_math(writer, node):
    """Formulas as MathML, which browsers draw by themselves, without a network."""
    is_block = isinstance(node, nodes.math_block)
    writer.body.append(tex2mathml(node.astext(), as_block=is_block))
    raise nodes.SkipNode
