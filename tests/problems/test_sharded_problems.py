"""Every problem that takes shards: memory, files, threads and workers give the same bits, wherever shards are cut."""

import itertools
import tempfile

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA

from tacit import HiddenCRF, LatentSVM, MinEntropySVM, Ragged, Shards, StructuredSVM
from tacit.data.shard_folder import digest_array, read_manifest
from tacit.data.table import Table
from tacit.datasets import planted_motif
from tacit.dna.motif import oracle as motif_oracle
from tacit.oracle import CapabilityError
from tacit.problems import (
    Bags,
    Candidates,
    Chain,
    Motif,
    MotifSites,
    Multiclass,
    SequenceClass,
    Transcript,
    Transforms,
    rotations,
)
from tacit.problems.views import principal_components, spool_views
from tacit.runtime.blocks import smallest_blocks

pytestmark = pytest.mark.filterwarnings("ignore")

CUTS = ([], [13], [1, 2, 17])
"""One shard, two, and four of very different sizes."""

N = 24


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def bags():
    rng = np.random.default_rng(3)
    sizes, y = rng.integers(1, 5, N), np.arange(N) % 3
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    values = rng.standard_normal((offsets[-1], 5)).astype("float32")
    values[offsets[:-1], y] += 2
    return Ragged(values, offsets), np.array(["ant", "bee", "cat"])[y]


def table():
    rng = np.random.default_rng(3)
    y = np.arange(N) % 3
    return rng.standard_normal((N, 4)) + 2 * np.eye(3, 4)[y], y


def sequences(missing=False):
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 6, N)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    tags = rng.integers(0, 3, offsets[-1])
    values = rng.standard_normal((offsets[-1], 4)) + np.eye(3, 4)[tags]
    if missing:
        tags = np.where(rng.random(tags.size) < 0.3, -1, tags)
    return Ragged(values, offsets), Ragged(tags, offsets)


def motif_learner(problem, **more):
    return LatentSVM(problem, C=10, init="hidden", max_iter=2, max_inner=4, random_state=0, **more)


def sequence_learner(learner, **more):
    return learner(SequenceClass(), C=3, init="weights", max_iter=4, random_state=0, **more)


def strings():
    """Frames of two labels each, one after the other."""
    rng = np.random.default_rng(3)
    offsets = np.arange(0, 6 * N + 1, 6)
    y = rng.integers(0, 3, (N, 2))
    values = rng.standard_normal((offsets[-1], 5)).astype("float32")
    values[np.arange(offsets[-1]), np.repeat(y.ravel(), 3)] += 3
    return Ragged(values, offsets), y.tolist()


def transcript_learner(learner, max_iter=4, **more):
    return learner(Transcript(states=2), C=30, init="weights", max_iter=max_iter, random_state=0, **more)


def letters():
    X, y, _ = planted_motif(N, 20, "TGACTCA", seed=0)
    X[5] = X[5][:4] + b"N" + X[5][5:]
    return X, y


def images(n=N):
    rng = np.random.default_rng(3)
    y = np.arange(n) % 3
    return (rng.standard_normal((n, 4, 4)) + 4 * np.eye(3, 16)[y].reshape(-1, 4, 4)).reshape(n, 16), y


