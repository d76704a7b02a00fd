"""Labels over frames: inference against enumeration, edits, learned timing, known boundaries, lexicons, bad input."""

import itertools

import numpy as np
import pandas as pd
import pytest

from tacit import HiddenCRF, LatentSVM, MinEntropySVM, Ragged, load
from tacit.problems import Transcript
from tacit.problems.transcript.automata import Layout
from tacit.problems.transcript.edits import edit_segments, error_rate
from tacit.testing import check_problem, enumeration

SOUNDS = {"a": [2.0, 0.0, 0.0], "b": [0.0, 2.0, 0.0], "c": [0.0, 0.0, 2.0]}


def recordings(n, seed=0, noise=0.3):
    """Strings of one to four sounds of random lengths, with silence between some; and where each sound is."""
    rng = np.random.default_rng(seed)
    X, y, places = [], [], []
    for _ in range(n):
        labels = rng.choice(list(SOUNDS), int(rng.integers(1, 5))).tolist()
        frames, own = [[0.0] * 3] * int(rng.integers(1, 4)), []
        for label in labels:
            size = int(rng.integers(3, 6))
            own.append((len(frames), len(frames) + size))
            frames = frames + [SOUNDS[label]] * size + [[0.0] * 3] * int(rng.integers(1, 3))
        X.append(np.array(frames) + noise * rng.standard_normal((len(frames), 3)))
        y.append(labels)
        places.append(own)
    return X, y, places


@pytest.mark.parametrize("problem", Transcript.variants(), ids=str)
def test_check_problem(problem):
    check_problem(problem, 3)


def test_silence_with_several_states_agrees_with_enumeration():
    check_problem(Transcript(states=2, skips=1, max_edits=3), 2)


@pytest.mark.parametrize(
    "learner",
    [HiddenCRF(None, C=100), LatentSVM(None, C=1000, tol=1e-2), HiddenCRF(None, C=100, method="hard-em")],
    ids=str,
)
def test_learners_find_the_timing(learner, tmp_path):
    X, y, _places = recordings(60)
    X_new, y_new, places_new = recordings(40, seed=1)
    model = learner.set_params(problem=Transcript(states=2)).fit(X, y)
    assert error_rate(y_new, model.predict(X_new)) <= 0.05
    found = model.impute(X_new, y_new)
    right = []
    for h, own in zip(found, places_new, strict=True):
        is_sound = np.isin(np.arange(len(h)), [t for a, b in own for t in range(a, b)])
        right += ((h < 6) == is_sound).tolist()
    assert np.mean(right) > 0.9
    model.save(tmp_path / "model.tacit")
    assert error_rate(model.predict(X_new), load(tmp_path / "model.tacit").predict(X_new)) == 0


def test_posteriors_sum_to_one_and_follow_the_transcript():
    X, y, _ = recordings(30)
    model = HiddenCRF(Transcript(states=2), C=100).fit(X, y)
    assert model.predict_proba(X[:3])[1].shape == (len(X[1]), 4)  # three labels and silence
    for is_given in (False, True):
        table = model.hidden_proba(X[:3], y[:3] if is_given else None)
        assert table.values.sum(axis=1) == pytest.approx(1.0)
    other = [i for i in range(3) if "abc"[i] not in y[0]]
    assert not model.hidden_proba(X[:1], y[:1])[0][:, [2 * i for i in other]].any()


def test_known_boundaries_are_kept():
    X, y, places = recordings(20)
    problem = Transcript(states=2)
    model = HiddenCRF(problem, C=10).fit(X, y, hidden=places)
    oracle = problem.bind(X, y, model.schema_, hidden=places)
    for w in (np.zeros(oracle.n_params), np.random.default_rng(0).standard_normal(oracle.n_params)):
        for h, own in zip(oracle.decode(oracle.impute(w).code)[1], places, strict=True):
            inside = np.isin(np.arange(h.size), [t for a, b in own for t in range(a, b)])
            assert np.array_equal(h < 6, inside)


