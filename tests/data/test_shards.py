"""Samples in shards on disk: the same result as from memory, to the bit, and clear errors."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from tacit import (
    DissimilaritySVM,
    HiddenCRF,
    IterativeLatentSVM,
    LatentPerceptron,
    LatentSVM,
    MinEntropySVM,
    Ragged,
    SelfPaced,
    Shards,
    StructuredSVM,
    load,
)
from tacit.oracle import CapabilityError
from tacit.problems import Candidates, Multiclass, Regions
from tacit.runtime.blocks import smallest_blocks
from tacit.solvers import Bundle, FrankWolfe, Subgradient


def make_bags(n=90, d=6, dtype="float64", boxes=False):
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 6, n)
    y = np.arange(n) % 3
    values = rng.standard_normal((sizes.sum(), d)).astype(dtype)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    values[offsets[:-1], y] += 2
    bags = Ragged(values, offsets)
    if boxes:
        corner = rng.integers(0, 9, (len(values), 2))
        bags = bags.with_boxes(np.hstack([corner, corner + 4]))
    return bags, np.array(["ant", "bee", "cat"])[y]


def uneven(folder, X, cuts):
    """Shards cut at these samples, from loaders."""
    edges = [0, *cuts, len(X)]
    loaders = [lambda a=a, b=b: X[a:b] for a, b in itertools.pairwise(edges)]
    return Shards.open(loaders, spool=folder)


def same(a, b):
    assert np.array_equal(a.coef_, b.coef_)
    assert a.objective_ == b.objective_
    assert a.hidden_ is None or np.array_equal(a.hidden_, b.hidden_)


CUTS = ([], [13], [1, 2, 29])
"""One shard, two, and four of very different sizes."""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("more", [{}, {"pace": SelfPaced()}, {"solver": Subgradient(batch_size=16)}], ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_latent_fit_on_shards_has_the_bits_of_one_in_memory(tmp_path, more, dtype):
    bags, y = make_bags(n=36, dtype=dtype)

    def fit(X, jobs):
        with smallest_blocks():
            return LatentSVM(Candidates(), C=3, max_iter=3, max_inner=12, n_jobs=jobs, **more).fit(X, y)

    memory = fit(bags, 1)
    for k, cuts in enumerate(CUTS):
        same(memory, fit(uneven(tmp_path / str(k), bags, cuts), 1 + k % 2))


@pytest.mark.parametrize("learner", [HiddenCRF, MinEntropySVM, LatentPerceptron, DissimilaritySVM])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_other_learners_take_shards_too(tmp_path, learner):
    bags, y = make_bags(n=20, boxes=True)
    more = {} if learner is LatentPerceptron else {"max_iter": 3}
    problem = Candidates(loss="overlap" if learner is DissimilaritySVM else "0/1")
    with smallest_blocks():
        memory = learner(problem, **more).fit(bags, y)
        assert np.array_equal(memory.coef_, learner(problem, **more).fit(bags.to_shards(tmp_path / "s", 3), y).coef_)


def test_shards_are_not_indexed(tmp_path):
    bags, _ = make_bags(n=10)
    with pytest.raises(TypeError, match="index"):
        bags.to_shards(tmp_path / "s")[2:4]


def test_a_loss_on_boxes_works_on_shards(tmp_path):
    bags, y = make_bags(n=12, boxes=True)
    shards = bags.to_shards(tmp_path / "s", shards=3)
    learner = IterativeLatentSVM(Candidates(loss="overlap"), C=3, tol=0.01)
    with smallest_blocks():
        same(IterativeLatentSVM(**learner.get_params(deep=False)).fit(bags, y), learner.fit(shards, y))


@pytest.mark.parametrize("solver", [Bundle(), FrankWolfe(), "auto"], ids=repr)
def test_a_table_in_shards_gives_the_model_of_the_table(tmp_path, solver):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 5)), np.arange(80) % 4
    X[np.arange(80), y] += 1
    shards = Shards.write(tmp_path / "s", X, shards=3)
    memory = StructuredSVM(Multiclass(), C=10, solver=solver).fit(X, y)
    model = StructuredSVM(Multiclass(), C=10, solver=solver).fit(shards, y)
    if isinstance(solver, FrankWolfe):  # it keeps planes in place of dual variables
        assert model.objective_ == pytest.approx(memory.objective_, rel=2e-3)
    else:
        same(memory, model)
    assert np.array_equal(model.predict(shards), model.predict(X))
    assert model.n_features_in_ == 5


def test_large_blocks_are_multiplied_in_place_with_the_same_bits(tmp_path):
    rng = np.random.default_rng(0)
    for dtype in ("float32", "float64"):
        values = rng.standard_normal((40_000, 60)).astype(dtype)
        bags = Ragged(values, np.arange(0, 40_001, 10))
        y = np.arange(4000) % 2
        shards = bags.to_shards(tmp_path / dtype, shards=3)
        w = rng.standard_normal(2 * 61)
        schema = Candidates().schema(bags, y)
        memory, mapped = (Candidates().bind(X, y, schema) for X in (bags, shards))
        for rows in (None, slice(7, 3907), np.arange(0, 4000, 3)):
            assert np.array_equal(memory.predict_augmented(w, rows).value, mapped.predict_augmented(w, rows).value)
            code = memory.predict_augmented(w, rows).code
            coef = rng.random(code.size)
            assert np.array_equal(memory.features(code, coef, rows), mapped.features(code, coef, rows))
        assert memory.digest() == mapped.digest()


def test_a_fit_on_shards_goes_on_in_memory(tmp_path):
    bags, y = make_bags()
    shards = bags.to_shards(tmp_path / "s")
    file = tmp_path / "checkpoint"
    stopped = LatentSVM(Candidates(), C=3, checkpoint=file, callbacks=[lambda line: line.iteration == 2])
    with pytest.warns(Warning, match="callback"):
        stopped.fit(shards, y)
    resumed = LatentSVM(Candidates(), C=3, checkpoint=file, resume=True).fit(bags, y)
    same(resumed, LatentSVM(Candidates(), C=3).fit(bags, y))
    resumed.save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict(shards), resumed.predict(bags))


def test_shards_of_parquet_files(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    bags, _ = make_bags(n=10)
    files = []
    for k, part in enumerate((bags[:3], bags[3:])):
        column = pyarrow.array([bag.tolist() for bag in part])
        files.append(tmp_path / f"{k}.parquet")
        parquet.write_table(pyarrow.table({"bags": column}), files[-1])
    found = Shards.open(files).in_memory()
    assert np.array_equal(found.values, bags.values)
    assert np.array_equal(found.offsets, bags.offsets)
    rows = pyarrow.array(bags.values.tolist())
    parquet.write_table(pyarrow.table({"rows": rows}), tmp_path / "table.parquet")
    assert np.array_equal(Shards.open(tmp_path / "table.parquet").in_memory(), bags.values)


def test_pages_are_given_back(tmp_path, monkeypatch):
    from tacit.data import table

    monkeypatch.setattr(table, "MAX_RESIDENT", 0)
    bags = Ragged(np.ones((400_000, 20)), np.arange(0, 400_001, 10))  # 64 MB
    shards = bags.to_shards(tmp_path / "s", shards=2)
    oracle = Candidates().bind(shards, np.arange(40_000) % 2, Candidates().schema(shards, np.arange(40_000) % 2))
    oracle.predict_augmented(np.ones(42))
    assert _resident(tmp_path) < 16_000
    assert shards.values[:300_000].sum() == 6_000_000
    assert _resident(tmp_path) > 40_000  # read without an oracle: they stay


def _resident(folder):
    """Kilobytes of the files of a folder that count as memory of this process."""
    try:
        lines = Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        pytest.skip("needs /proc")
    total, is_ours = 0, False
    for line in lines:
        if "-" in line.split(" ")[0]:
            is_ours = str(folder) in line
        elif line.startswith("Rss:") and is_ours:
            total += int(line.split()[1])
    return total


def test_bad_shards_are_named(tmp_path):
    bags, y = make_bags()
    learner = LatentSVM(Candidates(), C=1, max_iter=1)
    shards = bags.to_shards(tmp_path / "s", shards=3)
    with pytest.raises(ValueError, match="89"):
        learner.fit(shards, y[:-1])
    with pytest.raises(FileExistsError, match="empty"):
        bags.to_shards(tmp_path / "s")
    with pytest.raises(FileNotFoundError, match="folder"):
        Shards.open(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="loader 1"):
        Shards.open([lambda: bags, lambda: Ragged(np.ones((2, 5)), [0, 2])])
    with pytest.raises(ValueError, match="float32"):
        Shards.open([lambda: bags, lambda: bags.map_rows(lambda rows: rows.astype("float32"))])
    with pytest.raises(ValueError, match="ZeroDivisionError"):
        Shards.open([lambda: bags, lambda: 1 / 0])
    values = tmp_path / "s" / "shard-00001.values.npy"
    good = values.read_bytes()
    changed = np.load(values)
    changed[0, 0] += 1
    np.save(values, changed)
    with pytest.raises(ValueError, match="shard-00001"):
        learner.fit(Shards.open(tmp_path / "s"), y)
    values.write_bytes(good[:-8])
    with pytest.raises(ValueError, match="shard-00001"):
        Shards.open(tmp_path / "s")
    values.unlink()
    with pytest.raises(FileNotFoundError, match="shard-00001"):
        Shards.open(tmp_path / "s")
    (tmp_path / "s" / "shards.json").write_text(json.dumps({"format": "other"}))
    with pytest.raises(ValueError, match="manifest"):
        Shards.open(tmp_path / "s")


def test_a_file_that_changed_is_named_when_a_fit_is_resumed(tmp_path):
    bags, y = make_bags()
    shards = bags.to_shards(tmp_path / "s", shards=3)
    file = tmp_path / "checkpoint"
    stopped = LatentSVM(Candidates(), C=3, checkpoint=file, callbacks=[lambda line: line.iteration == 2])
    with pytest.warns(Warning, match="callback"):
        stopped.fit(shards, y)
    values = tmp_path / "s" / "shard-00002.values.npy"
    np.save(values, np.load(values) + 1)
    with pytest.raises(ValueError, match="shard-00002"):
        LatentSVM(Candidates(), C=3, checkpoint=file, resume=True).fit(Shards.open(tmp_path / "s"), y)
    with pytest.raises(ValueError, match="shard-00002"):
        LatentSVM(Candidates(), C=3, checkpoint=file, resume=True).fit(shards, y)  # opened before the change
    bags.map_rows(lambda rows: rows + 1).to_shards(tmp_path / "other", shards=3)
    with pytest.raises(ValueError, match="features"):
        LatentSVM(Candidates(), C=3, checkpoint=file, resume=True).fit(Shards.open(tmp_path / "other"), y)


def test_a_missing_number_is_found_in_its_shard(tmp_path):
    bags, y = make_bags()
    bags.values[-1, 2] = np.nan
    with pytest.raises(ValueError, match="shard-00003"):
        LatentSVM(Candidates()).fit(bags.to_shards(tmp_path / "s"), y)


def test_problems_that_need_memory_say_so_first(tmp_path):
    bags, _ = make_bags(n=4)
    shards = bags.to_shards(tmp_path / "s", shards=2)
    with pytest.raises(CapabilityError, match="Regions"):
        StructuredSVM(Regions()).fit(shards, [[0]] * 4)
    with pytest.raises(ValueError, match="bags"):
        StructuredSVM(Multiclass()).fit(shards, [0, 1, 0, 1])


def test_damaged_headers_and_odd_folders_are_told_in_words(tmp_path):
    bags, _ = make_bags(n=4)
    bags.to_shards(tmp_path / "s", shards=2)
    values = tmp_path / "s" / "shard-00000.values.npy"
    good = values.read_bytes()
    for wrong in (good.replace(b"'shape': (", b"'shape': ((", 1), good.replace(b"{", b"[", 1), good[:20], b""):
        values.write_bytes(wrong)
        with pytest.raises(ValueError, match="shard-00000"):
            Shards.open(tmp_path / "s")
    values.write_bytes(good)
    for folder, message in (("\0", "NUL"), ("\ud800", "character"), (3, "folder")):
        for use in (Shards, lambda folder: Shards.write(folder, bags)):
            with pytest.raises((ValueError, TypeError), match=message):
                use(folder)
    with pytest.raises(OSError, match="xxx"):
        bags.to_shards("x" * 5000)
    with pytest.raises(FileNotFoundError, match=r"xxx.*\.\.\.xxx"):
        Shards.open("x" * 5000)


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "f8,,("},
        {"dtype": "U3"},
        {"width": -1},
        {"width": "6"},
        {"shards": [{"name": "shard-00000", "samples": -1, "rows": 0, "digests": {"values": "", "offsets": ""}}]},
        {"shards": [{"name": "x" * 5000, "samples": 1, "rows": 1, "digests": {"values": "", "offsets": ""}}]},
        {"shards": [{"name": "shard-00000", "samples": 1, "rows": 1, "digests": 3}]},
        {"shards": 3},
    ],
    ids=repr,
)
def test_a_manifest_that_cannot_be_is_refused(tmp_path, change):
    make_bags(n=4)[0].to_shards(tmp_path / "s", shards=2)
    manifest = tmp_path / "s" / "shards.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | change))
    with pytest.raises(ValueError, match="manifest") as caught:
        Shards.open(tmp_path / "s")
    assert len(str(caught.value)) < 1000
