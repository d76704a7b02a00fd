"""`tacit bags`: from a table to predictions, scores and a report."""

import csv
import json

import numpy as np
import pytest

import tacit
from tacit.bags.reading import read_bag_file
from tacit.cli import main
from tests.closing import check_closing

HOSTILE = '<script>document.title="taken"</script>'


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """40 bags, the last four without a label; one has a hostile name."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("bags") / "table.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "y", "a", "b", "note"])
        for i in range(40):
            label = "" if i >= 36 else ["inert", "active"][i % 2]
            for j in range(int(rng.integers(2, 5))):
                a = rng.standard_normal() + 6 * (i % 2 and j == 1)
                writer.writerow([HOSTILE if i == 3 else f"m{i}", label, a, rng.standard_normal(), "text"])
    return path


@pytest.fixture(scope="module")
def out(table, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "bags"
    options = ["--bag", "id", "--label", "y", "--ignore", "note", "--background", "inert", "--out", str(out)]
    assert main(["bags", str(table), *options]) == 0
    return out


def read(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_predictions_scores_model_and_report(table, out):
    predictions, instances, lines = read(out / "predictions.csv"), read(out / "instances.csv"), read(table)
    assert len(predictions) == 40
    assert len(instances) == len(lines)
    assert [row["predicted"] for row in predictions[36:]] == ["inert", "active"] * 2
    best = {row["bag"]: row["deciding line"] for row in predictions}
    assert best["m0"] == ""
    assert float(lines[int(best["m5"]) - 2]["a"]) > 2
    record = json.loads((out / "run.json").read_text())
    assert record["held_out"]["BagClassifier"]["auc"] > 0.9
    assert len(record["held_out"]) == 3
    page = (out / "report.html").read_text()
    assert HOSTILE not in page
    assert "random forest" in page
    assert tacit.load(out / "model.tacit").columns_ == ["a", "b"]


@pytest.mark.parametrize("mark", [";", "\t"])
def test_other_delimiters_are_read(mark, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("\ufeffid,y,a\r\n1,p,2\r\n2,,3,\r\n1,p,4\r\n".replace(",", mark), encoding="utf-8")
    found = read_bag_file(path, "id", "y")
    assert (found.names, found.labels, found.lines) == (["1", "2"], ["p", None], [2, 4, 3])
    assert found.bags.values.ravel().tolist() == [2, 4, 3]


def test_a_model_is_used_again(table, out, tmp_path, capsys):
    again = tmp_path / "again"
    arguments = ["--model", str(out / "model.tacit"), "--out", str(again)]
    assert main(["bags", str(table), *arguments]) == 0
    check_closing(capsys.readouterr().out, again)
    old, new = read(out / "predictions.csv"), read(again / "predictions.csv")
    assert [row["probability of active"] for row in old] == [row["probability of active"] for row in new]
    assert not (again / "model.tacit").exists()


@pytest.mark.parametrize(
    ("text", "options", "code", "keyword"),
    [
        ("id,y,a\n1,p,2\n", [], 2, "--label"),
        ("id,y,a\n1,p,x\n", ["--label", "y"], 1, "'a'"),
        ("id,y,a\n1,p,2\n1,q,2\n", ["--label", "y"], 1, "labels"),
        ("id,y,a\n,p,2\n", ["--label", "y"], 1, "empty"),
        ("id,y,a\n1,,2\n", ["--label", "y"], 1, "label"),
        ("id,y\n1,p\n", ["--label", "y"], 1, "features"),
        ("id,y,a\n1,p,2,5\n", ["--label", "y"], 1, "cells"),
        ("bag,y,a\n1,p,2\n", ["--label", "y"], 1, "'id'"),
        ("id,y,a\n", ["--label", "y"], 1, "rows"),
        ("id,y,a\n1,p,2\n2,q,1\n", ["--label", "y"], 1, "single bag"),
        ("id,y,a\n1,p,2\n", ["--label", "y", "--model", "TABLE"], 2, "learning"),
    ],
)
def test_bad_tables_are_refused(text, options, code, keyword, tmp_path, capsys):
    path = tmp_path / "table.csv"
    path.write_text(text)
    options = [str(path) if option == "TABLE" else option for option in options]
    assert main(["bags", str(path), "--bag", "id", *options, "--out", str(tmp_path / "out")]) == code
    assert keyword in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
