"""Answers on disk, the session between answers, and a server that refuses what does not come from its page."""

import http.client
import json
import multiprocessing
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tacit.cli import main
from tacit.data.reading import read_text
from tacit.label.journal import Entry, Journal
from tacit.label.server import MAX_POST, LabelServer
from tacit.label.session import Learned, Session
from tacit.label.tags import Tags
from tacit.text.tagged_words import read_tagged

WORDS = [["the", "dog", "barks"], ["a", "cat", "sleeps"], ["the", "cat", "barks"], ["a", "dog", "sleeps"]] * 5


class Numbers:
    """Which number is larger: the model guesses zero, and asks from the last item to the first."""

    name, quality_name = "numbers", "quality"
    nothing = None

    def __init__(self, n=6):
        self.items = [f"item {i}" for i in range(n)]
        self.fits = []

    def describe(self):
        return {"kind": "numbers"}

    def show(self, item):
        return {}

    def check(self, item, answer):
        if not isinstance(answer, int):
            raise ValueError("an answer must be a whole number")
        return answer

    def learn(self, answers, closed):
        self.fits.append(dict(answers))
        order = [i for i in reversed(range(len(self.items))) if i not in answers]
        return Learned(order, dict.fromkeys(range(len(self.items)), 0), 0.5 if answers else None)

    def export(self, answers, folder):
        (folder / "numbers.json").write_text(json.dumps(answers))
        return ["numbers.json"]

    def picture(self, item):
        return b"photo"


@contextmanager
def serving(session):
    with LabelServer(session) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield server
        server.shutdown()


def send(server, method, path, body=None, **headers):
    """Status, headers and content of what a request of the page gets; headers replace its own, "" leaves one out."""
    own = {"Host": server.hosts[0]}
    if method == "POST":
        own |= {"Origin": f"http://{server.hosts[0]}", "Content-Type": "application/json"}
    own |= {name.replace("_", "-"): value for name, value in headers.items()}
    own = {name: value for name, value in own.items() if value is not None}
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    connection.putrequest(method, path, skip_host=True)
    content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    if method == "POST" and "Content-Length" not in own:
        own["Content-Length"] = str(len(content))
    for name, value in own.items():
        if value != "":
            connection.putheader(name, value)
    connection.endheaders(content)
    response = connection.getresponse()
    found = response.status, dict(response.headers), response.read()
    connection.close()
    return found


@pytest.fixture
def server(tmp_path):
    with serving(Session(Numbers(), tmp_path, batch=2)) as server:
        yield server


def below(server, path):
    return f"/{server.token}/{path}"


# journal


def test_answers_survive_and_the_last_one_counts(tmp_path):
    journal = Journal(tmp_path / "a.jsonl", "t")
    journal.append(Entry("x", "answer", 1))
    journal.append(Entry("x", "answer", 2))
    assert Journal(tmp_path / "a.jsonl", "t").read()["x"].answer == 2
    journal.append(Entry("x", "undo", None))
    assert journal.read()["x"].answer == 1


def test_a_line_that_was_cut_off_is_passed_over(tmp_path):
    journal = Journal(tmp_path / "a.jsonl", "t")
    journal.append(Entry("x", "answer", 1))
    whole = journal.path.read_bytes()
    journal.append(Entry("y", "answer", 2))
    journal.path.write_bytes(journal.path.read_bytes()[: len(whole) + 20])
    assert list(journal.read()) == ["x"]
    journal.append(Entry("z", "answer", 3))
    assert list(journal.read()) == ["x", "z"]


def test_lines_that_are_not_objects_are_passed_over(tmp_path):
    journal = Journal(tmp_path / "a.jsonl", "t")
    journal.append(Entry("x", "answer", 1))
    (tmp_path / "a.jsonl").write_bytes((tmp_path / "a.jsonl").read_bytes() + b"\n\n[1]\n{unfinished\n\xff\n")
    journal.append(Entry("y", "answer", 2))
    assert [entry.item for entry in journal.entries()] == ["x", "y"]


def test_a_journal_of_another_task_is_refused(tmp_path):
    Journal(tmp_path / "a.jsonl", "t").append(Entry("x", "answer", 1))
    with pytest.raises(ValueError, match="another --out"):
        Journal(tmp_path / "a.jsonl", "other").read()


