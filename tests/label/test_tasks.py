"""What can be asked: masks, sites, sentences and clusters are checked, learned from, and written for the commands."""

import json

import numpy as np
import pytest

from tacit.cli import main
from tacit.datasets import planted_motif
from tacit.dna.files import read_motifs
from tacit.label.clusters import Clusters
from tacit.label.command import make_task
from tacit.label.sentences import DecisiveSentences
from tacit.label.session import Session
from tacit.label.sites import Sites
from tacit.text import Document, read_conll, write_conll
from tacit.text.sentences.vectors import read_document_file

Image = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def horses(tmp_path_factory):
    """Bright squares on noise: ten images, masks of the first four."""
    folder, rng = tmp_path_factory.mktemp("squares"), np.random.default_rng(0)
    (folder / "images").mkdir()
    (folder / "masks").mkdir()
    for i in range(10):
        pixels = rng.integers(20, 60, (48, 64, 3), dtype=np.uint8)
        mask = np.zeros((48, 64), np.uint8)
        mask[10:34, 8 + 2 * i : 32 + 2 * i] = 255
        pixels[mask > 0] += 150
        Image.fromarray(pixels).save(folder / "images" / f"{i}.png")
        if i < 4:
            Image.fromarray(mask).save(folder / "masks" / f"{i}.png")
    return folder


def test_masks_are_guessed_checked_and_read_by_segment(horses, tmp_path):
    task = make_task(horses, "segment", tmp_path, seed=0)
    assert task.items == [f"{i}.png" for i in range(4, 10)]
    learned = task.learn({}, [2])
    assert sorted(learned.order) == [0, 1, 3, 4, 5]
    assert task.show(0) == {"region": None}
    assert learned.quality > 0.9
    assert task.check(0, [3, 1, 3]) == [1, 3]
    for wrong in (None, [-1], [10**6], ["a"]):
        with pytest.raises((ValueError, TypeError)):
            task.check(0, wrong)
    answers = {0: learned.guesses[0], 1: []}
    task.export(answers, tmp_path)
    drawn = np.asarray(Image.open(tmp_path / "masks" / "4.png")) > 0
    assert drawn[10:34, 16:40].mean() > 0.8
    assert not np.asarray(Image.open(tmp_path / "masks" / "5.png")).any()
    task.export({0: answers[0]}, tmp_path)
    assert not (tmp_path / "masks" / "5.png").exists()
    out = tmp_path / "out"
    command = ["segment", str(horses), "--masks", str(tmp_path / "masks"), "--ask", "3", "--out", str(out), "--quiet"]
    assert main(command) == 0
    assert json.loads((out / "run.json").read_text())["with_mask"] == 5
    asked = (out / "questions.tsv").read_text().splitlines()
    assert asked[0] == "item\tusefulness"
    assert {line.split("\t")[0] for line in asked[1:]} <= {f"{i}.png" for i in range(5, 10)}
    assert len(asked) == 4


def test_single_regions_are_asked_for_and_written_as_partial_masks(horses, tmp_path):
    task = make_task(horses, "segment", tmp_path, seed=0, single=True)
    regions = task._maps(4)
    assert task.items[:2] == ["4.png, region 1", "4.png, region 2"]
    assert task.show(1) == {"region": 1}
    for wrong in (None, 2, [1], "a"):
        with pytest.raises((ValueError, TypeError)):
            task.check(0, wrong)
    truth = np.zeros((48, 64), bool)
    truth[10:34, 16:40] = True
    answers = {item: int(truth[regions == item].mean() > 0.5) for item in range(int(regions.max()) + 1)}
    last = len(answers) - 1
    given = {item: answer for item, answer in answers.items() if item < last}
    learned = task.learn(given, [])
    assert learned.guesses[last] == answers[last]
    assert len(learned.order) == len(task.items) - len(given)
    assert learned.quality is None if len(given) < 8 else learned.quality > 0.8
    task.export(given, tmp_path)
    drawn = np.asarray(Image.open(tmp_path / "masks" / "4.png"))
    assert set(np.unique(drawn)) == {0, 127, 255}
    assert not (tmp_path / "masks" / "5.png").exists()
    out = tmp_path / "out"
    command = ["segment", str(horses), "--masks", str(tmp_path / "masks"), "--out", str(out), "--quiet"]
    assert main([*command, "--unknown", "127"]) == 0
    found = np.asarray(Image.open(out / "masks" / "4.png")) > 0
    assert (found[drawn == 255]).all()
    assert not (found[drawn == 0]).any()
    assert json.loads((out / "run.json").read_text())["with_mask"] == 5
    assert main([*command, "--force"]) == 1  # 127 and 255 could both be the object


def test_single_regions_need_a_mask_to_begin_with(horses, tmp_path):
    (tmp_path / "images").mkdir()
    Image.open(horses / "images" / "5.png").save(tmp_path / "images" / "5.png")
    with pytest.raises(ValueError, match="--single"):
        make_task(tmp_path, "segment", tmp_path, seed=0, single=True)


