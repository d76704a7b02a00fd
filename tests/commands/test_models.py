"""``--model``: a model of an earlier run predicts the same again, and learns nothing."""

import glob
import shlex

import pytest

from tacit.cli import main
from tacit.demo.example_files import EXAMPLES

AGAIN = {
    "tag": ("tag --model tags/model.tacit --predict words.txt", ["predictions.tsv"]),
    "coref": ("coref --model who/model.tacit --predict tales/new_*.conll", ["new_13.conll", "new_14.conll"]),
    "reasons": ("reasons reviews.jsonl --model reasons/model.tacit", ["reasons.jsonl"]),
    "summarise": ("summarise reviews.jsonl --model summaries/model.tacit", ["summaries.jsonl"]),
    "bags": ("bags molecules.csv --model bags/model.tacit", ["predictions.csv", "instances.csv"]),
    "transcribe": ("transcribe sounds --model spoken/model.tacit --transcripts sounds.tsv", ["words.ctm"]),
    "align": ("align sentences.en-fr --model links/model.tacit", ["links.txt"]),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The example files, and one run of every command."""
    out = tmp_path_factory.mktemp("models") / "examples"
    assert main(["examples", "--out", str(out), "--quiet"]) == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(out)
        assert all(call(EXAMPLES[name].call.removeprefix("tacit ")) == 0 for name in AGAIN)
    return out


def call(line):
    return main([found for word in shlex.split(line) for found in (sorted(glob.glob(word)) or [word])] + ["--quiet"])


@pytest.mark.parametrize("name", AGAIN)
def test_a_saved_model_writes_the_same_predictions(name, place, monkeypatch):
    monkeypatch.chdir(place)
    line, files = AGAIN[name]
    first = place / EXAMPLES[name].call.rsplit(maxsplit=1)[1]
    assert call(f"{line} --out again_{name}") == 0
    for file in files:
        assert (place / f"again_{name}" / file).read_bytes() == (first / file).read_bytes()
    assert (place / f"again_{name}" / "report.html").is_file()
    assert not (place / f"again_{name}" / "model.tacit").exists()


@pytest.mark.parametrize("name", AGAIN)
def test_a_model_of_another_command_is_refused_by_name(name, place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    own, _, other = AGAIN[name][0].partition("--model ")[2].partition("/")[0], None, "tags" if name != "tag" else "who"
    assert call(AGAIN[name][0].replace(f"{own}/model", f"{other}/model") + " --out bad") == 1
    assert f"'tacit {name}'" in capsys.readouterr().err
    assert not (place / "bad").exists()


@pytest.mark.parametrize(
    ("line", "named"), [(AGAIN["tag"][0] + " tagged.tsv", "TRAIN"), (AGAIN["align"][0] + " --c 3", "--c")]
)
def test_what_is_for_learning_is_refused_beside_a_model(line, named, place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    assert call(line + " --out bad") == 2
    assert f"{named} is for learning" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["tag --predict words.txt", "coref --predict tales/new_13.conll"])
def test_without_a_model_there_must_be_something_to_learn_from(line, place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    assert call(line) == 2
    assert "TRAIN" in capsys.readouterr().err