def _append_many(path, start):
    journal = Journal(path, "t")
    for i in range(start, start + 50):
        journal.append(Entry(f"item {i}", "answer", "x" * 2000))


def test_two_processes_lose_nothing(tmp_path):
    path = tmp_path / "a.jsonl"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_append_many, args=(path, start)) for start in (0, 50)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(Journal(path, "t").read()) == sorted(f"item {i}" for i in range(100))


# session


def test_questions_come_in_the_order_of_the_model_and_answers_leave_the_queue(tmp_path):
    session = Session(Numbers(), tmp_path, batch=2)
    session.refit(always=True)
    session.wait()
    assert [asked["item"] for asked in session.state()["questions"]] == [5, 4, 3, 2, 1]
    session.answer(5, "answer", 7)
    session.answer(4, "skip")
    session.wait()
    assert [asked["item"] for asked in session.state()["questions"]] == [3, 2, 1, 0]
    assert session.undo() == 4
    assert session.state()["questions"][0]["item"] == 4


def test_a_batch_of_answers_begins_a_fit_and_an_export(tmp_path):
    task = Numbers()
    session = Session(task, tmp_path, batch=2)
    session.refit(always=True)
    session.wait()
    session.answer(0, "answer", 1)
    session.wait()
    assert task.fits == [{}]
    session.answer(1, "answer", 2)
    session.wait()
    assert task.fits == [{}, {0: 1, 1: 2}]
    assert session.state()["qualities"] == [(2, 0.5)]
    assert json.loads((tmp_path / "numbers.json").read_text()) == {"0": 1, "1": 2}


def test_a_fit_that_fails_is_shown_and_answers_go_on(tmp_path):
    task = Numbers()
    task.learn = lambda answers, closed: 1 / 0
    session = Session(task, tmp_path, batch=1)
    session.refit(always=True)
    session.wait()
    assert "division" in session.state()["error"]
    session.answer(0, "answer", 1)
    assert session.answers()[0] == {0: 1}


def test_answers_for_other_input_are_refused(tmp_path):
    Session(Numbers(9), tmp_path).answer(8, "answer", 1)
    with pytest.raises(ValueError, match="same input"):
        Session(Numbers(3), tmp_path)


def test_the_page_says_when_answers_stop_paying(tmp_path):
    session = Session(Numbers(), tmp_path)
    session._qualities = [(1, 0.5), (2, 0.7), (3, 0.7), (4, 0.7)]
    assert session.state()["advice"] == ""
    session._qualities.append((5, 0.701))
    assert "hardly pay" in session.state()["advice"]


def test_the_curve_goes_on_in_the_next_session(tmp_path):
    session = Session(Numbers(), tmp_path, batch=1)
    session.answer(0, "answer", 1)
    session.wait()
    assert Session(Numbers(), tmp_path).state()["qualities"] == [(1, 0.5)]
    (tmp_path / "quality.tsv").write_text("answers\tquality\nmany\t0.5\n")
    with pytest.raises(ValueError, match="remove"):
        Session(Numbers(), tmp_path)


# server


def test_the_page_and_its_files_have_a_policy_and_link_nothing_else(server):
    for path in ("", "page.js", "editors.js", "page.css", "task", "state"):
        status, headers, content = send(server, "GET", below(server, path))
        assert status == 200
        assert headers["Cache-Control"] == "no-store"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["Referrer-Policy"] == "no-referrer"
        assert b"https:" not in content
        assert content.replace(b"http://www.w3.org/2000/svg", b"").count(b"http:") == 0
    assert send(server, "GET", below(server, "image/3"))[2] == b"photo"


def test_addresses_for_a_proxy_are_refused(server):
    assert send(server, "GET", f"http://evil.example{below(server, 'state')}")[0] == 403


def test_two_lengths_are_refused(server):
    body = b'{"item": 0, "kind": "answer", "answer": 1}'
    host = server.hosts[0]
    lines = [f"POST {below(server, 'answer')} HTTP/1.1", f"Host: {host}", f"Origin: http://{host}"]
    lines += ["Content-Type: application/json", f"Content-Length: {len(body)}", "Content-Length: 0", "", ""]
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=20) as connection:
        connection.sendall("\r\n".join(lines).encode() + body)
        assert b" 411 " in connection.recv(1000)
    assert server.session.answers() == ({}, [])


