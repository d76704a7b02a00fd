"""What comes of a call: a clean result, a clear error, or a raw one."""

from __future__ import annotations

import ast
import functools
import traceback
from pathlib import Path
from typing import NamedTuple

import numpy as np
import sklearn
from scipy import sparse

import tacit
from tacit import Ragged

CLEAN, CLEAR, RAW = "clean", "clear", "raw"

OURS = Path(tacit.__file__).parent
VALIDATION = tuple(Path(sklearn.__file__).parent / part for part in ("utils", "base.py", "model_selection/_split.py"))
"""Where scikit-learn checks what users give it."""

ALLOWED = (ValueError, TypeError, OSError, IndexError, FloatingPointError, ImportError)
"""Kinds of errors that tell a user what to change; `StorageError`, `CapabilityError` and `NotFittedError` are among
them."""

LONGEST = 1500
"""Characters of a message that somebody reads."""


class Verdict(NamedTuple):
    kind: str
    text: str


def judge(call, shows_error: bool = False) -> Verdict:
    """Call it, and say what came of it."""
    try:
        answer = call()
    except Exception as error:
        if shows_error:
            traceback.print_exception(error)
        return judge_error(error)
    place = find_nan(answer)
    return Verdict(CLEAN, "") if place is None else Verdict(RAW, f"NaN in {place}")


def judge_error(error: Exception) -> Verdict:
    """Clear if tacit raised it, or scikit-learn's validation: the innermost frame stands at a ``raise`` of theirs."""
    text = f"{type(error).__name__}: {error}"
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return Verdict(RAW, text)
    file, line = Path(trace.tb_frame.f_code.co_filename), trace.tb_lineno
    is_theirs = OURS in file.parents or any(part == file or part in file.parents for part in VALIDATION)
    where = f"{file.name}:{line}"
    if not is_theirs or line not in raised_lines(file) or not isinstance(error, ALLOWED):
        return Verdict(RAW, f"{text[:300]} ({where})")
    if not str(error).strip():
        return Verdict(RAW, f"{type(error).__name__} without a word ({where})")
    if len(text) > LONGEST:
        return Verdict(RAW, f"a message of {len(text)} characters ({where})")
    return Verdict(CLEAR, text[:300])


@functools.cache
def raised_lines(file: Path | str) -> set[int]:
    """The lines of all statements ``raise`` with an error in a file."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    raising = [node for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc]
    return {line for node in raising for line in range(node.lineno, node.end_lineno + 1)}


def find_nan(answer, name: str = "the answer") -> str | None:
    """Where an answer holds NaN; None if nowhere."""
    if isinstance(answer, Ragged):
        answer = answer.values
    if sparse.issparse(answer):
        answer = answer.data
    if isinstance(answer, float | np.floating):
        return name if answer != answer else None
    if isinstance(answer, np.ndarray) and answer.dtype.kind == "f":
        return name if np.isnan(answer).any() else None
    if isinstance(answer, dict):
        return next((found for key, part in answer.items() if (found := find_nan(part, str(key)))), None)
    if isinstance(answer, list | tuple):
        return next((found for i, part in enumerate(answer) if (found := find_nan(part, f"{name}[{i}]"))), None)
    return None
