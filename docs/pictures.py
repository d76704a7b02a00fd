"""Draw pictures while the pages are built: those that the Python on the pages saves.

A page that shows ``images/built/NAME.png`` has a block of Python with
``savefig("NAME.png")``. The blocks of the page run from the top down to the last one
that saves, in a folder of their own.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import matplotlib
from matplotlib import pyplot

PAGES = Path(__file__).parent
BUILT = PAGES / "images" / "built"
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```$(?:\n+^```text\n(?P<shown>.*?)^```$)?",
    flags=re.S | re.M,
)


def draw_pictures() -> None:
    """Run the pages that show pictures of their own; put those into images/built."""
    matplotlib.use("Agg")
    BUILT.mkdir(parents=True, exist_ok=True)
    for page in sorted(PAGES.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        names = re.findall(r"\]\(images/built/([\w.]+)\)", text)
        if names:
            run_until_drawn(page.stem, list(BLOCK.finditer(text)), names)


def run_until_drawn(title: str, blocks: list[re.Match[str]], names: list[str]) -> None:
    saves = [i for i, block in enumerate(blocks) if "savefig(" in block["code"]]
    if not saves:
        raise ValueError(f"{title}.md shows {names}, and no block calls savefig")
    module = ModuleType(f"page_{title}")
    sys.modules[module.__name__] = module
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        for block in blocks[: saves[-1] + 1]:
            try:
                exec(compile(block["code"], title, "exec"), module.__dict__)
            except Exception:
                if "Error: " not in (block["shown"] or ""):  # the page shows an error
                    raise
        for name in names:
            (BUILT / name).write_bytes(Path(name).read_bytes())
    pyplot.close("all")


if __name__ == "__main__":
    draw_pictures()