def test_it_listens_on_this_machine_alone(server):
    assert server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1.evil.example", ""])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_other_hosts_are_refused(server, host, method):
    body = {"item": 0, "kind": "answer", "answer": 1}
    path = below(server, "state" if method == "GET" else "answer")
    assert send(server, method, path, body, Host=host)[0] in (400, 403)
    assert server.session.answers() == ({}, [])


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "https://127.0.0.1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Content_Type": "text/plain"},
        {"Content_Type": "application/x-www-form-urlencoded"},
    ],
)
def test_posts_from_other_pages_are_refused(server, headers):
    body = {"item": 0, "kind": "answer", "answer": 1}
    assert send(server, "POST", below(server, "answer"), body, **headers)[0] in (403, 415)
    assert server.session.answers() == ({}, [])


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/state", "/x/state", "/../state", "//evil.example/", "/%2e%2e/%2e%2e/etc/passwd"),
        *("{}/image/../../../etc/passwd", "{}/image/%2e%2e%2fpasswd", "{}/image/-1", "{}/image/6", "{}/image/%D9%A3"),
        *("{}/image/" + "9" * 400, "{}/../../etc/passwd", "{}/page.py", "{}/server.py", "{}//etc/passwd"),
    ],
)
def test_nothing_but_the_page_can_be_read(server, path):
    target = path.replace("{}", "/" + server.token)
    status, _, content = send(server, "GET", target)
    assert status == 404
    assert b"root:" not in content


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"[" * (MAX_POST + 1), {}, 413),
        (b"", {"Content_Length": "99999999999999999999"}, 413),
        (b"", {"Content_Length": "-5"}, 411),
        (b"", {"Transfer_Encoding": "chunked", "Content_Length": ""}, 411),
        (b"[" * 60_000, {}, 400),
        (b"[1]", {}, 400),
        (b"not json", {}, 400),
        ({"item": 99, "kind": "answer", "answer": 1}, {}, 400),
        ({"item": "0", "kind": "answer", "answer": 1}, {}, 400),
        ({"item": 0, "kind": "undo"}, {}, 400),
        ({"item": 0, "kind": "answer", "answer": "one"}, {}, 400),
        ({}, {}, 400),
    ],
)
def test_posts_that_are_not_answers_are_refused(server, body, headers, status):
    assert send(server, "POST", below(server, "answer"), body, **headers)[0] == status
    assert server.session.answers() == ({}, [])


def test_a_failure_behind_the_page_is_told_and_the_server_goes_on(server, monkeypatch):
    def fail(entry):
        raise OSError("no space left on device")

    monkeypatch.setattr(server.session.journal, "append", fail)
    body = {"item": 0, "kind": "answer", "answer": 1}
    status, _, content = send(server, "POST", below(server, "answer"), body)
    assert status == 500
    assert "no space" in json.loads(content)["error"]
    monkeypatch.undo()
    assert send(server, "POST", below(server, "answer"), body)[0] == 200


def test_browsers_that_go_away_leave_no_traceback(server, capfd):
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", server.server_port)) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            request = f"GET {below(server, 'editors.js')} HTTP/1.1\r\nHost: {server.hosts[0]}\r\n\r\n"
            connection.sendall(request.encode())
    assert send(server, "GET", below(server, "state"))[0] == 200
    assert capfd.readouterr().err == ""


def test_two_tabs_do_not_lose_answers(tmp_path):
    with serving(Session(Numbers(40), tmp_path, batch=5)) as server:

        def answer(items):
            for i in items:
                body = {"item": i, "kind": "answer", "answer": i}
                assert send(server, "POST", below(server, "answer"), body)[0] == 200

        tabs = [threading.Thread(target=answer, args=(range(start, 40, 2),)) for start in (0, 1)]
        for tab in tabs:
            tab.start()
        for tab in tabs:
            tab.join()
        server.session.wait()
        assert server.session.answers()[0] == {i: i for i in range(40)}


def test_undo_takes_the_last_answer_back(server):
    send(server, "POST", below(server, "answer"), {"item": 3, "kind": "answer", "answer": 1})
    found = json.loads(send(server, "POST", below(server, "undo"), {})[2])
    assert found["item"] == 3
    assert found["answered"] == 0
    assert not found["can_undo"]
    assert json.loads(send(server, "POST", below(server, "undo"), {})[2])["item"] is None


