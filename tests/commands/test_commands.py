"""What all commands share: help, exit codes, one-line errors, folders that appear whole or not at all."""

import errno
import importlib
import json
import os
import signal
import subprocess
import sys

import click
import pytest

from tacit.cli import COMMANDS, main
from tacit.commands import INPUT_FILE, INTERRUPTED, OutputError, OutputFolder, group, run_options
from tacit.commands.failures import explain
from tacit.commands.run import describe_file


@pytest.fixture
def tiny(monkeypatch):
    """A command ``tacit tiny FILE --do WHAT`` that does what a test asks for."""

    @click.command()
    @click.argument("file", type=INPUT_FILE)
    @click.option("--do", default="")
    @run_options(out="tiny")
    def command(run, file, do):
        with run.writing(file) as folder:
            run.note("answering")
            folder.write_text("a.txt", f"seed {run.seed}")
            if do:
                folder.write_text(f"{do}.txt", "more")
            if do == "fail":
                raise ValueError("a value\nthat is wrong; give another")
            if do == "break":
                raise RuntimeError("unforeseen")
            if do == "fill":
                raise OSError(errno.ENOSPC, "No space left on device", str(folder.path("a.txt")))
            if do == "interrupt":
                raise KeyboardInterrupt
            if do == "keep":
                run.status = INTERRUPTED
            run.record(answer=42)
        run.finish("an answer", "held-out accuracy 100 %", f"open {run.out}")

    monkeypatch.setitem(group.COMMANDS, "tiny", ("tacit.commands.tiny", "Try it."))
    monkeypatch.setitem(sys.modules, "tacit.commands.tiny", type(sys)("tacit.commands.tiny"))
    sys.modules["tacit.commands.tiny"].tiny = command


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "in.txt"
    path.write_text("abc")
    return path


