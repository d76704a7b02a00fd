"""The Python of the pages in docs/, for tests that use what a page shows."""

import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np

DOCS = Path(__file__).parent.parent / "docs"


def run_block(page, number=0, names=None):
    """The names that a block of Python on a page defines; ``names`` are those that it takes from blocks before."""
    module = ModuleType(f"shown_{page.removesuffix('.md')}_{number}")
    sys.modules[module.__name__] = module  # so that its classes can be pickled
    module.__dict__.update(names or {}, np=np)
    exec(_blocks(page)[number], module.__dict__)
    return module.__dict__


def _blocks(page):
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