def test_sets_of_boundaries_agree_with_enumeration():
    problem = Transcript(states=1, classes=["ant", "bee"])
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((5, 2)), rng.standard_normal((4, 2))]
    y = [["ant", "bee"], ["bee"]]
    hidden = [[((0, 1), (2, 3)), None], [(1, (2, 4))]]
    schema = problem.schema(X, y)
    oracle = problem.bind(X, y, schema, hidden=hidden)
    w = rng.standard_normal(oracle.n_params)
    found, total = oracle.impute(w).value, oracle.expectations(w, truth=0.0).truth
    for i, x in enumerate(X):
        scores = []
        for path in itertools.product(range(3), repeat=len(x)):
            begins = [t for t in range(len(x)) if path[t] < 2 and (t == 0 or path[t - 1] != path[t])]
            ends = [t + 1 for t in range(len(x)) if path[t] < 2 and (t + 1 == len(x) or path[t + 1] != path[t])]
            if [("ant", "bee")[path[t]] for t in begins] != y[i]:
                continue
            if (0 <= begins[0] <= 1 and 2 <= ends[0] <= 3) if i == 0 else (begins[0] == 1 and 2 <= ends[0] <= 4):
                row = problem.bind(X[i : i + 1], None, schema)
                scores.append(row.score(w, np.array(path))[0])
        assert found[i] == pytest.approx(max(scores))
        assert total[i] == pytest.approx(np.logaddexp.reduce(scores))


def test_lexicon_takes_the_entry_that_aligns_best():
    X, y, _ = recordings(20, noise=1.2)
    words = [list(word) for word in ("a", "ab", "abc", "cab", "cc")]
    free = HiddenCRF(Transcript(states=2), C=10).fit(X, y)
    found = free.copy_fitted(problem__lexicon=words).predict(X)
    for x, labels in zip(X, found, strict=True):
        values = [free.problem.bind([x], [word], free.schema_).impute(free.coef_).value[0] for word in words]
        assert labels.tolist() == words[int(np.argmax(values))]


def test_edits_are_counted_along_paths():
    layout = Layout(3, 1, 0, True)
    segments = edit_segments(layout, np.array([0, 1, 1]), 2)
    ends = segments.final[np.isfinite(segments.final)]
    assert set(ends.tolist()) == {0.0, 1.0, 2.0}
    columns = [edit_segments(layout, np.array([0, 1, 1]), most).label.size for most in (1, 2, 3)]
    assert columns == sorted(columns)


def test_error_rate_is_levenshtein():
    rng = np.random.default_rng(0)

    def slow(a, b):
        if not a or not b:
            return max(len(a), len(b))
        return min(slow(a[1:], b) + 1, slow(a, b[1:]) + 1, slow(a[1:], b[1:]) + (a[0] != b[0]))

    for _ in range(20):
        a, b = (rng.integers(0, 3, int(rng.integers(1, 6))).tolist() for _ in range(2))
        assert error_rate([a], [b]) == pytest.approx(slow(a, b) / len(a))


FRAMES = [np.zeros((6, 2)), np.ones((6, 2))]