EXAMPLES = {
    "motif": (letters, lambda **more: motif_learner(Motif(width=5, background=2), **more)),
    "motif on both strands": (letters, lambda **more: motif_learner(Motif(5, strands="both"), **more)),
    "candidates": (bags, lambda **more: LatentSVM(Candidates(), C=3, max_iter=3, max_inner=8, **more)),
    "multiclass": (table, lambda **more: StructuredSVM(Multiclass(), C=3, max_iter=20, **more)),
    "chain": (sequences, lambda **more: StructuredSVM(Chain(), C=3, max_iter=20, **more)),
    "chain with columns of its own": (
        sequences,
        lambda **more: StructuredSVM(Chain(fit_intercept=True, boundaries=True), C=3, max_iter=20, **more),
    ),
    "witnesses": (bags, lambda **more: LatentSVM(Bags(), C=3, max_iter=3, max_inner=8, **more)),
    "witnesses, summed": (bags, lambda **more: HiddenCRF(Bags(), max_iter=5, **more)),
    "chain with missing tags": (
        lambda: sequences(missing=True),
        lambda **more: LatentSVM(Chain(), C=3, init="weights", max_iter=3, max_inner=8, random_state=0, **more),
    ),
    "chain of states with missing tags": (
        lambda: sequences(missing=True),
        lambda **more: HiddenCRF(Chain(states=2), max_iter=5, init="weights", random_state=0, **more),
    ),
    "chain of states with missing tags, entropies": (
        lambda: sequences(missing=True),
        lambda **more: MinEntropySVM(Chain(states=2), C=3, max_iter=5, init="weights", random_state=0, **more),
    ),
    "sequence classes": (bags, lambda **more: sequence_learner(LatentSVM, max_inner=8, **more)),
    "sequence classes, summed": (bags, lambda **more: sequence_learner(HiddenCRF, **more)),
    "transcripts": (strings, lambda **more: transcript_learner(LatentSVM, max_inner=8, **more)),
    "transcripts, entropies": (strings, lambda **more: transcript_learner(MinEntropySVM, max_iter=1, **more)),
    "transcripts, summed": (strings, lambda **more: transcript_learner(HiddenCRF, **more)),
}


def loaders(X, cuts):
    return [lambda a=a, b=b: X[a:b] for a, b in itertools.pairwise([0, *cuts, len(X)])]


def same(memory, model):
    assert np.array_equal(memory.coef_, model.coef_)
    assert memory.objective_ == model.objective_


@pytest.mark.parametrize("name", EXAMPLES)
def test_files_threads_and_workers_change_no_bit(client, tmp_path, name):
    import tacit.dask

    make, learner = EXAMPLES[name]
    X, y = make()
    with smallest_blocks():
        memory = learner().fit(X, y)
        assert memory.coef_.any()
        same(memory, learner(n_jobs=2).fit(X, y))
        for k, cuts in enumerate(CUTS):
            shards = Shards.open(loaders(X, cuts), spool=tmp_path / str(k))
            same(memory, learner(n_jobs=1 + k % 2).fit(shards, y))
            same(memory, tacit.dask.fit(learner(), loaders(X, cuts), y, client=client))
            same(memory, tacit.dask.fit(learner(), shards.folder, y, client=client))
        predicted = memory.predict(shards)
        assert all(np.array_equal(a, b) for a, b in zip(predicted, memory.predict(X), strict=True))


@pytest.mark.parametrize(("n", "components"), [(N, None), (N, 5), (1100, 5)])
def test_transforms_of_shards_have_the_bits_of_memory(client, tmp_path, n, components):
    import tacit.dask

    X, y = images(n)
    problem = Transforms(rotations(-90, 90, 3), n_components=components)
    learner = LatentSVM(problem, C=3, max_iter=2, max_inner=8, random_state=0)
    with smallest_blocks():
        memory = clone(learner).fit(X, y)
        assert memory.coef_.any()
        for k, cuts in enumerate(CUTS):
            shards = Shards.open(loaders(X, cuts), spool=tmp_path / str(k))
            model = clone(learner).set_params(n_jobs=1 + k % 2).fit(shards, y)
            same(memory, model)
            assert np.array_equal(model.predict(shards), memory.predict(X))
            if n > N or components is None:  # few samples have their components found in memory
                same(memory, tacit.dask.fit(clone(learner), loaders(X, cuts), y, client=client))
                same(memory, tacit.dask.fit(clone(learner), shards.folder, y, client=client))


def test_principal_components_of_blocks_are_those_of_all_rows():
    X, _ = images(2500)
    mean, components = principal_components(X, 4)
    reference = PCA(4, svd_solver="full").fit(X)
    np.testing.assert_allclose(mean, reference.mean_, atol=1e-12)
    np.testing.assert_allclose(np.abs(components), np.abs(reference.components_), atol=1e-8)


