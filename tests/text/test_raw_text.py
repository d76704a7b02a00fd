"""Raw text: words and sentences with their characters, tagged from a text file, and what is refused."""

import pytest

import tacit
from tacit.apps import Tagger
from tacit.cli import main
from tacit.text import WordClusters, convert_tags, find_entities, read_raw_text, split_text, stand_off

TEXT = 'Mr. Bennet won\'t go to the U.S. today. "Why not?" she cried. He paid $3.50!\n\nThe end'


def test_words_are_at_their_characters_and_nothing_is_lost():
    raw = split_text(TEXT)
    for words, spans in zip(raw.words, raw.spans, strict=True):
        assert [TEXT[start:end] for start, end in spans.tolist()] == words
    assert "".join(word for words in raw.words for word in words) == "".join(TEXT.split())


def test_sentences_end_where_people_end_them():
    assert [words[-1] for words in split_text(TEXT).words] == [".", ".", "!", "end"]
    assert [len(part) for part in split_text("Am 3. Mai kam Hr. Koch an. Er blieb.").words] == [9, 3]
    assert [len(part) for part in split_text("No. 5 is in Hauptstr. 7. No. That is it.").words] == [7, 2, 4]
    assert [words[0] for words in split_text("first line\nsecond line\n").words] == ["first", "second"]
    wrapped = "It was a long line of a text that somebody had wrapped at\na width of sixty. So it went on.\n"
    assert [words[0] for words in split_text(wrapped).words] == ["It", "So"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("l'eau dell'arte", ["l'", "eau", "dell'", "arte"]),
        ("she'd say it's Tom's", ["she", "'d", "say", "it", "'s", "Tom", "'s"]),
        ("see http://a.org/b?c, @ada #ml :)", ["see", "http://a.org/b?c", ",", "@ada", "#ml", ":)"]),
        ("well-known 1,024.5 3rd", ["well-known", "1,024.5", "3rd"]),
        ("Привет, мир!", ["Привет", ",", "мир", "!"]),
        ("नमस्ते दुनिया।", ["नमस्ते", "दुनिया", "।"]),
        ("Saat 5'te, 1990's EU:n 10:een.", ["Saat", "5'te", ",", "1990", "'s", "EU:n", "10:een", "."]),
        ('צה"ל אמר: "לא"', ['צה"ל', "אמר", ":", '"', "לא", '"']),
        ("en EE.UU. desde 12:30", ["en", "EE.UU.", "desde", "12:30"]),
    ],
)
def test_words_of_several_languages(text, words):
    assert [word for own in split_text(text).words for word in own] == words


@pytest.mark.parametrize("text", ["l'" * 5000 + "eau", "she" + "'d" * 5000, "(" * 5000, "ab." * 5000, "a@" * 5000])
def test_words_of_a_text_without_spaces_are_all_of_it(text):
    """Each elision was a call within the one before, and each letter of an address was read again for each word."""
    raw = split_text(text)
    assert len(raw.words[0]) > 2000
    assert "".join(raw.words[0]) == text
    assert raw.spans[0][-1].tolist() == [len(text) - len(raw.words[0][-1]), len(text)]


def test_a_file_of_more_words_than_its_limit_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("(" * 20_000)
    assert len(read_raw_text(tmp_path / "a.txt").words[0]) == 20_000
    with pytest.raises(ValueError, match="max_bytes"):
        read_raw_text(tmp_path / "a.txt", max_bytes=30_000)


def test_scripts_without_spaces_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("我爱北京天安门。", encoding="utf-8")
    with pytest.raises(ValueError, match="without spaces"):
        read_raw_text(tmp_path / "a.txt")


def test_converted_tags_have_the_same_entities():
    tags = ["I-a", "I-a", "O", "B-b", "B-b", "I-b", None, "I-a"]
    for scheme in ("bio", "iobes"):
        found = convert_tags(tags, scheme)
        assert [tag is None for tag in found] == [tag is None for tag in tags]
        assert find_entities([tag or "O" for tag in found]) == find_entities([tag or "O" for tag in tags])
    with pytest.raises(ValueError, match="NOUN"):
        convert_tags(["NOUN"], "bio")


def test_clusters_separate_words_with_other_neighbours():
    nouns, verbs = ["dog", "cat", "cow", "hen"], ["runs", "eats", "naps"]
    text = [["the", noun, verb, "."] for noun in nouns for verb in verbs] * 3
    first, *others = (own[0] for own in WordClusters(4, rank=3).fit(text).columns([[*nouns, "NAPS", "new"]])[0])
    assert others[:3] == [first] * 3
    assert others[3] not in (first, "")
    assert others[4] == ""


