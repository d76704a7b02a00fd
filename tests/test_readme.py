"""The README stays true: its Python runs."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from tacit import LatentSVM

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.S)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.splitlines()[0])
def test_readme_example_runs(block, capsys):
    names = {}
    exec(block, names)
    model = names["model"]
    if "PerSample" in block:
        assert model.predict(names["X"]).tolist() == names["y"]
    gap, size = (model.inner_gap_, model.C) if isinstance(model, LatentSVM) else (model.gap_, model.objective_)
    assert gap <= 1e-3 * size
    plt.close("all")


def test_readme_has_examples():
    assert len(BLOCKS) >= 2
