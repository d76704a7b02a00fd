"""A headless Chromium, for tests of reports: what it says on its console, what it asks the network for, screenshots."""

import json
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def needs_chromium(test):
    """Mark a test that opens a browser: it is long, and skipped where there is none."""
    reason = "no Chromium on this machine: apt-get install chromium"
    return pytest.mark.long(pytest.mark.skipif(CHROMIUM is None, reason=reason)(test))


FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-extensions"),
    *("--disable-default-apps", "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
]

OWN_HOSTS = ("clients2.google.com", "accounts.google.com", "www.google.com", "update.googleapis.com")
"""What the browser asks for by itself, whatever page it shows; names are not resolved, so nothing answers."""


def run_chromium(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Run it once with an empty profile below the folder."""
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def open_page(page: Path, folder: Path) -> tuple[str, list[str], list[str]]:
    """The document after its script ran, the lines of the console, and the addresses that were asked for."""
    log = folder / "net.json"
    done = run_chromium(
        folder,
        "--enable-logging=stderr",
        f"--log-net-log={log}",
        "--virtual-time-budget=2000",
        "--dump-dom",
        page.absolute().as_uri(),
    )
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    events = json.loads(log.read_text(encoding="utf-8"))["events"]
    asked = {event.get("params", {}).get("url", "") for event in events}
    remote = {url for url in asked if url.startswith(("http:", "https:", "ws:", "wss:"))}
    return done.stdout, console, sorted(url for url in remote if urlsplit(url).hostname not in OWN_HOSTS)


def take_screenshot(page: Path, target: Path, width: int, height: int, *, dark: bool = False) -> None:
    """The page as a PNG."""
    more = ["--blink-settings=preferredColorScheme=0"] if dark else []
    run_chromium(
        target.parent, *more, f"--window-size={width},{height}", f"--screenshot={target}", page.absolute().as_uri()
    )
