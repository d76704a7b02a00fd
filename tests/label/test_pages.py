"""The page in a real browser: boxes are dragged, guesses accepted by key, answers taken back, pages loaded again."""

import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from tacit.label.command import make_task
from tacit.label.server import LabelServer
from tacit.label.session import Session
from tests.chromium import needs_chromium
from tests.label.browser import Browser
from tests.label.test_tasks import write_reviews, write_tales

Image = pytest.importorskip("PIL.Image")


@contextmanager
def showing(source, aim, folder, batch=100, **options):
    """A browser with the page of a task, and its session."""
    out = folder / "out"
    out.mkdir(parents=True)
    session = Session(make_task(source, aim, out, seed=0, **options), out, batch)
    with LabelServer(session) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        session.refit(always=True)
        session.wait()
        with Browser(folder) as browser:
            browser.open(server.address)
            browser.wait_for("question !== null")
            yield browser, session
            assert browser.errors == []
        server.shutdown()


def press(browser, key):
    """Press a key that answers, and wait until the answer is stored."""
    before = browser.run("state.answered + state.closed")
    browser.press(key)
    browser.wait_for(f"state.answered + state.closed !== {before}")


def write_photos(folder):
    rng = np.random.default_rng(0)
    for kind, colour in (("red", (220, 30, 30)), ("blue", (30, 30, 220))):
        (folder / kind).mkdir(parents=True)
        for i in range(5):
            pixels = rng.integers(90, 160, (90, 120, 3), dtype=np.uint8)
            pixels[20:60, 10 * i : 10 * i + 40] = colour
            Image.fromarray(pixels).save(folder / kind / f"{i}.png")
    return folder


@needs_chromium
def test_boxes_are_dragged_accepted_taken_back_and_stay_after_loading_again(tmp_path):
    with showing(write_photos(tmp_path / "photos"), "locate", tmp_path) as (browser, session):
        first = browser.run("question.item")
        frame = browser.frame("#photo")
        scale = min(frame["width"] / 120, frame["height"] / 90)
        left = frame["x"] + (frame["width"] - 120 * scale) / 2
        top = frame["y"] + (frame["height"] - 90 * scale) / 2
        browser.drag((left + 12 * scale, top + 14 * scale), (left + 72 * scale, top + 64 * scale))
        press(browser, "Enter")
        assert session.answers()[0][first] == pytest.approx([12, 14, 72, 64], abs=1)
        second = browser.run("question.item")
        guess = browser.run("question.guess")
        press(browser, "Enter")
        assert session.answers()[0][second] == pytest.approx(guess, abs=0.1)
        press(browser, "s")
        press(browser, "n")
        assert len(session.answers()[1]) == 2
        press(browser, "u")
        press(browser, "u")
        assert session.answers()[1] == []
        browser.run("window.isOld = true; location.reload()")
        browser.wait_for("!window.isOld && question !== null && state.answered === 2")
        press(browser, "u")
        assert list(session.answers()[0]) == [first]
        assert browser.run("question.item") == second


@needs_chromium
def test_masks_are_painted_and_changed_by_key(tmp_path):
    rng = np.random.default_rng(0)
    source = tmp_path / "squares"
    (source / "images").mkdir(parents=True)
    for i in range(4):
        pixels = rng.integers(20, 60, (48, 64, 3), dtype=np.uint8)
        pixels[10:34, 20:44] += 150
        Image.fromarray(pixels).save(source / "images" / f"{i}.png")
    with showing(source, "segment", tmp_path) as (browser, session):
        browser.wait_for("document.getElementById('canvas').width === 64")
        browser.wait_for("editor.key({ key: 'g' })")
        item = browser.run("question.item")
        # a flat window: there are bands beside the photo
        flat = {"width": 1100, "height": 500, "deviceScaleFactor": 1, "mobile": False}
        browser.call("Emulation.setDeviceMetricsOverride", **flat)
        frame = browser.frame("#canvas")
        scale = min(frame["width"] / 64, frame["height"] / 48)
        left = frame["x"] + (frame["width"] - 64 * scale) / 2
        top = frame["y"] + (frame["height"] - 48 * scale) / 2
        for row in (13, 18, 23, 28, 32):
            browser.drag((left + 21 * scale, top + row * scale), (left + 43 * scale, top + row * scale))
        assert browser.run("editor.answer().length") > 0
        painted = browser.run("editor.answer()")
        assert frame["width"] > 64 * scale + 20
        regions = session.task._maps(item)
        corner = int(regions[46, 1])
        browser.drag((left + 1.5 * scale, top + 46.5 * scale), (left + 1.6 * scale, top + 46.5 * scale))
        assert set(browser.run("editor.answer()")) == set(painted) ^ {corner}
        painted = browser.run("editor.answer()")
        browser.press("ArrowRight")
        browser.press(" ")
        assert browser.run("editor.answer()") != painted
        browser.press(" ")
        press(browser, "Enter")
        assert session.answers()[0][item] == painted
        press(browser, "n")
        assert [] in session.answers()[0].values()
    (source / "masks").mkdir()
    mask = np.zeros((48, 64), np.uint8)
    mask[10:34, 20:44] = 255
    Image.fromarray(mask).save(source / "masks" / "0.png")
    with showing(source, "segment", tmp_path / "single", single=True) as (browser, session):
        browser.wait_for("document.getElementById('canvas').width === 64")
        for key, answer in (("1", 1), ("2", 0)):
            item = browser.run("question.item")
            press(browser, key)
            assert session.answers()[0][item] == answer
        third, guess = browser.run("question.item"), browser.run("question.guess")
        press(browser, "Enter")
        assert session.answers()[0][third] == guess


