"""Run all benchmarks, or those named on the command line, print them and write one page each to benchmarks/results.

``--full`` runs those that have a long version in that one, to a page of its own.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys

import benchmarks
from benchmarks.harness import Skipped, publish


def main(wanted: list[str], full: bool = False) -> None:
    names = [module.name for module in pkgutil.iter_modules(benchmarks.__path__)]
    parts = ("__main__", "ask_sets", "harness", "hmm_alignment", "optima_paths", "pystruct_fit", "three_rankers")
    names = [name for name in names if name not in parts]
    unknown = set(wanted) - set(names)
    if unknown:
        sys.exit(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    for name in wanted or names:
        run = importlib.import_module(f"benchmarks.{name}").run
        has_long = "full" in inspect.signature(run).parameters
        if full and not has_long and name in wanted:
            sys.exit(f"the benchmark {name} has no long version: leave out --full")
        if full and not has_long:
            continue
        try:
            publish(f"{name}_full" if full else name, run(full=True) if full else run())
        except Skipped as reason:
            print(f"{name} skipped: {reason}")


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main([name for name in arguments if name != "--full"], "--full" in arguments)