def test_none_here_is_an_empty_mask(horses, tmp_path):
    session = Session(make_task(horses, "segment", tmp_path, seed=0), tmp_path)
    session.answer(0, "none")
    assert session.answers() == ({0: []}, [])


def test_the_map_of_regions_has_their_numbers(horses, tmp_path):
    task = make_task(horses, "segment", tmp_path, seed=0)
    (tmp_path / "map.png").write_bytes(task.region_map(0))
    pixels = np.asarray(Image.open(tmp_path / "map.png")).astype(int)
    np.testing.assert_array_equal(pixels[..., 0] + 256 * pixels[..., 1], task._maps(4))
    assert task.picture(0)[:2] == b"\xff\xd8"


def test_sites_are_learned_and_written(tmp_path):
    X, y, _ = planted_motif(80, 40, "TGACTCAT", noise=0.05, seed=0)
    sequences = [str(x) if isinstance(x, str) else x.decode() for x in np.asarray(X)[y == 1]]
    truth = [own.upper().find("TGACTCAT") for own in sequences]
    path = tmp_path / "bound.fa"
    path.write_text("".join(f">s{i}\n{own}\n" for i, own in enumerate(sequences)))
    task = Sites(path, width=8)
    answers = {i: task.check(i, [start, 0]) for i, start in enumerate(truth) if start >= 0}
    assert len(answers) > 10
    kept = dict(list(answers.items())[:10])
    learned = task.learn(kept, [20])
    assert sorted(learned.order) == [i for i in range(len(sequences)) if i not in kept and i != 20]
    assert learned.quality >= 0.8
    rest = [i for i in answers if i in learned.guesses]
    assert np.mean([learned.guesses[i] == answers[i] for i in rest]) > 0.8
    for wrong in (None, [1], [-1, 0], [33, 0], [0, 2]):
        with pytest.raises((ValueError, TypeError)):
            task.check(0, wrong)
    task.export(kept, tmp_path)
    assert "".join("ACGT"[k] for k in read_motifs(tmp_path / "motifs.meme")[0].shares.argmax(axis=1)) == "TGACTCAT"
    row = (tmp_path / "sites.tsv").read_text().splitlines()[1].split("\t")
    assert row[2:5] == [str(truth[0]), str(truth[0] + 8), "+"]


def test_a_width_that_does_not_fit_is_refused(tmp_path):
    (tmp_path / "a.fa").write_text(">one\nACGTACGT\n")
    with pytest.raises(ValueError, match="--width"):
        Sites(tmp_path / "a.fa", width=9)


def write_reviews(path, n=24):
    rng = np.random.default_rng(0)
    lines = []
    for i in range(n):
        label = "pos" if i % 2 else "neg"
        sentences = [f"plot {rng.integers(9)} goes on." for _ in range(4)]
        sentences[int(rng.integers(4))] = "A fine film." if label == "pos" else "A dull film."
        lines.append(json.dumps({"id": f"r{i}", "label": label, "sentences": sentences}))
    path.write_text("\n".join(lines) + "\n")
    return [next(t for t, s in enumerate(json.loads(line)["sentences"]) if "film" in s) for line in lines]


def test_sentences_are_learned_and_read_by_reasons(tmp_path):
    path = tmp_path / "reviews.jsonl"
    truth = write_reviews(path)
    task = DecisiveSentences(path, share=0.25)
    learned = task.learn({i: [truth[i]] for i in range(10)}, [12])
    assert sorted(learned.order) == [10, 11, *range(13, 24)]
    assert learned.quality == 1.0
    assert [learned.guesses[i] for i in range(13, 24)] == [[truth[i]] for i in range(13, 24)]
    for wrong in (None, [], [0, 4], [4], ["a"]):
        with pytest.raises((ValueError, TypeError)):
            task.check(0, wrong)
    assert task.check(0, [2, 0, 2]) == [0, 2]
    assert task.learn({0: [0, 1, 2], 1: [truth[1]]}, []).guesses[2] == [truth[2]]
    task.export({3: [truth[3], (truth[3] + 1) % 4]}, tmp_path)
    found = read_document_file(tmp_path / "documents.jsonl")
    assert [i for i, own in enumerate(found.known) if own is not None] == [3]
    command = ["reasons", str(tmp_path / "documents.jsonl"), "--share", "0.25", "--ask", "4", "--quiet"]
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    asked = (tmp_path / "out" / "questions.tsv").read_text().splitlines()
    assert len(asked) == 5
    assert "r3" not in {line.split("\t")[0] for line in asked}
    assert main([*command[:2], "--share", "0.5", "--out", str(tmp_path / "other")]) == 0


@pytest.mark.parametrize("known", ["[4]", "[0, 0]", "0", '["a"]', "[true]"])
def test_known_sentences_that_cannot_be_are_refused(tmp_path, known):
    (tmp_path / "a.jsonl").write_text('{"sentences": ["a", "b"], "label": "x", "known": ' + known + "}\n")
    with pytest.raises(ValueError, match="known"):
        read_document_file(tmp_path / "a.jsonl")