@pytest.mark.parametrize(
    ("problem", "X", "y", "hidden", "keyword"),
    [
        (Transcript(), FRAMES, [["a"] * 3, ["b"]], None, "at least 9 frames"),
        (Transcript(), FRAMES, [[], ["b"]], None, "empty"),
        (Transcript(), FRAMES, ["ab", ["b"]], None, "list of labels"),
        (Transcript(), FRAMES, [["a"]], None, "one for each"),
        (Transcript(), FRAMES, [["a", None], ["b"]], None, "missing"),
        (Transcript(), FRAMES, [["a"], ["a"]], None, "only one label"),
        (Transcript(classes=["a", "b"]), FRAMES, [["a"], ["c"]], None, "not among"),
        (Transcript(lexicon=[["a"]]), FRAMES, [["a"], ["b"]], None, "lexicon"),
        (Transcript(lexicon=[["x"]]), FRAMES, [["a"], ["b"]], None, "lexicon"),
        (Transcript(lexicon=5), FRAMES, [["a"], ["b"]], None, "lexicon"),
        (Transcript(), [np.zeros((2, 2))] * 2, [["a"], ["b"]], None, "frames"),
        (Transcript(), [np.full((6, 2), np.nan), FRAMES[1]], [["a"], ["b"]], None, "NaN"),
        (Transcript(states=1, silence=False), FRAMES, [["a", "a"], ["b"]], None, "twice in a row"),
        (Transcript(), FRAMES, [["a"], ["b"]], [[(4, 2)], None], "start, stop"),
        (Transcript(), FRAMES, [["a"], ["b"]], [[(0, 3), (3, 5)], None], "one each"),
        (Transcript(), FRAMES, [["a"], ["b"]], [[0, 1], None], "6 frames"),
        (Transcript(), FRAMES, [["a"], ["b"]], [[9] * 6, None], "from 0 to 6"),
        (Transcript(), FRAMES, [["a"], ["b"]], [[3, 3, 4, 4, 5, 5], None], "not an alignment"),
        (Transcript(), FRAMES, [["a"], ["b"]], [[(0, 2)], None], "not an alignment"),
        (Transcript(states=0), FRAMES, [["a"], ["b"]], None, "states"),
        (Transcript(states=4000), FRAMES, [["a"], ["b"]], None, "states"),
    ],
)
def test_bad_input_is_refused_before_work(problem, X, y, hidden, keyword):
    with pytest.raises(ValueError, match=keyword):
        HiddenCRF(problem).fit(X, y, hidden=hidden)


def test_labels_never_seen_count_as_errors_and_cannot_be_aligned():
    X, y, _ = recordings(20)
    model = HiddenCRF(Transcript(states=2), C=100).fit(X, y)
    assert model.score(X[:1], [["z"] * len(y[0])]) < model.score(X[:1], y[:1])
    with pytest.raises(ValueError, match="never saw"):
        model.impute(X[:1], [["z"]])


@pytest.mark.parametrize("problem", Transcript.variants(), ids=str)
def test_the_best_few_transcripts_agree_with_enumeration(problem):
    rng = np.random.default_rng(0)
    example = problem.example(rng)
    table = enumeration.Enumeration(example)
    oracle = problem.bind(example.X, example.y, problem.schema(example.X, example.y)).exact()
    w = rng.standard_normal(oracle.n_params)
    code, value = oracle.best_outputs(w, 6)
    ranks = [oracle.decode(np.where(column < 0, code[:, 0], column))[0] for column in code.T]
    for i, psi in enumerate(table.features):
        best = {}
        for (labels, _), score in zip(table.outputs[i], psi @ w, strict=True):
            best[tuple(labels)] = max(score, best.get(tuple(labels), -np.inf))
        wished = sorted(best.items(), key=lambda pair: -pair[1])[:6]
        found = np.isfinite(value[i])
        assert found.sum() == len(wished)
        assert value[i][found] == pytest.approx([score for _, score in wished])
        assert [tuple(own[i]) for own, is_there in zip(ranks, found, strict=True) if is_there] == [y for y, _ in wished]


@pytest.mark.parametrize("problem", Transcript.variants(), ids=str)
def test_the_best_few_rivals_by_score_plus_loss_agree_with_enumeration(problem):
    rng = np.random.default_rng(1)
    example = problem.example(rng)
    table = enumeration.Enumeration(example)
    oracle = problem.bind(example.X, example.y, problem.schema(example.X, example.y)).exact()
    w = rng.standard_normal(oracle.n_params)
    _, value = oracle._rank_labels(w, 8, None, is_augmented=True)
    for i, psi in enumerate(table.features):
        best = {}
        for (labels, h), score in zip(table.outputs[i], psi @ w, strict=True):
            whole = score + example.loss(example.y[i], labels, h)
            best[tuple(labels)] = max(whole, best.get(tuple(labels), -np.inf))
        wished = sorted(best.values(), reverse=True)[:8]
        assert value[i][: len(wished)] == pytest.approx(wished)
        assert np.isneginf(value[i][len(wished) :]).all()