def test_clusters_of_unlabelled_text_tag_words_that_training_lacks(tmp_path):
    names = [f"{a}{b}" for a in "bcdfg" for b in ("ix", "ob", "ul")]
    X = [["we", "met", name, "there"] for name in names[:5]] + [["we", "saw", "it", "there"]] * 5
    y = [["O", "O", "B-person", "O"]] * 5 + [["O"] * 4] * 5
    text = [[start, name, "said", "so"] for name in names for start in ("but", "then", "yes")] * 20
    text += [["we", "saw", "it", "there"], ["but", "then", "yes", "so"]] * 20
    tagger = Tagger(verbose=0, n_clusters=6).fit(X * 3, y * 3, unlabelled=text)
    tagger.save(tmp_path / "model.tacit")
    again = tacit.load(tmp_path / "model.tacit")
    assert again.clusters_.columns([[names[9]]])[0][0] == again.clusters_.columns([[names[0]]])[0][0]
    assert again.predict([["and", names[9], "left"]])[0].tolist() == ["O", "B-person", "O"]


@pytest.fixture
def files(tmp_path):
    rest = "\tNNP\tB-person\nmet\tVBD\tO\nMax\tNNP\tI-person\n.\t.\tO\n\n"
    sentences = [f"# id = 3\n{name}{rest}" for name in ("Ada", "Bob", "Eve", "Tim") * 3]
    (tmp_path / "train.tsv").write_text("-DOCSTART-\t-X-\tO\n\n" + "".join(sentences))
    (tmp_path / "new.txt").write_text("Ada met Kim. She left.\n")
    (tmp_path / "names.txt").write_text("Kim\n")
    (tmp_path / "chinese.txt").write_text("我喜欢读书。\n", encoding="utf-8")
    (tmp_path / "steps.csv").write_text("x\n1\n")
    return tmp_path


def test_command_tags_raw_text_by_its_characters(files, capsys):
    given = ["tag", str(files / "train.tsv"), "--predict", str(files / "new.txt"), "--scheme", "iobes", "--out"]
    more = ["--gazetteer", f"person={files / 'names.txt'}", "--unlabelled", str(files / "train.tsv")]
    assert main([*given, str(files / "out"), *more]) == 0
    capsys.readouterr()
    lines = (files / "out" / "predictions.ann").read_text().splitlines()
    assert lines[0] == "T1\tperson 0 3\tAda"
    assert (files / "out" / "predictions.tsv").read_text().startswith("Ada\tS-person\n")
    assert main(["tag", "--model", str(files / "out/model.tacit"), "--predict", str(files / "new.txt"),
                 "--out", str(files / "again")]) == 0  # fmt: skip
    assert main(["tag", "--model", str(files / "out/model.tacit"), "--predict", str(files / "steps.csv"),
                 "--out", str(files / "numbers")]) == 1  # fmt: skip
    assert "tags words" in capsys.readouterr().err
    assert (files / "again" / "predictions.ann").read_text().splitlines() == lines


def test_command_reads_the_columns_that_are_asked_for(files, capsys):
    columns = ["--features", "2", "--tag", "3"]
    assert main(["tag", str(files / "train.tsv"), *columns, "--out", str(files / "out")]) == 0
    model = tacit.load(files / "out" / "model.tacit")
    assert model.features_.extra == 1
    assert model.predict([[("Zoe", "NNP"), ("met", "VBD"), ("Max", "NNP"), (".", ".")]])[0][0] == "B-person"
    with pytest.raises(ValueError, match="columns"):
        model.predict([["Zoe"]])


@pytest.mark.parametrize(
    ("more", "code", "keyword"),
    [
        (["--features", "9"], 1, "columns"),
        (["--features", "2,"], 2, "--features"),
        (["--token", "word"], 1, "token"),
        (["--gazetteer", "city"], 2, "TYPE=FILE"),
        (["--gazetteer", "city=missing.txt"], 1, "missing.txt"),
        (["--gazetteer", "city=missing.txt"], 1, "--gazetteer"),
        (["--features", "2", "--predict", "new.txt"], 1, "raw text"),
        (["--predict", "chinese.txt"], 1, "without spaces"),
        (["--predict", "steps.csv"], 2, "steps.csv"),
        (["--tag", "2", "--scheme", "bio"], 1, "NNP"),
    ],
)
def test_command_says_what_is_wrong_with_columns(files, capsys, monkeypatch, more, code, keyword):
    monkeypatch.chdir(files)
    assert main(["tag", "train.tsv", "--out", "out", *more]) == code
    assert keyword in capsys.readouterr().err
    assert not (files / "out").exists()


def test_stand_off_keeps_one_line_per_span():
    assert stand_off("New\nYork", [(0, 8, "big city")]).count("\n") == 1


FAMILY = "\U0001f469\u200d\U0001f467"


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("i went home. it was late... we slept", ["i went home.", "it was late...", "we slept"]),
        (f"Fun {FAMILY}! {FAMILY} Next.", [f"Fun {FAMILY}! {FAMILY}", "Next."]),
    ],
)
def test_lower_case_text_ends_sentences_and_signs_stay_whole(text, sentences):
    raw = split_text(text)
    assert [raw.text[own[0, 0] : own[-1, 1]] for own in raw.spans] == sentences
    assert "\u200d" not in [word for words in raw.words for word in words]


def test_stand_off_writes_the_characters_of_the_text():
    assert stand_off("می\u200cروم", [(0, 6, "VERB")]).endswith("\tمی\u200cروم\n")