@needs_chromium
def test_sentences_sites_tags_and_clusters_are_answered_by_key(tmp_path):
    write_reviews(tmp_path / "reviews.jsonl")
    with showing(tmp_path / "reviews.jsonl", "reasons", tmp_path / "a", share=0.25) as (browser, session):
        item = browser.run("question.item")
        guess = browser.run("question.guess[0]")
        for _ in range(guess):
            browser.press("ArrowDown")
        browser.press(" ")
        browser.press("Enter")
        browser.wait_for("!document.getElementById('notice').hidden")  # one sentence must be chosen
        assert session.answers()[0] == {}
        browser.press("ArrowDown" if guess == 0 else "ArrowUp")
        browser.press(" ")
        press(browser, "Enter")
        assert session.answers()[0] == {item: [1 if guess == 0 else guess - 1]}
    write_tales(tmp_path / "tales.conll", 6)
    with showing(tmp_path / "tales.conll", "coref", tmp_path / "b") as (browser, session):
        item = browser.run("question.item")
        for key in ("0", "0", "1", "2"):  # Alice; Bob; she is the nearest (Bob); him: the one before that (Alice)
            browser.press(key)
        press(browser, "Enter")
        assert session.answers()[0] == {item: [0, 1, 1, 0]}
        browser.wait_for("question !== null")
        browser.call("Emulation.setTouchEmulationEnabled", enabled=True)
        browser.tap("#skip")
        browser.wait_for("state.closed === 1")
    (tmp_path / "a.fa").write_text("".join(f">s{i}\nCCCCCCTGACTCATCC{'ACGT'[i % 4]}CCAAGG\n" for i in range(12)))
    with showing(tmp_path / "a.fa", "motif", tmp_path / "c", width=8) as (browser, session):
        item, (start, strand) = browser.run("question.item"), browser.run("question.guess")
        browser.press("ArrowLeft" if start else "ArrowRight")
        browser.press("f")
        press(browser, "Enter")
        assert session.answers()[0] == {item: [start - 1 if start else 1, 1 - strand]}
    (tmp_path / "w.tsv").write_text("the\tD\ndog\tN\n\na\tD\ncat\tN\n\nthe\t_\ncat\t_\n")
    with showing(tmp_path / "w.tsv", "tag", tmp_path / "d", tags="") as (browser, session):
        browser.press("2")
        browser.press("1")
        press(browser, "Enter")
        assert session.answers()[0] == {0: ["N", "D"]}
    with showing(tmp_path / "w.tsv", "tag", tmp_path / "e", tags="", single=True) as (browser, session):
        item = browser.run("question.item")
        press(browser, "2")  # one key is the whole answer
        assert session.answers()[0] == {item: "N"}
        guess = browser.run("question.guess")
        press(browser, "Enter")
        assert session.answers()[0] == {item: "N", 1 - item: guess}


@needs_chromium
def test_a_killed_command_goes_on_in_the_browser(tmp_path):
    (tmp_path / "w.tsv").write_text("the\tD\ndog\tN\n\na\tD\ncat\tN\n\nthe\t_\ncat\t_\n\na\t_\ndog\t_\n")
    command = [sys.executable, "-m", "tacit", "label", "w.tsv", "--for", "tag", "--no-browser", "--out", "out"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    for answered in (0, 1):
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
        address = process.stdout.readline().split()[1]
        with Browser(tmp_path / str(answered)) as browser:
            browser.open(address)
            browser.wait_for(f"state !== null && state.answered === {answered}")
            browser.wait_for("question !== null")
            press(browser, "Enter")
            process.kill()
            process.wait()
            process.stdout.close()
            browser.wait_for("document.getElementById('notice').textContent.includes('not running')")
    entries = [json.loads(line) for line in (tmp_path / "out" / "answers.jsonl").read_text().splitlines()]
    assert [entry.get("kind") for entry in entries] == [None, "answer", "answer"]