def test_a_search_for_entropies_that_ends_early_gives_bounds(monkeypatch):
    X, y, _ = recordings(6)
    problem = Transcript(states=2)
    oracle = problem.bind(X, y, problem.schema(X, y)).exact()
    w = 0.3 * np.random.default_rng(0).standard_normal(oracle.n_params)
    monkeypatch.setattr(type(oracle), "most_visited", 256)
    whole = oracle.renyi_slacks(w, np.ones(6), 0.5)
    monkeypatch.setattr(type(oracle), "first_visited", 1)
    monkeypatch.setattr(type(oracle), "most_visited", 1)
    early = oracle.renyi_slacks(w, np.ones(6), 0.5)
    assert (early.bound > early.value + 1e-6).any()
    assert (early.value <= whole.value + 1e-9).all()
    assert (whole.bound <= early.bound + 1e-9).all()
    assert (whole.value <= early.bound + 1e-9).all()


def test_entropies_and_ranks_of_transcripts():
    X, y, _ = recordings(20)
    model = MinEntropySVM(Transcript(states=2), C=300, tol=0.05).fit(X, y)
    assert error_rate(y, model.predict(X)) <= 0.05
    transcripts, scores = model.predict_best(X, k=4)
    assert [len(own) for own in transcripts] == [4] * 20
    assert all((np.diff(own) <= 0).all() for own in scores)
    for x, own, values in zip(X[:5], transcripts, scores, strict=False):
        assert len({tuple(labels) for labels in own}) == 4
        for labels, value in zip(own, values, strict=True):
            assert model.problem.bind([x], [labels], model.schema_).impute(model.coef_).value[0] == pytest.approx(value)
    with pytest.raises(ValueError, match="memory"):
        model.predict_best([np.zeros((100_000, 3))], k=10_000)


def test_starts_propose_alignments_of_the_transcripts():
    X, y, _ = recordings(10)
    problem = Transcript(states=2)
    schema = problem.schema(X, y)
    oracle = problem.bind(X, y, schema)
    for code in (*oracle.proposals(1), oracle.draw(np.random.default_rng(0))):
        assert oracle.accepts(code)
        assert [labels.tolist() for labels in oracle.decode(code)[0]] == y
        assert not oracle.loss(code).any()


def test_sparse_frames_give_the_same_model():
    from scipy import sparse

    X, y, _ = recordings(20)
    bags = Ragged.from_list(X)
    other = Ragged(sparse.csr_array(bags.values), bags.offsets)
    dense, thin = (HiddenCRF(Transcript(states=2), C=10).fit(frames, y).coef_ for frames in (bags, other))
    assert dense == pytest.approx(thin, abs=1e-3)


def test_enumeration_lists_every_alignment_once():
    problem = Transcript(states=2, silence=False)
    table = enumeration.Enumeration(problem.example(np.random.default_rng(0)))
    for outputs in table.outputs:
        assert len({tuple(h.tolist()) for _, h in outputs}) == len(outputs)


def test_transcripts_that_can_be_read_only_once_are_refused():
    with pytest.raises(ValueError, match="list"):
        error_rate(iter([["a"]]), [["a"]])


def test_a_table_in_place_of_a_transcript_has_one_label_per_column():
    X = [np.zeros((4, 1)), np.ones((4, 1))]
    y = [["a", "b"], pd.DataFrame({"a": [1, 2, 3]})]
    problem = Transcript(states=1, classes=["a", "b"])
    oracle = problem.bind(X, y, problem.schema(X, y))
    labels, _ = oracle.decode(oracle.impute(np.zeros(oracle.n_params)).code)
    assert [list(own) for own in labels] == [["a", "b"], ["a"]]
