"""Take pictures of the reports of all commands on their examples: ``make reports``, after a report has changed.

They are files of the repository: to make them takes a browser and longer than all pages.
"""

import contextlib
import glob
import io
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from tacit.cli import main
from tacit.demo.example_files import EXAMPLES

REPORTS = Path(__file__).parent / "images" / "reports"
WIDTH, HEIGHT, COLORS = 960, 1300, 64


def take_pictures() -> None:
    """Run every command on its example, and keep the top of its report."""
    browser = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if browser is None:
        sys.exit("no Chromium on this machine: apt-get install chromium")
    REPORTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        main(["examples", "--quiet"])
        with contextlib.chdir("examples"):
            for name, example in EXAMPLES.items():
                take_picture(browser, name, example.call)


def take_picture(browser: str, name: str, call: str) -> None:
    words = shlex.split(call)[1:]
    words = [own for word in words for own in (sorted(glob.glob(word)) or [word])]
    report = Path(words[-1], "report.html")
    # results may be there, if a test or a reader ran the command before
    if not report.exists():
        with contextlib.redirect_stdout(io.StringIO()):
            main([*words, "--quiet"])
    size = f"--window-size={WIDTH},{HEIGHT}"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", size]
    flags.append(f"--user-data-dir={Path('profile').absolute()}")
    page = report.absolute().as_uri()
    subprocess.run(
        [browser, *flags, "--screenshot=report.png", page],
        check=True,
        capture_output=True,
    )
    picture = Image.open("report.png").convert("RGB").quantize(COLORS)
    picture.save(REPORTS / f"{name}.png", optimize=True)


if __name__ == "__main__":
    take_pictures()