def test_letters_are_kept_numbered_up_to_a_bound(tmp_path, monkeypatch):
    X, y = letters()
    shards = Shards.write(tmp_path / "s", X)
    learner = motif_learner(Motif(width=5))
    monkeypatch.setattr(motif_oracle, "MAX_KEPT", 100)
    with smallest_blocks():
        same(clone(learner).fit(X, y), clone(learner).fit(shards, y))
    schema = learner.problem.schema(shards, y)
    oracle = learner.problem.bind(shards, y, schema)
    w = np.random.default_rng(0).standard_normal(schema.n_params)
    for first in range(0, N, 2):
        oracle.scores(w, slice(first, first + 2))
    kept = sum(int(oracle.row_offsets[last] - oracle.row_offsets[first]) for first, last in oracle._kept)
    assert 0 < kept <= 100 < shards.offsets[-1]


def spoil_last_letter(folder):
    """Make the last letter an X, in the file and in the manifest."""
    manifest = read_manifest(folder)
    last = manifest.shards[-1]
    values = np.load(last.path(folder, "values"))
    values[-1] = ord("X")
    np.save(last.path(folder, "values"), values)
    last.digests["values"] = digest_array(values)
    manifest.write(folder)


def test_letters_that_are_no_dna_are_named(tmp_path):
    X, y = letters()
    Shards.write(tmp_path / "s", [*X[:-1], b"ACGTACGTACGTA"], shards=3)
    spoil_last_letter(tmp_path / "s")
    shards = Shards.open(tmp_path / "s")
    with pytest.raises(ValueError, match=r"shard-00002.*'X'|'X'.*shard-00002"):
        motif_learner(Motif(width=5)).fit(shards, y)
    with pytest.raises(ValueError, match="letters"):
        LatentSVM(Candidates()).fit(shards, y)
    with pytest.raises(CapabilityError, match="MotifSites"):
        motif_learner(MotifSites(width=5)).fit(shards, y)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (["ACGT", "hull and Hut"], "'l'"),
        (np.array(["ACGT", "ACЖ"]), "'Ж'"),
        ([b"ACGT", b"A?"], r"'\?'"),
        (Ragged(np.array([65, 3, 2], np.uint8), np.array([0, 1, 3])), r"'\\x03'"),
    ],
)
def test_text_that_is_no_dna_is_not_written(tmp_path, X, words):
    with pytest.raises(ValueError, match=words):
        Shards.write(tmp_path / "s", X, shards=2)
    assert not (tmp_path / "s").exists()
    with pytest.raises(ValueError, match=f"loader 1.*{words}"):
        Shards.open([lambda: ["ACGT"], lambda: X])


def test_letters_are_written_in_upper_case_with_t_for_u(tmp_path):
    shards = Shards.write(tmp_path / "s", ["acgu", "NACGT"], shards=2)
    assert shards.values[0:9].tobytes() == b"ACGTNACGT"


def test_shards_of_another_kind_are_named_with_their_article(tmp_path):
    for kind, X in (("bags", bags()[0]), ("a table", table()[0])):
        with pytest.raises(ValueError, match=kind):
            Motif(width=5).read(Shards.write(tmp_path / kind, X))


def test_views_that_find_no_room_name_their_folder(tmp_path, monkeypatch):
    resource = pytest.importorskip("resource", reason="files have no limit here")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(OSError, match="TMPDIR") as caught:
            spool_views(Table([np.zeros((40, 50))]), lambda rows, first: np.repeat(rows[:, None], 3, axis=1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert str(tmp_path) in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_transforms_that_need_memory_say_so_first(tmp_path):
    X, y = images()
    shards = Shards.write(tmp_path / "s", X)
    with pytest.raises(CapabilityError, match="blocks='class'"):
        LatentSVM(Transforms(rotations(-90, 90, 3), blocks="class and state")).fit(shards, y)


@pytest.mark.parametrize("name", ["candidates", "chain with columns of its own", "motif on both strands"])
def test_a_fit_on_shards_has_the_digest_of_one_in_memory(tmp_path, name):
    make, learner = EXAMPLES[name]
    X, y = make()
    problem = learner().problem
    shards = Shards.open(loaders(X, [5]), spool=tmp_path / "s")
    schema = problem.schema(X, y)
    assert problem.bind(X, y, schema).digest() == problem.bind(shards, y, schema).digest()