def test_each_tab_takes_back_its_own_answers(server):
    for item in (3, 4):
        send(server, "POST", below(server, "answer"), {"item": item, "kind": "answer", "answer": 1})
    assert json.loads(send(server, "POST", below(server, "undo"), {"item": 3})[2])["item"] == 3
    assert server.session.answers()[0] == {4: 1}
    assert json.loads(send(server, "POST", below(server, "undo"), {"item": 3})[2])["item"] is None
    assert send(server, "POST", below(server, "undo"), {"item": "x"})[0] == 400


def test_the_question_on_the_page_stays_until_it_is_answered(server):
    found = json.loads(send(server, "GET", below(server, "state?item=4"))[2])
    assert found["questions"][0]["item"] == 4
    server.session.answer(4, "skip")
    found = json.loads(send(server, "GET", below(server, "state?item=4"))[2])
    assert 4 not in [asked["item"] for asked in found["questions"]]
    assert send(server, "GET", below(server, "state?item=99"))[0] == 200
    assert send(server, "GET", below(server, "state?item=../x"))[0] == 200


def test_undo_reaches_back_to_an_earlier_session(tmp_path):
    Session(Numbers(), tmp_path).answer(2, "answer", 7)
    assert Session(Numbers(), tmp_path).undo() == 2


# tags


def write_words(path, n_tagged):
    tags = {"the": "D", "a": "D", "dog": "N", "cat": "N", "barks": "V", "sleeps": "V"}
    lines = [[f"{word}\t{tags[word] if i < n_tagged else '_'}" for word in own] for i, own in enumerate(WORDS)]
    path.write_text("\n\n".join("\n".join(own) for own in lines) + "\n", encoding="utf-8")


def test_tags_are_guessed_ordered_scored_and_exported(tmp_path):
    write_words(tmp_path / "words.tsv", 10)
    task = Tags(tmp_path / "words.tsv")
    assert len(task.items) == 10
    assert task.tags == ["D", "N", "V"]
    learned = task.learn({0: ["D", "N", "V"]}, [1])
    assert sorted(learned.order) == list(range(2, 10))
    assert learned.quality == 1.0
    assert learned.guesses[5] == ["D", "N", "V"]
    task.export({0: ["D", "N", "V"]}, tmp_path)
    assert len(read_tagged(tmp_path / "tagged.tsv").words) == 11


def test_tags_can_begin_without_a_tagged_sentence(tmp_path):
    write_words(tmp_path / "words.tsv", 0)
    with pytest.raises(ValueError, match="--tags"):
        Tags(tmp_path / "words.tsv")
    task = Tags(tmp_path / "words.tsv", tags=["N", "D", "V"])
    learned = task.learn({}, [])
    assert sorted(learned.order) == list(range(20))
    assert learned.quality is None
    with pytest.raises(ValueError, match="per word"):
        task.check(0, ["N", "D"])
    with pytest.raises(ValueError, match="per word"):
        task.check(0, ["N", "D", "X"])


def test_single_words_are_asked_for_and_written_as_partly_tagged_text(tmp_path):
    path = tmp_path / "words.tsv"
    write_words(path, 10)
    path.write_text(path.read_text().replace("the\t_", "the\tD"))
    task = Tags(path, single=True)
    assert task.items[0] == "sentence 11, word 2: cat"
    missing = [(i, t) for i, own in enumerate(read_tagged(path).tags) for t, tag in enumerate(own) if tag is None]
    assert [(shown["words"], shown["at"]) for shown in map(task.show, range(len(task.items)))] == [
        (WORDS[i], t) for i, t in missing
    ]
    assert task.check(0, "N") == "N"
    for wrong in ("X", ["N"], None, 1):
        with pytest.raises((ValueError, TypeError)):
            task.check(0, wrong)
    answers = {0: "N", 1: "V"}
    learned = task.learn(answers, [2])
    assert sorted(learned.order) == list(range(3, len(task.items)))
    assert learned.quality == 1.0
    assert learned.guesses[3] in "DNV"
    task.export(answers, tmp_path)
    found = read_tagged(tmp_path / "tagged.tsv")
    n_known = sum(tag is not None for own in read_tagged(path).tags for tag in own)
    assert sum(tag is not None for own in found.tags for tag in own) == n_known + 2
    out = str(tmp_path / "out")
    assert main(["tag", str(tmp_path / "tagged.tsv"), "--quiet", "--out", out]) == 0