def write_tales(path, n_known):
    names = [("Alice", "Bob", "She", "him"), ("Mary", "Tom", "She", "him"), ("Anna", "Paul", "He", "her")]
    documents = []
    for i in range(8):
        a, b, c, d = names[i % 3]
        clusters = ([0, 1, 1, 0] if c == "He" else [0, 1, 0, 1]) if i < n_known else [0, 1, 2, 3]
        sentences = [[a, "saw", b, "."], [c, "greeted", d, "."]]
        documents.append(Document(sentences, [(0, 1), (2, 3), (4, 5), (6, 7)], clusters, name=f"tale{i}"))
    write_conll(path, documents)


def test_clusters_are_guessed_checked_and_read_by_coref(tmp_path):
    write_tales(tmp_path / "tales.conll", 6)
    task = Clusters(tmp_path / "tales.conll")
    assert len(task.items) == 2
    learned = task.learn({}, [])
    assert sorted(learned.order) == [0, 1]
    assert len(learned.guesses[0]) == 4
    assert task.check(0, [5, 2, 5, 2]) == [0, 1, 0, 1]
    for wrong in (None, [0, 1], [0, 1, 0, -1], ["a", 0, 0, 0]):
        with pytest.raises((ValueError, TypeError)):
            task.check(0, wrong)
    task.export({1: [0, 1, 0, 1]}, tmp_path)
    found = read_conll([tmp_path / "resolved.conll"])
    assert [own.clusters.tolist() for own in found][-1] == [0, 1, 0, 1]
    assert len(found) == 7


def test_clusters_begin_with_mentions_of_the_same_words(tmp_path):
    document = Document([["Bob", "saw", "bob", "."]], [(0, 1), (2, 3)], [0, 1], name="a")
    write_conll(tmp_path / "a.conll", [document])
    learned = Clusters(tmp_path / "a.conll").learn({}, [])
    assert learned.guesses == {0: [0, 0]}
    assert learned.quality is None


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--for", "tag", "--width", "8"], "--width"),
        (["--for", "motif", "--tags", "A,B"], "--tags"),
        (["--for", "segment"], "folder"),
        (["--for", "reasons", "--single"], "--single"),
        (["--for", "coref", "--share", "0.5"], "--share"),
    ],
)
def test_options_of_other_tasks_are_refused(tmp_path, capsys, arguments, word):
    (tmp_path / "a.txt").write_text("x\n")
    assert main(["label", str(tmp_path / "a.txt"), *arguments, "--out", str(tmp_path / "out")]) == 2
    assert word in capsys.readouterr().err


def test_tag_writes_the_sentences_to_ask_for(tmp_path, capsys):
    known = "the\tD\ndog\tN\nbarks\tV\n\na\tD\ncat\tN\nsleeps\tV\n\n" * 6
    (tmp_path / "train.tsv").write_text(known)
    (tmp_path / "new.txt").write_text("the\ncat\nbarks\n\nstrange\nwords\nhere\n\na\ndog\nsleeps\n")
    command = ["tag", str(tmp_path / "train.tsv"), "--quiet", "--out", str(tmp_path / "out"), "--ask", "2"]
    assert main([*command, "--predict", str(tmp_path / "new.txt")]) == 0
    lines = (tmp_path / "out" / "questions.tsv").read_text().splitlines()
    assert lines[0] == "item\tusefulness\tguess"
    rows = [line.split("\t") for line in lines[1:]]
    assert len(rows) == 2
    assert all(len(item.split(": ")[1].split()) == len(guess.split()) == 3 for item, _, guess in rows)
    assert main(command) == 2
    assert "--predict" in capsys.readouterr().err


@pytest.mark.long
def test_motif_and_locate_write_what_to_ask_for(tmp_path):
    X, y, _ = planted_motif(200, 40, "TGACTCAT", noise=0.1, seed=0)
    sequences = [str(x) if isinstance(x, str) else x.decode() for x in np.asarray(X)[y == 1]]
    (tmp_path / "a.fa").write_text("".join(f">s{i}\n{own}\n" for i, own in enumerate(sequences)))
    command = ["motif", str(tmp_path / "a.fa"), "--width", "8", "--quiet", "--ask", "5"]
    assert main([*command, "--out", str(tmp_path / "motifs")]) == 0
    lines = [line.split("\t") for line in (tmp_path / "motifs" / "questions.tsv").read_text().splitlines()]
    useful = [float(line[1]) for line in lines[1:]]
    assert len(useful) == 5
    assert useful == sorted(useful, reverse=True)
    rng = np.random.default_rng(0)
    for kind, colour in (("red", (220, 30, 30)), ("blue", (30, 30, 220))):
        (tmp_path / "photos" / kind).mkdir(parents=True)
        for i in range(6):
            pixels = rng.integers(90, 160, (96, 128, 3), dtype=np.uint8)
            pixels[20:64, 8 * i : 8 * i + 44] = colour
            Image.fromarray(pixels).save(tmp_path / "photos" / kind / f"{i}.png")
    command = ["locate", str(tmp_path / "photos"), "--features", "handmade", "--quiet", "--ask", "3"]
    assert main([*command, "--out", str(tmp_path / "found")]) == 0
    assert len((tmp_path / "found" / "questions.tsv").read_text().splitlines()) == 4
