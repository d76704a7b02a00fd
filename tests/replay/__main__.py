"""``python -m tests.replay --inputs 1000``: how many, from which seed, which programs."""

from __future__ import annotations

import argparse
import functools
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.campaign import CHECKED_KERNELS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.replay", description=__doc__)
    parser.add_argument("--inputs", type=int, default=1000, help="how many (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="of programs, calls and changes (default: 0)")
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument(
        "--bounds-checks", action="store_true", help="kernels check every index (the first run compiles)"
    )
    given = parser.parse_args()
    settings = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    if given.bounds_checks:
        settings |= {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(CHECKED_KERNELS)}
    if any(os.environ.get(name) != value for name, value in settings.items()):  # read when modules are imported
        os.environ.update(settings, MPLBACKEND="Agg")
        os.execv(sys.executable, [sys.executable, "-m", "tests.replay", *sys.argv[1:]])

    from tests.replay.programs import find_programs
    from tests.replay.server import replay

    say = functools.partial(print, flush=True)
    with tempfile.TemporaryDirectory() as home:
        programs = [program for program in find_programs(Path(home)) if given.only in program.name]
        began = time.monotonic()
        report = replay(programs, given.inputs, given.seed, show=say)
    for (verdict, where), count in Counter((d["verdict"], d["where"]) for d in report.defects).most_common():
        say(f"{count:5}  {verdict:6} {where}")
    used, waited = sum(os.times()[:4]), time.monotonic() - began
    say(f"{len(programs)} programs, {report.total} inputs: {dict(report.counts)}; {used:.0f} CPU s, {waited:.0f} s")
    return 1 if report.defects else 0


if __name__ == "__main__":
    sys.exit(main())
