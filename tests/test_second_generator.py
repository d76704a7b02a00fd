"""Inputs that the second generator (`tests/replay`) found: each ends in words."""

import subprocess
import sys

import numpy as np
import pytest

from tacit import BagClassifier, Ragged, StructuredSVM, apps, plot
from tacit.bags.combination import Combination
from tacit.data import arrays
from tacit.data.labels import read_labels
from tacit.dna.regions import read_peaks
from tacit.label.journal import Journal
from tacit.plot import canvas
from tacit.problems import Chain, PerSample, Tree, rotations
from tacit.problems.rotation import Rotations
from tacit.signals import Word, format_ctm, format_textgrid
from tacit.spectral import WeightedAutomaton
from tacit.testing.learner_checks import make_samples
from tacit.text.parsing.grammar import check_grammar
from tacit.text.parsing.problem import read_facts
from tacit.vision.box_formats import read_table
from tests.replay.changes import Changer
from tests.replay.server import judge


def test_one_label_of_many_letters_does_not_take_the_space_of_all():
    """Sixteen million letters, in one of a thousand tags: 64 GB as an array of text."""
    long = "x" * (1 << 24)
    with pytest.raises(ValueError, match="letters"):
        read_labels(np.array([long] + ["a"] * 999, dtype=object), 1000)
    with pytest.raises(ValueError, match="letters"):
        Chain().schema([np.zeros((500, 1))] * 2, [["a"] * 500, [long] + ["a"] * 499])


def test_masked_samples_of_functions_are_refused():
    X = np.ma.masked_array([1, 2, 3, 4], [0, 1, 0, 0])
    problem = PerSample(lambda x, y: np.array([float(x) * y]), outputs=lambda x: [-1, 1])
    with pytest.raises(ValueError, match="masked"):
        StructuredSVM(problem).fit(X, [1, -1, 1, -1])


@pytest.mark.parametrize("table", [{0: [1, 2, 3, 4]}, [[1, 2], [3]], b"bytes", "ACGT"])
def test_a_logo_of_no_table_is_refused(table):
    with pytest.raises(ValueError, match="motif"):
        plot.logo(table)


def test_pictures_of_what_is_no_image_are_refused():
    images, found = np.eye(5)[None].repeat(3, axis=0), np.array([0, 1, 2])
    with pytest.raises(ValueError, match="angles"):
        plot.rotated_images(images, found, Rotations({0: 1.0}))
    bags = Ragged.from_list([[[0.0], [5.0]]]).with_boxes([[[0, 0, 4, 4], [2, 0, 6, 4]]])
    with pytest.raises(ValueError, match="chances"):
        plot.window_chances(np.zeros((1, 4, 6)), bags, "high", [0])
    with pytest.raises(ValueError, match="images"):
        plot.window_chances(np.full((1, 4, 6), "a"), bags, Ragged(np.array([0.2, 0.8]), [0, 2]), [0])
    assert len(plot.rotated_images(images, found, rotations(-45, 45, 3)).axes) == 6


def test_a_history_with_other_lines_is_refused():
    problem, X = Chain(), [np.eye(2)] * 4
    history = list(StructuredSVM(problem).fit(X, [["a", "b"]] * 4).history_)
    with pytest.raises(ValueError, match="history"):
        plot.convergence([*history, np.zeros(3)])


@pytest.mark.parametrize("words", [{0: "a"}, ["a"], [("a", None, 1.0)], [(1, 0.0, 1.0)], 3])
def test_times_of_what_are_no_words_are_refused(words):
    for write in (lambda: format_textgrid(words, 1.0), lambda: format_ctm("a", words)):
        with pytest.raises(ValueError, match="words"):
            write()
    with pytest.raises(ValueError, match="seconds"):
        format_textgrid([Word("a", 0.0, 1.0)], "long")


@pytest.mark.parametrize("points", ["1,2;3", ";", "1;2", "1,2,3;4,5"])
def test_polygons_of_cvat_without_pairs_are_refused(points, tmp_path):
    shape = f'<polygon label="cat" points="{points}"/>'
    file = tmp_path / "a.xml"
    file.write_text(f'<annotations><image name="a.png" width="9" height="9">{shape}</image></annotations>')
    with pytest.raises(ValueError, match="pairs"):
        read_table(file)


