"""Run all benchmarks, or those named on the command line, print them and write one page each to benchmarks/results."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks
from benchmarks.harness import publish


def main(wanted: list[str]) -> None:
    names = [module.name for module in pkgutil.iter_modules(benchmarks.__path__)]
    names = [name for name in names if name not in ("__main__", "harness")]
    unknown = set(wanted) - set(names)
    if unknown:
        sys.exit(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    for name in wanted or names:
        module = importlib.import_module(f"benchmarks.{name}")
        if name in wanted or not getattr(module, "LONG", False):  # those of many minutes run only when they are named
            publish(name, module.run())


if __name__ == "__main__":
    main(sys.argv[1:])
