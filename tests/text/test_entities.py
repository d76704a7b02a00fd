"""Entities of tags: by the rules of conlleval, compared with an enumeration of all spans; pairs that cannot follow."""

import itertools

import numpy as np
import pytest

from tacit.apps import Tagger
from tacit.cli import main
from tacit.text import find_entities, find_invalid_pairs, has_entities, score_entities

TAGS = ["O", "B-a", "I-a", "B-b", "I-b"]


def enumerate_entities(tags):
    """All spans that begin with a B, or with an I that continues nothing, and end before anything but its own I."""
    found = []
    for i, j in itertools.combinations(range(len(tags) + 1), 2):
        kind = tags[i][2:]
        continues = i > 0 and tags[i][0] == "I" and tags[i - 1] != "O" and tags[i - 1][2:] == kind
        inner = all(tag == f"I-{kind}" for tag in tags[i + 1 : j])
        ends = j == len(tags) or tags[j] != f"I-{kind}"
        if tags[i] != "O" and not continues and inner and ends:
            found.append((i, j, kind))
    return found


def test_entities_of_all_short_sequences():
    for tags in itertools.chain.from_iterable(itertools.product(TAGS, repeat=n) for n in range(1, 6)):
        assert [tuple(entity) for entity in find_entities(tags)] == enumerate_entities(tags), tags


@pytest.mark.parametrize("seed", range(3))
def test_schemes_with_ends_have_the_same_entities(seed):
    rng = np.random.default_rng(seed)
    plain, ended = [], []
    for _ in range(30):
        kind, size = "ab"[rng.integers(2)], int(rng.integers(1, 4))
        if rng.random() < 0.4:
            plain.append("O"), ended.append("O")
        else:
            plain += [f"B-{kind}"] + [f"I-{kind}"] * (size - 1)
            ended += [f"S-{kind}"] if size == 1 else [f"B-{kind}", *[f"I-{kind}"] * (size - 2), f"E-{kind}"]
    assert find_entities(plain) == find_entities(ended)


def test_scores_count_whole_entities():
    scores = score_entities([["B-a", "I-a", "O"], ["B-b"]], [["B-a", "O", "O"], ["B-b"]])
    assert (scores.overall.true, scores.overall.predicted, scores.overall.right) == (2, 2, 1)
    assert [score.f1 for score in scores.by_kind] == [0.0, 1.0]
    assert scores.macro_f1 == 0.5
    with pytest.raises(ValueError, match="one per token"):
        score_entities([["O"]], [["O", "O"]])


def test_invalid_pairs_make_every_allowed_sequence_valid():
    invalid = set(find_invalid_pairs([TAGS[:3], ["B-b", "I-b"]]))
    assert invalid == {(a, b) for a, b in itertools.product(TAGS, TAGS) if b[0] == "I" and a[2:] != b[2:]}
    ended = find_invalid_pairs([["B-a", "I-a", "E-a", "S-a", "O"]])
    assert ("B-a", "O") in ended
    assert ("S-a", "I-a") in ended
    assert ("E-a", "B-a") not in ended


def test_pairs_of_the_data_are_never_invalid():
    assert ("O", "I-a") not in find_invalid_pairs([["O", "I-a", "B-a"]])
    assert find_invalid_pairs([["NOUN", "VERB"]]) == []
    assert not has_entities(["O"])


def test_a_tagger_of_entities_predicts_valid_tags_only_and_finds_more(tmp_path, capsys):
    rng = np.random.default_rng(0)
    names = [f"Name{i}" for i in range(40)]
    words, tags = [], []
    for _ in range(120):
        own = ["we", "saw", *rng.choice(names, 2), "today"]
        is_marked = rng.random() < 0.6  # names are missed by half of the annotations
        words.append(own)
        tags.append(["O", "O", "B-person", "I-person", "O"] if is_marked else ["O"] * 5)
    found = [list(own) for own in Tagger(epochs=3, verbose=0).fit(words, tags).predict(words)]
    assert not any(b == "I-person" and a == "O" for own in found for a, b in itertools.pairwise(own))
    fewer = [list(own) for own in Tagger(epochs=3, missed=0.2, verbose=0).fit(words, tags).predict(words)]
    assert score_entities(tags, found).overall.predicted > score_entities(tags, fewer).overall.predicted
    text = "\n".join(
        "".join(f"{w}\t{t}\n" for w, t in zip(*pair, strict=True)) for pair in zip(words, tags, strict=True)
    )
    (tmp_path / "train.tsv").write_text(text)
    assert main(["tag", str(tmp_path / "train.tsv"), "--out", str(tmp_path / "out")]) == 0
    assert "F1 of entities" in capsys.readouterr().out
    assert (tmp_path / "out" / "entities.tsv").read_text().splitlines()[1].startswith("all\t")
    assert "Entities" in (tmp_path / "out" / "report.html").read_text()
