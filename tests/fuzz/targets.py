"""All targets: importing this imports every module of the harness, and each enters its own into the list."""

import importlib
import pkgutil

import tests.fuzz
from tests.fuzz.registry import COVERED, TARGETS

__all__ = ["COVERED", "TARGETS"]

for module in pkgutil.iter_modules(tests.fuzz.__path__):
    if module.name not in ("__main__", "targets"):
        importlib.import_module(f"tests.fuzz.{module.name}")