def test_answers_for_whole_sentences_and_single_words_are_not_mixed(tmp_path):
    write_words(tmp_path / "words.tsv", 10)
    Session(Tags(tmp_path / "words.tsv"), tmp_path).answer(0, "answer", ["D", "N", "V"])
    with pytest.raises(ValueError, match="--out"):
        Session(Tags(tmp_path / "words.tsv", single=True), tmp_path)


def test_known_tags_of_a_partly_tagged_sentence_are_the_guess(tmp_path):
    write_words(tmp_path / "words.tsv", 10)
    path = tmp_path / "more.tsv"
    path.write_text((tmp_path / "words.tsv").read_text() + "\nthe\tV\ndog\t_\n")
    task = Tags(path)
    last = len(task.items) - 1
    assert task.learn({}, []).guesses[last] == ["V", "N"]


def test_a_file_with_all_tags_is_refused(tmp_path):
    write_words(tmp_path / "words.tsv", 20)
    with pytest.raises(ValueError, match="nothing to ask"):
        Tags(tmp_path / "words.tsv")


# boxes


@pytest.fixture(scope="module")
def photo_folder(tmp_path_factory):
    """Two classes of squares on noise, four photos each."""
    Image = pytest.importorskip("PIL.Image")
    folder, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    for kind, colour in (("red", (220, 30, 30)), ("blue", (30, 30, 220))):
        (folder / kind).mkdir()
        for i in range(6):
            pixels = rng.integers(90, 160, (96, 128, 3), dtype=np.uint8)
            top, left = rng.integers(4, 40), rng.integers(4, 70)
            pixels[top : top + 44, left : left + 44] = colour
            Image.fromarray(pixels).save(folder / kind / f"{i}.png")
    return folder


def test_boxes_are_checked_learned_and_exported(photo_folder, tmp_path):
    from tacit.label.boxes import Boxes
    from tacit.vision.photo_folders import join_drawn_boxes

    task = Boxes(photo_folder)
    assert task.check(0, [-5, 10, 60.04, 500]) == [0.0, 10.0, 60.0, 96.0]
    for wrong in ([1, 2, 3], [5, 5, 5, 9], ["a", 1, 2, 3], [float("nan"), 0, 5, 5], None):
        with pytest.raises((ValueError, TypeError)):
            task.check(0, wrong)
    learned = task.learn({}, [])
    assert sorted(learned.order) == list(range(12))
    assert len(learned.guesses[3]) == 4
    answers = {0: [4.0, 5.0, 50.0, 60.0], 7: [10.0, 10.0, 54.0, 54.0]}
    for name in task.export(answers, tmp_path):
        drawn = join_drawn_boxes(tmp_path / name, task.photos).boxes
        assert drawn[0].tolist() == [answers[0]]
        assert not len(drawn[1])
    assert task.picture(0)[:2] == b"\xff\xd8"


@pytest.mark.long
def test_a_killed_command_goes_on_with_all_answers(tmp_path):
    write_words(tmp_path / "words.tsv", 5)
    command = [sys.executable, "-m", "tacit", "label", "words.tsv", "--for", "tag", "--no-browser", "--out", "out"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}

    def start():
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
        address = process.stdout.readline().split()[1]
        return process, address.split("/")[2], address.split("/")[3]

    process, host, token = start()
    connection = http.client.HTTPConnection(host, timeout=60)
    for item in range(4):
        body = json.dumps({"item": item, "kind": "answer", "answer": ["D", "N", "V"]})
        headers = {"Origin": f"http://{host}", "Content-Type": "application/json"}
        connection.request("POST", f"/{token}/answer", body, headers)
        response = connection.getresponse()
        assert response.status == 200
        response.read()
    connection.close()
    process.kill()
    process.communicate()
    process, host, token = start()
    connection = http.client.HTTPConnection(host, timeout=60)
    connection.request("GET", f"/{token}/state")
    assert json.loads(connection.getresponse().read())["answered"] == 4
    connection.close()
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert len(read_tagged(tmp_path / "out" / "tagged.tsv").words) == 9
    assert "sentence 6" in read_text(Path(tmp_path / "out" / "answers.jsonl"))
