"""Inputs that the second generator (`tests/replay`) found: each ends in words."""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from tacit import BagClassifier, HiddenCRF, LatentSVM, Ragged, StructuredSVM, apps, load, plot
from tacit.bags.combination import Combination
from tacit.data import arrays
from tacit.data.graphs import Graphs
from tacit.data.labels import read_labels
from tacit.dna.regions import read_peaks
from tacit.label.journal import Journal
from tacit.label.session import Session
from tacit.label.tags import Tags
from tacit.oracle import Schema
from tacit.plot import canvas
from tacit.problems import Chain, PerSample, Sentences, Transcript, Tree, rotations
from tacit.problems.rotation import Rotations
from tacit.ranking import GlobalRanker
from tacit.signals import Word, format_ctm, format_textgrid
from tacit.spectral import SpectralAutomaton, WeightedAutomaton
from tacit.testing.learner_checks import make_samples
from tacit.text.parsing.grammar import check_grammar
from tacit.text.parsing.problem import read_facts
from tacit.vision.box_formats import read_table
from tacit.vision.regions.labels import weak_labels
from tacit.vision.regions.working_size import enlarge_labels
from tests.replay.changes import Changer
from tests.replay.programs import HOOK
from tests.replay.samples import readers
from tests.replay.server import judge

PHOTOS = list(np.random.default_rng(0).integers(0, 255, (2, 40, 40, 3)).astype(np.uint8))


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
    for objective in ("low", [1.0]):
        with pytest.raises(ValueError, match="objective"):
            plot.convergence([*history, history[0]._replace(objective=objective)])
    plot.convergence([*history, history[0]._replace(objective=2**64)])


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


@pytest.mark.parametrize("answer", [["N"], "D", [["D"], ["N"]], None, {"a": 1}])
def test_answers_that_do_not_fit_their_question_are_refused(tmp_path, answer):
    """The answers of an earlier run, which may have had other input or options, or of somebody else."""
    (tmp_path / "a.tsv").write_text("the\tD\ndog\tN\n\na\t_\ncat\t_\n")
    line = {"item": "sentence 2", "kind": "answer", "answer": answer}
    (tmp_path / "answers.jsonl").write_text('{"task": "tag"}\n' + json.dumps(line) + "\n")
    with pytest.raises(ValueError, match="sentence 2"):
        Session(Tags(tmp_path / "a.tsv"), tmp_path)


UNEVEN = [[1.0], [2.0, 3.0]]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: Graphs.from_list([(np.ones((2, 1)), [[0, 1]], UNEVEN)]), "edge_values"),
        (lambda: apps.Locator(verbose=0).fit(PHOTOS, [0, 1], boxes=[UNEVEN, None]), "boxes"),
        (lambda: apps.Segmenter(verbose=0).fit(PHOTOS, [None] * 2, boxes=[{"a": UNEVEN}, {"a": []}]), "boxes"),
        (lambda: enlarge_labels(UNEVEN, np.zeros((2, 2))), "image"),
        (lambda: BagClassifier().fit([np.eye(2)] * 6, np.array([[0, 1], [1, 0]] * 3), hidden=UNEVEN), "hidden"),
    ],
)
def test_rows_of_several_lengths_are_refused(call, name):
    with pytest.raises((ValueError, TypeError), match=name):
        call()


def test_parameters_that_can_be_read_once_or_have_more_than_64_bits_are_refused():
    X = [["a", "b"], ["b"]] * 5
    with pytest.raises(TypeError, match="iterator"):
        SpectralAutomaton(iter([1, 2])).fit(X)
    with pytest.raises(ValueError, match="size"):
        SpectralAutomaton(1, size=10**30).fit(X)


@pytest.mark.parametrize("problem", [Chain(), Transcript(states=1)])
def test_labels_that_can_be_read_once_are_read_once(problem):
    X, y = [np.eye(4), np.eye(4)[::-1]] * 3, [["a", "b"] * 2, ["b", "a"] * 2] * 3
    w = [LatentSVM(problem, C=1.0, verbose=0).fit(X, labels).coef_ for labels in (y, iter(y))]
    assert np.array_equal(*w)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array])