def test_an_answer_of_a_hundred_thousand_brackets_is_passed_over(tmp_path):
    file = tmp_path / "answers.jsonl"
    file.write_text('{"task": "tag"}\n' + "[" * 100_000 + "\n" + '{"item": "a", "kind": "skip"}\n')
    assert list(Journal(file, "tag").read()) == ["a"]


def test_few_lines_of_regions_do_not_take_gigabytes(tmp_path):
    """Each line of a BED file can name a whole chromosome."""
    (tmp_path / "g.fa").write_text(">chr1\n" + ("ACGT" * 25 + "\n") * 10_000)
    (tmp_path / "a.bed").write_text("".join(f"chr1\t{i}\t1000000\n" for i in range(1000)))
    with pytest.raises(ValueError, match="letters"):
        read_peaks(tmp_path / "a.bed", tmp_path / "g.fa", 0)
    assert len(read_peaks(tmp_path / "a.bed", tmp_path / "g.fa", 100)[0]) == 500  # every two have the same middle


def test_symbols_of_a_picture_that_are_too_few_are_refused():
    automaton = WeightedAutomaton([1.0], [[[0.3]], [[0.5]]], [0.2], symbols=["a", "b"])
    block = automaton.hankel(["", "a"], ["", "b"])
    for symbols in (["a"], 3, {"a": 1}):
        with pytest.raises(ValueError, match="symbols"):
            plot.hankel_heat(block, symbols)
    with pytest.raises(ValueError, match="model"):
        plot.automaton_graph("automaton")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("rule_logs", lambda a: a.astype(np.float16)),
        ("leaf_logs", lambda a: a[:, None]),
        ("top_logs", lambda a: a * np.nan),
        ("fine_logs", lambda a: a[:-1]),
        ("tops", lambda a: a.astype(np.float64)),
        ("coarse", lambda a: a[::2]),
    ],
)
def test_grammars_of_model_files_with_wrong_tables_are_refused(name, change):
    """Half precision and another dimension reached the compiler, which knows neither."""
    problem = Tree()
    X, y, _ = make_samples(problem)
    grammar, _ = read_facts(problem.schema(X, y))
    with pytest.raises(ValueError, match=name):
        check_grammar(grammar._replace(**{name: change(getattr(grammar, name))}))


def test_a_bag_model_whose_calibrations_are_of_other_models_is_refused():
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((3, 2)) + i % 2 for i in range(20)]
    model = BagClassifier(rule="witness", kernel="linear", C=1.0, combine=False).fit(X, np.arange(20) % 2)
    model.check()
    own = model.calibrations_[0]
    model.calibrations_ = [Combination(np.zeros(0), own.intercepts)]
    with pytest.raises(ValueError, match="calibrations_"):
        model.check()


@pytest.mark.parametrize("name", apps.__all__)
@pytest.mark.parametrize("verbose", ["loud", np.inf, [1], np.ones(2)])
def test_every_application_refuses_a_verbose_that_is_no_number(name, verbose):
    kind = getattr(apps, name)
    if not hasattr(kind, "verbose"):
        pytest.skip("does not report")
    with pytest.raises(ValueError, match="verbose"):
        kind(verbose=verbose).check_parameters()


@pytest.mark.long
def test_no_changed_file_ends_in_a_raw_error():
    command = [sys.executable, "-m", "tests.replay", "--inputs", "300", "--seed", "5", "--only", "reader "]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert "300 inputs" in done.stdout


def test_the_second_generator_tells_raw_errors_from_clear_ones(tmp_path):
    """A program of three calls: a refusal in words, an error of NumPy inside of tacit, and a result."""
    verdicts = []
    for call in (lambda: plot.logo("ACGT"), lambda: Ragged([[1.0]], [0, 1]).take, lambda: canvas.by_name(3)):
        try:
            next(iter(call()))
        except Exception as error:
            verdicts.append(judge(error)[0])
    assert verdicts == ["clear", "own"]
    with pytest.raises(TypeError) as raised:
        arrays.smallest_integers("many")
    assert judge(raised.value)[0] == "raw"


def test_a_changed_argument_is_the_same_every_time(tmp_path):
    first, again = (Changer(np.random.default_rng(3), tmp_path).change(np.arange(6.0)) for _ in range(2))
    assert type(first) is type(again)
    assert repr(first) == repr(again)
