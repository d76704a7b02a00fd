"""``python -m tests.fuzz``: run a campaign, or one case, and print what came of it."""

from __future__ import annotations

import argparse
import os
import sys

from tests.fuzz.campaign import cases, run, run_case
from tests.fuzz.targets import TARGETS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000, help="how many (default: 10000)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--only", nargs="*", metavar="TARGET", help=f"some of {', '.join(TARGETS)}")
    parser.add_argument(
        "--bounds-checks", action="store_true", help="kernels check every index (the first run compiles)"
    )
    parser.add_argument("--hostile", action="store_true", help="objects that raise, arrays larger than the memory")
    parser.add_argument("--case", metavar="TARGET:SEED", help="run this one here, and show its error")
    options = parser.parse_args()
    if options.hostile:
        os.environ["TACIT_FUZZ_HOSTILE"] = "1"
    if options.case:
        name, _, seed = options.case.partition(":")
        print(*run_case(name, int(seed), shows_error=True))  # noqa: T201
        return 0
    unknown = set(options.only or ()) - set(TARGETS)
    if unknown:
        parser.error(f"no target {', '.join(unknown)}; there are {', '.join(TARGETS)}")
    todo = cases(options.only or list(TARGETS), options.first, options.inputs)
    report = run(todo, verbose=True, bounds_checks=options.bounds_checks)
    print(report)  # noqa: T201
    return 1 if report.raw else 0


if __name__ == "__main__":
    sys.exit(main())