def test_help_imports_no_command_and_nothing_heavy():
    code = (
        "import sys; from tacit.cli import COMMANDS, main; main(['--help']); "
        "print(*[m for m in sys.modules if m in ('numpy', 'sklearn', 'jinja2', 'tacit.demo.command')])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "Commands:" in shown
    assert shown.splitlines()[-1] == ""


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help_with_an_example_and_the_line_of_the_list(name, capsys):
    command = getattr(importlib.import_module(COMMANDS[name][0]), name)
    assert main([name, "--help"]) == 0
    assert f"tacit {name}" in (command.epilog or "")
    assert command.get_short_help_str(200).rstrip(".") == COMMANDS[name][1].rstrip(".")
    assert "Example" in capsys.readouterr().out


@pytest.mark.usefixtures("tiny")
def test_a_run_writes_its_record(tmp_path, file, capsys):
    out = tmp_path / "new" / "out"
    assert main(["tiny", str(file), "--out", str(out), "--seed", "7"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Found: an answer; held-out accuracy 100 %",
        f"Files: {out}/ (a.txt, run.json)",
        f"Next:  open {out}",
    ]
    record = json.loads((out / "run.json").read_text())
    assert record["answer"] == 42
    assert record["seed"] == 7
    assert record["status"] == "done"
    assert record["files"] == ["a.txt", "run.json"]
    assert record["inputs"] == [describe_file(file)]
    assert (out / "a.txt").read_text() == "seed 7"
    assert sorted(path.name for path in out.parent.iterdir()) == ["out"]


@pytest.mark.usefixtures("tiny")
def test_json_prints_the_record_and_quiet_nothing(tmp_path, file, capsys):
    assert main(["tiny", str(file), "--out", str(tmp_path / "a"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["answer"] == 42
    assert main(["tiny", str(file), "--out", str(tmp_path / "b"), "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("tiny")
def test_a_folder_is_replaced_only_by_force_and_keeps_what_is_the_users(tmp_path, file, capsys):
    out = tmp_path / "out"
    assert main(["tiny", str(file), "--out", str(out), "--do", "extra"]) == 0
    (out / "mine.txt").write_text("precious")
    assert main(["tiny", str(file), "--out", str(out), "--seed", "1"]) == 3
    assert "--force" in capsys.readouterr().err
    assert (out / "a.txt").read_text() == "seed 0"
    assert main(["tiny", str(file), "--out", str(out), "--seed", "1", "--force"]) == 0
    assert (out / "a.txt").read_text() == "seed 1"
    assert sorted(path.name for path in out.iterdir()) == ["a.txt", "mine.txt", "run.json"]


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    ("do", "code", "line"),
    [
        ("fail", 1, "a value that is wrong"),
        ("break", 1, "RuntimeError: unforeseen"),
        ("interrupt", 130, "interrupted"),
    ],
)
def test_a_failed_run_says_one_line_and_leaves_the_former_results(do, code, line, tmp_path, file, capsys):
    out = tmp_path / "out"
    main(["tiny", str(file), "--out", str(out)])
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    capsys.readouterr()
    assert main(["tiny", str(file), "--out", str(out), "--force", "--do", do]) == code
    shown = capsys.readouterr().err.strip()
    assert shown.startswith(f"tacit tiny: {line}")
    assert "\n" not in shown
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


@pytest.mark.usefixtures("tiny")
def test_ctrl_c_that_ends_in_another_error_is_still_an_interrupt(tmp_path, file, capsys, monkeypatch):
    """As inside of an import, where a package may turn it into whatever it likes."""

    def disguised(path):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise AttributeError("half of a module") from None

    monkeypatch.setattr("tacit.commands.run.describe_file", disguised)
    assert main(["tiny", str(file), "--out", str(tmp_path / "out")]) == 130
    assert "interrupted" in capsys.readouterr().err


@pytest.mark.usefixtures("tiny")
def test_a_full_disk_is_one_line_that_names_the_users_folder(tmp_path, file, capsys):
    assert main(["tiny", str(file), "--out", str(tmp_path / "out"), "--do", "fill"]) == 3
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert "space" in shown
    assert str(tmp_path / "out" / "a.txt") in shown
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("tiny")
def test_an_interrupted_run_that_kept_something_writes_it(tmp_path, file):
    assert main(["tiny", str(file), "--out", str(tmp_path / "out"), "--do", "keep"]) == 130
    assert json.loads((tmp_path / "out" / "run.json").read_text())["status"] == "interrupted"


@pytest.mark.usefixtures("tiny")
def test_verbose_writes_notes_where_nobody_watches(tmp_path, file, capsys):
    assert main(["tiny", str(file), "-o", str(tmp_path / "a")]) == 0
    assert "answering" not in capsys.readouterr().err
    assert main(["tiny", str(file), "-o", str(tmp_path / "b"), "-v"]) == 0
    assert "answering" in capsys.readouterr().err


@pytest.mark.usefixtures("tiny")
def test_debug_shows_the_traceback(tmp_path, file, capsys):
    assert main(["tiny", str(file), "--out", str(tmp_path / "out"), "--do", "fail", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.usefixtures("tiny")
def test_a_wrong_command_line_is_one_line_and_exit_code_2(tmp_path, capsys):
    for arguments in (["nonsense"], ["tiny"], ["tiny", str(tmp_path), "--seed", "-1"], ["tiny", "--sed", "1"]):
        assert main(arguments) == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_refused_before_any_work(tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    with pytest.raises(OutputError, match="locked"):
        OutputFolder(tmp_path / "locked" / "out").__enter__()


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path, file):
    with pytest.raises(OutputError, match="file"):
        OutputFolder(file).__enter__()
    with pytest.raises(OutputError, match="written"):
        OutputFolder(file / "out").__enter__()


@pytest.mark.parametrize("name", ["../a", "/etc/a", "a/../../b", "", ".", "a//b"])
def test_no_name_leads_out_of_the_folder(name, tmp_path):
    with OutputFolder(tmp_path / "out") as folder, pytest.raises(OutputError, match="name"):
        folder.path(name)


def test_a_crafted_record_cannot_make_force_remove_other_files(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "out" / "run.json").write_text(json.dumps({"files": ["../precious", str(tmp_path / "precious")]}))
    with OutputFolder(tmp_path / "out", force=True) as folder:
        folder.write_text("a.txt", "new")
    assert (tmp_path / "precious").read_text() == "mine"


def test_control_characters_of_files_do_not_reach_the_terminal():
    assert explain(ValueError("bad \x1b[31mname"))[1] == "bad \\x1b[31mname"


def test_completion_prints_a_script(capsys):
    assert main(["completion", "bash"]) == 0
    assert "_TACIT_COMPLETE" in capsys.readouterr().out


def test_safe_tables_hold_no_formulas(tmp_path):
    from tacit.commands import CommandRun

    rows = [["=cmd|' /C calc'!A0", "-1.5", "+"], ["@SUM(A1)", "1e5", "-x"], ["＝1", "\r=1", "plain"]]
    for safe in (False, True):
        run = CommandRun("demo", tmp_path / str(safe), quiet=True, safe_tables=safe)
        with run.writing() as folder:
            folder.write_text("a.tsv", "".join("\t".join(row) + "\n" for row in rows))
            folder.write_text("deep/a.csv", 'name,score\n"=1+1",2\n"a\nb",-3\n')
            folder.write_text("a.txt", "=1\n")
        texts = [(tmp_path / str(safe) / name).read_bytes().decode() for name in ("a.tsv", "deep/a.csv", "a.txt")]
        if not safe:
            assert texts[0].splitlines()[0] == "\t".join(rows[0])
            continue
        cells = [cell for line in texts[0].split("\n") for cell in line.split("\t")]
        assert cells == ["'=cmd|' /C calc'!A0", "-1.5", "+", "'@SUM(A1)", "1e5", "'-x", "'＝1", "'\r=1", "plain", ""]
        assert texts[1] == 'name,score\n\'=1+1,2\n"a\nb",-3\n'
        assert texts[2] == "=1\n"
        assert not list(tmp_path.rglob("*.part"))


def test_unseen_characters_are_escaped_in_lines_of_json():
    from tacit.data.lines import json_line

    content = {"id": "a\x1b[31m\u202e\u2028\ud800", "text": "naïve \xa0 😀"}
    line = json_line(content)
    assert json.loads(line) == content
    assert "\x1b" not in line
    assert "\u202e" not in line
    assert line.encode()
    assert "naïve \xa0 😀" in line


def test_sigterm_leaves_nothing_behind(tmp_path):
    """The command is ended while its folder is open; the exit code is that of SIGTERM in a shell."""
    program = (
        "import os, signal, sys, click\n"
        "from tacit import commands\n"
        "from tacit.commands import group\n"
        "@click.command()\n"
        "@commands.run_options(out='out')\n"
        "def tiny(run):\n"
        "    with run.writing() as folder:\n"
        "        folder.write_text('a.txt', 'half')\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "sys.modules['own'] = type(sys)('own')\n"
        "sys.modules['own'].tiny = tiny\n"
        "group.COMMANDS['tiny'] = ('own', 'Try it.')\n"
        "sys.exit(group.main(['tiny', '--out', sys.argv[1]]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "out")], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 143, done.stderr
    assert "SIGTERM" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_folders_of_killed_commands_are_removed_later(tmp_path):
    from tacit.commands.folder import OutputFolder

    old, new = tmp_path / ".tacit-old.part", tmp_path / ".tacit-new.part"
    for stage in (old, new):
        stage.mkdir()
        (stage / "a.txt").write_text("half")
    for path in (old / "a.txt", old):
        os.utime(path, (0, 0))
    with OutputFolder(tmp_path / "out") as folder:
        folder.write_text("a.txt", "whole")
    assert not old.exists()
    assert new.exists()


def test_new_files_have_the_permissions_of_any_file_without_touching_the_umask(tmp_path, monkeypatch):
    import tacit
    from tacit.commands.folder import OutputFolder

    before = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", None)  # setting it, for a moment even, changes it for all threads
        tacit.StructuredSVM(tacit.problems.Multiclass()).fit([[0.0], [1.0]], [0, 1]).save(tmp_path / "model")
        with OutputFolder(tmp_path / "out") as folder:
            folder.write_text("a.txt", "")
    finally:
        monkeypatch.undo()
        os.umask(before)
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("model", "out", "out/a.txt")]
    assert modes == [0o640, 0o750, 0o640]


def test_two_writers_of_one_model_leave_a_whole_one(tmp_path):
    import threading

    import tacit
    from tacit.problems import Multiclass

    X, y = [[float(i), -float(i)] for i in range(20)], [i % 2 for i in range(20)]
    models = [tacit.StructuredSVM(Multiclass(), C=C).fit(X, y) for C in (1.0, 2.0)]
    threads = [threading.Thread(target=lambda m=m: [m.save(tmp_path / "model") for _ in range(10)]) for m in models]
    for thread in threads:
        thread.start()
    seen = set()
    while any(thread.is_alive() for thread in threads):
        if (tmp_path / "model").exists():
            seen.add(tacit.load(tmp_path / "model").C)
    for thread in threads:
        thread.join()
    assert seen <= {1.0, 2.0}
    assert tacit.load(tmp_path / "model").C in (1.0, 2.0)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
