"""`tacit motif` and `tacit scan`: from files to folders, with hostile names and broken inputs."""

import gzip
import json
import re

import numpy as np
import pytest

import tacit
from tacit.cli import main
from tacit.datasets import planted_motif
from tacit.dna.files import read_motifs
from tests.chromium import needs_chromium, open_page, take_screenshot
from tests.closing import check_closing

HOSTILE = [
    '<script>document.title="taken"</script>',
    "../../etc/passwd",
    "$(touch taken) `touch taken`; touch taken",
    "chr1:100-200",
    "name\x1b[31m with\x07 bells",
    "=cmd|' /C calc'!A0",
    "%s%n{{7*7}}",
    "same",
    "same",
]


def write_fasta(path, sequences, names=()):
    lines = []
    for i, letters in enumerate(sequences):
        lines.append(f">{names[i] if i < len(names) else f's{i}'}\n{letters.decode()}\n")
    path.write_text("".join(lines), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Positives whose names are hostile, negatives, known motifs."""
    folder = tmp_path_factory.mktemp("files")
    X, y, _ = planted_motif(400, 40, "TGACTCAT", noise=0.05, strands="both", seed=0)
    known = folder / "known.jaspar"
    known.write_text(
        ">K1 <b>AP1</b>\nA [ 0 0 9 0 0 0 9 ]\nC [ 0 0 0 9 0 9 0 ]\nG [ 0 9 0 0 0 0 0 ]\nT [ 9 0 0 0 9 0 0 ]\n"
        ">K2 other\nA [ 9 9 9 9 9 9 ]\nC [ 0 0 0 0 0 0 ]\nG [ 0 0 0 0 0 0 ]\nT [ 0 0 0 0 0 0 ]\n"
    )
    return (
        write_fasta(folder / "pos.fa", X[y == 1], HOSTILE),
        write_fasta(folder / "neg.fa", X[y == -1]),
        str(known),
    )


@pytest.fixture(scope="module")
def results(files, tmp_path_factory):
    """The folder of one run."""
    out = tmp_path_factory.mktemp("out") / "results"
    positives, negatives, known = files
    assert (
        main(
            [
                "motif",
                positives,
                negatives,
                "--width",
                "8",
                "--c",
                "1000",
                "--known",
                known,
                "--out",
                str(out),
                "--quiet",
            ]
        )
        == 0
    )
    return out


def test_all_files_are_there_and_agree(results):
    record = json.loads((results / "run.json").read_text())
    (motif,) = record["motifs"]
    assert motif["consensus"] in ("TGACTCAT", "ATGAGTCA")
    assert motif["width"] == 8
    assert motif["p_value"] < 1e-9
    assert motif["match"]["name"] == "K1 <b>AP1</b>"
    names = {path.name for path in results.iterdir()}
    expected = "report.html motifs.meme motifs.jaspar sites.tsv sites.bed sites.gff3 logo_1.svg logo_1.png model.tacit"
    assert names == {*expected.split(), "predictions.tsv", "run.json", "matches.tsv"}
    assert sorted(names) == record["files"]
    sites = (results / "sites.tsv").read_text().splitlines()[1:]
    assert len(sites) == motif["sites"]
    assert len((results / "sites.bed").read_text().splitlines()) == motif["sites"]
    for name in ("motifs.meme", "motifs.jaspar"):
        (matrix,) = read_motifs(results / name)
        assert "".join("ACGT"[i] for i in matrix.shares.argmax(axis=1)) == motif["consensus"]
    model = tacit.load(results / "model.tacit")
    assert model.predict(["cccccctgactcatcccccc", "ccccccccgcccccccacgc"]).tolist() == [1, -1]
    assert model.decision_function(["ACGTACGTACGTACGT"]).shape == (1,)


def test_hostile_names_reach_no_page_no_path_and_no_terminal(results, tmp_path):
    html = (results / "report.html").read_text(encoding="utf-8")
    assert html.count("<script>") == 1
    assert "<b>AP1</b>" not in html
    assert "{{7*7}}" in html
    assert not list(results.rglob("*passwd*"))
    for name in ("sites.tsv", "sites.bed", "predictions.tsv", "matches.tsv"):
        text = (results / name).read_text(encoding="utf-8")
        assert "\x1b" not in text
        assert "\x07" not in text
        assert len({line.count("\t") for line in text.splitlines()}) == 1
    for line in (results / "sites.bed").read_text().splitlines():
        assert re.fullmatch(r"[A-Za-z0-9_.:|+-]+\t\d+\t\d+\ttacit-1-[A-Z]+\t\d+\t[+-]", line)
    places = [line.split("\t") for line in (results / "sites.bed").read_text().splitlines()]
    assert all(100 <= int(place[1]) <= 140 for place in places if place[0] == "chr1")


def test_an_overlap_with_another_motif_is_reported_everywhere(tmp_path, capsys):
    X, y, _ = planted_motif(400, 50, "TGAAGTCATACGGA", noise=0.05, strands="both", seed=1)
    files = [write_fasta(tmp_path / name, X[y == label]) for name, label in (("pos.fa", 1), ("neg.fa", -1))]
    options = ["--width", "8", "--c", "1000", "--motifs", "2"]
    assert main(["motif", *files, *options, "--out", str(tmp_path / "out")]) == 0
    first, second = json.loads((tmp_path / "out" / "run.json").read_text())["motifs"]
    assert "overlap" not in first
    assert second["overlap"]["motif"] == 1
    assert second["overlap"]["share"] > 0.7
    offset = f"offset {second['overlap']['offset']:+d}"
    assert offset in capsys.readouterr().out
    assert offset in (tmp_path / "out" / "report.html").read_text()
    model = tacit.load(tmp_path / "out" / "model.tacit")
    assert model.motifs_[1].overlap.offset == second["overlap"]["offset"]


@needs_chromium
def test_the_report_is_quiet_in_a_browser_at_two_widths(results, tmp_path):
    import matplotlib.pyplot as plt

    document, console, asked = open_page(results / "report.html", tmp_path)
    assert console == []
    assert asked == []
    assert "<title>Motifs</title>" in document
    assert document.count("<svg") >= 7
    for width in (1200, 500):
        take_screenshot(results / "report.html", tmp_path / f"{width}.png", width, 1200)
        assert plt.imread(tmp_path / f"{width}.png").std() > 0.02


def test_a_scan_finds_the_motif_in_a_new_file(results, tmp_path, capsys):
    X, _, start = planted_motif(200, 60, "TGACTCAT", strands="both", seed=5)
    (tmp_path / "new.fa.gz").write_bytes(
        gzip.compress("".join(f">n{i}\n{s.decode()}\n" for i, s in enumerate(X)).encode())
    )
    model = str(results / "model.tacit")
    assert main(["scan", model, str(tmp_path / "new.fa.gz"), "--out", str(tmp_path / "scan"), "--p-value", "1e-3"]) == 0
    assert "expected by chance" in check_closing(capsys.readouterr().out, tmp_path / "scan")
    lines = (tmp_path / "scan" / "sites.tsv").read_text().splitlines()
    assert lines[0].split("\t") == [
        "motif",
        "sequence",
        "start",
        "end",
        "strand",
        "score",
        "p_value",
        "q_value",
        "name",
    ]
    found = {(row[1], int(row[2])) for row in (line.split("\t") for line in lines[1:])}
    truth = {(f"n{i}", int(place[0])) for i, place in enumerate(start) if place[0] >= 0}
    assert len(found & truth) > 0.95 * len(truth)
    q = [float(line.split("\t")[7]) for line in lines[1:]]
    assert all(0 <= value <= 1 for value in q)
    assert sorted(path.name for path in (tmp_path / "scan").iterdir()) == [
        "report.html",
        "run.json",
        "sites.bed",
        "sites.gff3",
        "sites.narrowPeak",
        "sites.tsv",
    ]


@pytest.mark.parametrize(
    ("content", "keyword"),
    [
        ("", "empty"),
        (">p53\nMEEPQSDPSV\n", "protein"),
        (">a\nACGT\n" * 30, "width=8"),
        (">a\nACGTACGTAA\n" * 3, "10 or more"),
    ],
)
def test_broken_inputs_are_one_line_and_leave_nothing(content, keyword, tmp_path, capsys):
    (tmp_path / "x.fa").write_text(content)
    assert main(["motif", str(tmp_path / "x.fa"), "--width", "8", "--out", str(tmp_path / "out")]) == 1
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert keyword in shown
    assert [path.name for path in tmp_path.iterdir()] == ["x.fa"]


@pytest.mark.parametrize(
    ("arguments", "keyword"),
    [
        (["--width", "x"], "--width"),
        (["--motifs", "many"], "--motifs"),
        (["--flank", "AC!"], "flank"),
        (["--resume"], "checkpoint"),
    ],
)
def test_wrong_options_are_one_line(arguments, keyword, files, tmp_path, capsys):
    assert main(["motif", files[0], "--out", str(tmp_path / "out"), *arguments]) in (1, 2)
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert keyword in shown


def test_a_model_of_another_kind_is_refused(files, tmp_path, capsys):
    tacit.StructuredSVM(tacit.problems.Multiclass()).fit([[0.0], [1.0]], [0, 1]).save(tmp_path / "other.tacit")
    assert main(["scan", str(tmp_path / "other.tacit"), files[0], "--out", str(tmp_path / "o")]) == 1
    assert "StructuredSVM" in capsys.readouterr().err


def test_lengths_that_separate_the_classes_give_a_warning(tmp_path, capsys):
    X, y, _ = planted_motif(200, 40, "TGACTCAT", noise=0.05, seed=0)
    longer = np.array([letters + b"AC" for letters in X[y == 1]])
    files = [write_fasta(tmp_path / "pos.fa", longer), write_fasta(tmp_path / "neg.fa", X[y == -1])]
    assert main(["motif", *files, "--width", "8", "--c", "1000", "--out", str(tmp_path / "out")]) == 0
    assert "AUROC 1.00" in capsys.readouterr().out
    assert "AUROC 1.00" in (tmp_path / "out" / "report.html").read_text()


def test_noise_exits_with_0_and_says_so(tmp_path, capsys):
    rng = np.random.default_rng(0)
    lines = [f"{''.join(rng.choice(list('ACGT'), 30))}\t{i % 2}" for i in range(200)]
    (tmp_path / "noise.tsv").write_text("\n".join(lines))
    assert (
        main(["motif", str(tmp_path / "noise.tsv"), "--c", "1000", "--width", "8", "--out", str(tmp_path / "out")]) == 0
    )
    assert "no significant motif" in check_closing(capsys.readouterr().out, tmp_path / "out")
    assert json.loads((tmp_path / "out" / "run.json").read_text())["motifs"] == []
    assert "No motif is significant" in (tmp_path / "out" / "report.html").read_text()


def test_ctrl_c_keeps_the_best_model_and_marks_the_report(files, tmp_path, monkeypatch):
    """Ctrl-C comes inside of the second start, as the signal would raise it there."""
    from tacit.dna.finder import search
    from tacit.learners.latent_logistic import LogisticLoss

    real, calls = LogisticLoss.__call__, []

    def interrupted(loss, w):
        calls.append(1)
        if len(calls) == 150:
            raise KeyboardInterrupt
        return real(loss, w)

    monkeypatch.setattr(LogisticLoss, "__call__", interrupted)
    monkeypatch.setattr(search, "FIRST_STARTS", 3)
    out = tmp_path / "out"
    assert main(["motif", *files[:2], "--width", "8", "--c", "1000", "--out", str(out), "--quiet"]) == 130
    assert len(calls) == 150  # nothing was begun after it
    assert json.loads((out / "run.json").read_text())["status"] == "interrupted"
    assert "Interrupted" in (out / "report.html").read_text()
    assert tacit.load(out / "model.tacit").predict(["cccccctgactcatcccccc"]).tolist() == [1]
