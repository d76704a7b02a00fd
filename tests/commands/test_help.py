"""What holds for the help, the options and the exit codes of all commands at once."""

import re

import click
import pytest

from tacit.cli import COMMANDS, main
from tacit.commands import group
from tacit.commands.values import InputPath

group.COMMANDS.update(COMMANDS)
TOP = click.Context(group.tacit, info_name="tacit", **group.tacit.context_settings)
ALL = {name: group.tacit.get_command(TOP, name) for name in COMMANDS}
OPTIONS = [
    pytest.param(name, option, id=f"{name} {option.opts[0]}")
    for name, command in ALL.items()
    for option in command.params
    if isinstance(option, click.Option)
]
WITHOUT_FILES = ("completion", "network")
WITH_INPUTS = {name: command for name, command in ALL.items() if name not in ("demo", "examples", *WITHOUT_FILES)}


@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_every_option_has_a_sentence(name, option):
    assert option.help.endswith(".")
    assert len(option.help.split()) >= 5
    assert option.help[0].isupper()


@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_option_values_have_no_spaces(name, option):
    for value in getattr(option.type, "choices", ()):
        assert " " not in value


@pytest.mark.parametrize("name", list(COMMANDS))
def test_help_is_in_plain_words(name, capsys):
    assert main([name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert not re.search(r"RANGE|INTEGER|FLOAT|TEXT|DIRECTORY|<=|>=|x[<>]|\[\[", shown)
    assert "Exit codes: 0 done; 1 " in shown


def test_the_same_thing_has_the_same_short_option():
    short = {"out": "-o", "jobs": "-j", "quiet": "-q", "verbose": "-v"}
    for name, command in ALL.items():
        for option in command.params:
            assert short.get(option.name) in (None, *option.opts), f"{name}: {option.name}"
        if name not in (*WITHOUT_FILES, "label"):  # label prints the address of its page, and asks there
            assert {"out", "quiet", "verbose"} <= {option.name for option in command.params}


def test_every_output_is_a_folder_of_the_same_option():
    for name in {*COMMANDS} - {*WITHOUT_FILES}:
        assert [option.metavar for option in ALL[name].params if "--out" in option.opts] == ["FOLDER"], name


@pytest.mark.parametrize("name", list(COMMANDS))
def test_a_misspelt_command_is_corrected(name, capsys):
    assert main([name[:2] + name[3:]]) == 2
    assert repr(name) in capsys.readouterr().err.partition("Did you mean ")[2]


@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_a_misspelt_option_is_corrected(name, option, capsys):
    long = max(option.opts, key=len)
    if len(long) > 4:
        assert main([name, long + "x"]) == 2
        assert repr(long) in capsys.readouterr().err.partition("Did you mean ")[2]


@pytest.mark.parametrize("name", list(WITH_INPUTS))
def test_a_missing_file_is_an_input_that_cannot_be_used(name, tmp_path, capsys):
    """For every argument and every option that names an input."""
    inputs = [param for param in ALL[name].params if isinstance(param.type, InputPath)]
    assert inputs
    (tmp_path / "file").write_text("")
    there = str(tmp_path if name in ("segment", "locate") else tmp_path / "file")
    arguments = [param for param in inputs if isinstance(param, click.Argument)]
    for wrong in inputs:
        given = [str(tmp_path / "gone") if param is wrong else there for param in arguments]
        options = [wrong.opts[0], str(tmp_path / "gone")] if isinstance(wrong, click.Option) else []
        if name == "coref" and not options:
            options = ["--predict", there]
        assert main([name, *given, *options, "--out", str(tmp_path / "out")]) == 1
        shown = capsys.readouterr().err
        assert "gone" in shown
        assert shown.count("\n") == 1


@pytest.mark.parametrize("name", list(WITH_INPUTS))
def test_a_bad_file_has_the_same_exit_code(name, tmp_path, capsys):
    bad = tmp_path / "bad"
    bad.write_bytes(b"\x00\xff")
    arguments = [param for param in ALL[name].params if isinstance(param, click.Argument)]
    given = [str(bad) for param in arguments if param.required or param.name in ("train", "positives")]
    needed = {"label": ["--for", "tag"], "coref": ["--predict", str(bad)], "bags": ["--bag", "id", "--label", "y"]}
    options = needed.get(name, [])
    assert main([name, *given, *options, "--out", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["motif", "FILE", "--top", "9"], "--top"),
        (["motif", "FILE", "--c", "0"], "--c"),
        (["motif", "FILE", "--learner", "svm"], "--learner"),
        (["motif", "FILE", "--time-budget", "nan"], "--time-budget"),
        (["scan", "FILE", "FILE", "--p-value", "0.2"], "--p-value"),
        (["tag", "FILE", "--states", "1.5"], "--states"),
        (["tag", "FILE", "--seed", "-1"], "--seed"),
        (["align", "FILE", "-j", "0"], "--jobs"),
        (["reasons", "FILE", "-q", "-v"], "--quiet"),
    ],
)
def test_a_wrong_value_names_its_option(arguments, option, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main([word.replace("FILE", str(tmp_path / "file")) for word in arguments]) == 2
    assert f": {option} " in capsys.readouterr().err


def test_earlier_spellings_of_values_are_accepted():
    learner = next(option for option in ALL["motif"].params if option.name == "learner")
    assert learner.type.convert("latent svm", learner, None) == "latent-svm"


def test_a_value_that_only_the_application_refuses_is_an_error_of_the_command_line(tmp_path, capsys):
    (tmp_path / "a.fa").write_text(">a\nACGTACGTACGT\n")
    assert main(["motif", str(tmp_path / "a.fa"), "--flank", "XX", "--out", str(tmp_path / "o")]) == 2
    assert "flank" in capsys.readouterr().err