def test_sparse_tables_are_checked_before_scipy_converts_them(kind):
    """SciPy writes where indptr says, and does not convert numbers of two bytes."""
    table = kind(np.eye(4))
    table.data = table.data.astype(np.float16)
    assert Ragged.of([table, table]).values.dtype == np.float32
    assert GlobalRanker().fit(table, [0, 1, 0, 1], group=[2, 2]).coef_.size == 4
    table.indptr = np.array([0, 2**30, 1, 2, 4], dtype=np.int32)
    for read in (lambda: Ragged.of([table, table]), lambda: GlobalRanker().fit(table, [0, 1, 0, 1], group=[2, 2])):
        with pytest.raises(ValueError, match="damaged"):
            read()


@pytest.mark.parametrize("name", ["classes_", "weights_", "gap_"])
def test_what_a_fit_has_learned_is_not_there_before_it(name):
    model = StructuredSVM(Chain())
    assert not hasattr(model, name)
    with pytest.raises(NotFittedError, match="fit"):
        getattr(model, name)


def test_a_schema_with_masked_classes_is_refused():
    schema = Schema(np.ma.masked_array([1, 5], [True, False]), 1, {"w": (1,)}, {})
    with pytest.raises(ValueError, match="classes"):
        schema.check()


def test_few_lines_of_regions_do_not_take_gigabytes(tmp_path):
    """Each line of a BED file can name a whole chromosome."""
    (tmp_path / "g.fa").write_text(">chr1\n" + ("ACGT" * 25 + "\n") * 10_000)
    (tmp_path / "a.bed").write_text("".join(f"chr1\t{i}\t1000000\n" for i in range(1000)))
    with pytest.raises(ValueError, match="letters"):
        read_peaks(tmp_path / "a.bed", tmp_path / "g.fa", 0)
    assert len(read_peaks(tmp_path / "a.bed", tmp_path / "g.fa", 100)[0]) == 500  # every two have the same middle


def test_a_genome_with_two_chromosomes_of_one_name_is_refused(tmp_path):
    """Their letters were joined, and every record was compared with every region."""
    (tmp_path / "g.fa").write_text(">c 1\nACGT\n>c 2\nTTTT\n")
    (tmp_path / "a.bed").write_text("c\t0\t4\n")
    with pytest.raises(ValueError, match="two sequences"):
        read_peaks(tmp_path / "a.bed", tmp_path / "g.fa", 0)


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
        ("scale", lambda a: "1"),
        ("symbols", lambda a: 3),
        ("rules", lambda a: a[:, :2]),
        ("leaves", lambda a: a + 1000),
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


def test_every_sample_file_is_read(tmp_path, monkeypatch):
    """Readers move; a generator that does not find them tries nothing."""
    for program in readers(tmp_path / "samples"):
        if "use_answers" not in program.name:  # which learns for a second
            folder = tmp_path / program.name.split(":")[0]
            program.prepare(folder, program.files)
            monkeypatch.chdir(folder)
            for statement in program.statements:
                exec(statement, {**program.names, HOOK: lambda site, call, *args, **more: call(*args, **more)})


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


@pytest.mark.parametrize("curve", [1.5, "ab", ([1.0], [0.5, 0.2]), ([1.0], None), [[1.0], [sparse.eye(2)]]])
def test_curves_that_are_not_precision_and_recall_are_refused(curve):
    with pytest.raises(ValueError, match="curves"):
        plot.precision_recall({"a ranker": curve})


def test_what_is_not_an_automaton_or_a_rate_or_graphs_is_refused():
    with pytest.raises(TypeError, match="WeightedAutomaton"):
        WeightedAutomaton([1.0], [[[0.5]]], [0.5]).equivalent([[]])
    with pytest.raises(TypeError, match="RegionGraphs"):
        weak_labels(slice(None), masks=[None])


def test_known_states_and_sentences_are_read_whatever_their_type(tmp_path):
    tree = "(S (NP (N a)) (V b))"
    with pytest.raises(ValueError, match="hidden"):
        HiddenCRF(Tree(states=2), max_iter=1, verbose=0).fit(["a/N b/V"], [tree], hidden=np.uint8(2))
    X, y, hidden = make_samples(Sentences(1))
    known = [np.asarray(own, dtype=np.uint64) for own in hidden]
    LatentSVM(Sentences(1), C=np.longdouble(1.5), max_iter=1, verbose=0, tol=1.0).fit(X, y, hidden=known).save(
        tmp_path / "m"
    )
    assert load(tmp_path / "m").C == 1.5
