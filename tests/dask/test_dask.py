"""Fits on a Dask cluster: the same bits as in memory, whatever happens to the workers."""

import dataclasses
import itertools
import os
import pickle
import signal

import numpy as np
import pytest

from tacit import (
    GroupNormSVM,
    HiddenCRF,
    IterativeLatentSVM,
    LatentPerceptron,
    LatentSVM,
    MinEntropySVM,
    Ragged,
    SelfPaced,
    Shards,
    StructuredSVM,
)
from tacit.datasets import planted_motif
from tacit.dna import sequences
from tacit.dna.sequences import orient, read_sequences
from tacit.oracle import CapabilityError
from tacit.problems import Candidates, Chain, Motif, Multiclass, Regions, Transforms
from tacit.problems.views import sum_moments
from tacit.runtime.blocks import smallest_blocks
from tacit.solvers import Bundle, Subgradient

pytest.importorskip("distributed")
import dask
import dask.array
import dask.bag
from distributed import Client, LocalCluster

import tacit.dask
from tacit.dask import fitting, sources
from tacit.dask.actors import Actors, Answer, ShardActor, Span, is_nannied
from tacit.dask.fitting import RemoteTable

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def make_bags(n=36, d=5, dtype="float64"):
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 5, n)
    y = np.arange(n) % 3
    values = rng.standard_normal((sizes.sum(), d)).astype(dtype)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    values[offsets[:-1], y] += 2
    return Ragged(values, offsets), np.array(["ant", "bee", "cat"])[y]


def loaders(X, cuts):
    return [lambda a=a, b=b: X[a:b] for a, b in itertools.pairwise([0, *cuts, len(X)])]


def same(a, b):
    assert np.array_equal(a.coef_, b.coef_)
    assert a.objective_ == b.objective_
    assert a.hidden_ is None or np.array_equal(a.hidden_, b.hidden_)


def latent(**more):
    return LatentSVM(Candidates(), **{"C": 3, "max_iter": 3, "max_inner": 12, **more})


@pytest.mark.parametrize(("dtype", "cuts"), [("float64", []), ("float32", [13]), ("float32", [1, 2, 29])], ids=str)
def test_workers_and_cuts_change_no_bit(client, tmp_path, dtype, cuts):
    bags, y = make_bags(dtype=dtype)
    with smallest_blocks():
        memory = latent(n_jobs=2).fit(bags, y)
        same(memory, tacit.dask.fit(latent(), loaders(bags, cuts), y, client=client))
        same(memory, tacit.dask.fit(latent(), bags.to_shards(tmp_path / "s", len(cuts) + 1).folder, y))


@pytest.mark.parametrize(
    "more",
    [
        {"pace": SelfPaced()},
        {"init": "smooth", "max_iter": 9},
        {"rescaling": "slack"},
        {"class_weight": "balanced", "solver": Bundle()},
    ],
    ids=str,
)
def test_every_way_to_learn_has_the_bits_of_memory(client, more):
    bags, y = make_bags()
    with smallest_blocks():
        same(latent(**more).fit(bags, y), tacit.dask.fit(latent(**more), loaders(bags, [9, 20]), y, client=client))


@pytest.mark.parametrize(
    "learner",
    [
        lambda problem, **more: LatentSVM(problem, **more),
        lambda problem, **more: GroupNormSVM(problem, **more),
        lambda problem, **more: IterativeLatentSVM(problem, **more),
        lambda problem, **more: MinEntropySVM(problem, alpha=np.inf, **more),
    ],
    ids=["LatentSVM", "GroupNormSVM", "IterativeLatentSVM", "MinEntropySVM"],
)
def test_the_default_path_has_the_bits_of_memory(client, learner):
    bags, y = make_bags(n=20)
    with smallest_blocks():
        memory = learner(Candidates(), C=3, max_iter=8).fit(bags, y)
        same(memory, tacit.dask.fit(learner(Candidates(), C=3, max_iter=8), loaders(bags, [7]), y, client=client))


@pytest.mark.parametrize("learner", [HiddenCRF, MinEntropySVM, GroupNormSVM])
def test_learners_that_sum_over_outputs_and_norms_have_the_bits_of_memory(client, learner):
    bags, y = make_bags(n=20, dtype="float32")
    with smallest_blocks():
        memory = learner(Candidates(), max_iter=3).fit(bags, y)
        same(memory, tacit.dask.fit(learner(Candidates(), max_iter=3), loaders(bags, [7]), y, client=client))


def test_known_hidden_values_and_losses_on_them_reach_the_workers(client):
    bags, y = make_bags(n=24)
    hidden = np.where(np.arange(24) % 2, -1, 0)
    weight = np.arange(24) + 1.0
    with smallest_blocks():
        more = {"unknown_weight": 0.5}
        memory = latent(**more).fit(bags, y, hidden=hidden, sample_weight=weight)
        far = tacit.dask.fit(latent(**more), loaders(bags, [7]), y, hidden=hidden, sample_weight=weight, client=client)
        same(memory, far)
        model = IterativeLatentSVM(Candidates(loss="exact"), C=3, max_iter=4, max_inner=10)
        near = IterativeLatentSVM(**model.get_params(deep=False)).fit(bags, y)
        same(near, tacit.dask.fit(model, loaders(bags, [7]), y, client=client))


def test_a_round_is_one_question(client, monkeypatch):
    bags, y = make_bags()
    asked, ask = [], Actors.call
    monkeypatch.setattr(Actors, "call", lambda actors, questions: asked.append(1) or ask(actors, questions))
    model = StructuredSVM(Candidates(), C=100, tol=1e-6, max_iter=30)
    tacit.dask.fit(model, loaders(bags, [9]), y, hidden=np.zeros(36, int), client=client)
    assert len(asked) <= model.n_iter_ + 3


def test_workers_that_cannot_be_reached_are_asked_through_the_scheduler(client, monkeypatch):
    bags, y = make_bags(n=20)

    async def never(actors, homes):
        return False

    monkeypatch.setattr(Actors, "_reach", never)
    with smallest_blocks():
        same(latent().fit(bags, y), tacit.dask.fit(latent(), loaders(bags, [9]), y, client=client))


def test_a_step_that_asks_for_single_rows_says_what_to_do(client):
    rng = np.random.default_rng(0)
    offsets = np.arange(0, 41, 4)
    X, tags = (
        Ragged(rng.random((40, 3)), offsets),
        Ragged(np.where(rng.random(40) < 0.5, -1, np.arange(40) % 3), offsets),
    )
    with pytest.raises(CapabilityError, match="init='weights'"):
        tacit.dask.fit(LatentSVM(Chain()), loaders(X, [3]), tags, client=client)


def test_dask_collections(client):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)), np.arange(60) % 3
    X[np.arange(60), y] += 1
    memory = StructuredSVM(Multiclass(), C=10).fit(X, y)
    lazy = dask.array.from_array(X, chunks=(25, 2))
    model = tacit.dask.fit(StructuredSVM(Multiclass(), C=10), lazy, dask.array.from_array(y), client=client)
    same(memory, model)
    assert np.array_equal(tacit.dask.predict(model, lazy).compute(), memory.predict(X))
    bags, labels = make_bags()
    parts = dask.bag.from_sequence([bag.tolist() for bag in bags], npartitions=3)
    same(latent().fit(bags, labels), tacit.dask.fit(latent(), parts, labels, client=client))
    delayed = [dask.delayed(bags[:20]), dask.delayed(bags[20:])]
    model = tacit.dask.fit(latent(), delayed, labels, client=client)
    assert np.array_equal(np.concatenate(dask.compute(*tacit.dask.predict(model, delayed))), model.predict(bags))


def test_labels_of_arrays_of_strings_and_of_images(client):
    X, y, _ = planted_motif(20, 15, "TGACTCA", seed=0)
    model = LatentSVM(Motif(width=5), C=10, init="hidden", max_iter=2, max_inner=4, random_state=0).fit(X, y)
    lazy = dask.array.from_array(np.array(X), chunks=7)
    assert np.array_equal(tacit.dask.predict(model, lazy).compute(), model.predict(X))
    images, tags = np.random.default_rng(0).random((12, 2, 3)), np.arange(12) % 2
    model = LatentSVM(Transforms([np.negative, np.array]), C=10, max_iter=2).fit(images, tags)
    lazy = dask.array.from_array(images, chunks=(5, 1, 2))
    assert np.array_equal(tacit.dask.predict(model, lazy).compute(), model.predict(images))


def test_a_checkpoint_of_a_cluster_goes_on_in_memory(client, tmp_path):
    bags, y = make_bags()
    file = tmp_path / "checkpoint"
    stopped = latent(checkpoint=file, callbacks=[lambda line: line.iteration == 2])
    tacit.dask.fit(stopped, loaders(bags, [9]), y, client=client)
    same(latent(checkpoint=file, resume=True).fit(bags, y), latent().fit(bags, y))


def test_bad_input_is_refused_and_names_the_shard(client, tmp_path):
    bags, y = make_bags()
    with pytest.raises(ValueError, match="35"):
        tacit.dask.fit(latent(), loaders(bags, [9]), y[1:], client=client)
    with pytest.raises(ValueError, match="part 1 of X"):
        tacit.dask.fit(latent(), [lambda: bags, lambda: Ragged(np.ones((3, 2)), [0, 3])], y, client=client)
    with pytest.raises(ValueError, match="ZeroDivisionError"):
        tacit.dask.fit(latent(), [lambda: bags, lambda: 1 / 0], y, client=client)
    folder = bags.to_shards(tmp_path / "s", shards=2).folder
    values = np.load(folder / "shard-00001.values.npy")
    np.save(folder / "shard-00001.values.npy", values + 1)
    with pytest.raises(ValueError, match="shard-00001"):
        tacit.dask.fit(latent(), folder, y, client=client)
    (folder / "shard-00001.values.npy").unlink()
    with pytest.raises(ValueError, match="FileNotFoundError"):
        tacit.dask.fit(latent(), folder, y, client=client)


def test_a_folder_that_workers_do_not_see_is_named(client, tmp_path, monkeypatch):
    bags, y = make_bags()
    folder = bags.to_shards(tmp_path / "s", shards=2).folder
    read = sources.read_sources

    def read_here_alone(X):
        return [dataclasses.replace(source, folder=tmp_path / "elsewhere") for source in read(X)]

    monkeypatch.setattr(fitting, "read_sources", read_here_alone)
    with pytest.raises(ValueError, match="shard-00000"):
        tacit.dask.fit(latent(), folder, y, client=client)


def test_a_part_that_cannot_be_loaded_again_ends_the_fit(client):
    bags, y = make_bags()
    with pytest.raises(RuntimeError, match="part 0 of X"):
        tacit.dask.fit(
            latent(), [lambda: bags.map_rows(lambda rows: rows + np.random.default_rng().random())], y, client=client
        )
    bags.values[-1, 0] = np.nan
    with pytest.raises(ValueError, match="part 1 of X"):
        tacit.dask.fit(latent(), loaders(bags, [9]), y, client=client)


def test_sequences_that_are_no_dna_or_empty_are_named(client):
    model = LatentSVM(Motif(width=3, strands="both"), init="hidden", max_iter=1, random_state=0)
    codes = Ragged(np.arange(20, dtype=np.uint8) % 4, np.arange(0, 21, 5))  # bytes 0 to 3 are codes, not letters
    with pytest.raises(ValueError, match=r"part 0 of X .*position 0 of its sequence 0"):
        tacit.dask.fit(model, [lambda: codes[:2], lambda: codes[2:]], [0, 1, 0, 1], client=client)
    with pytest.raises(ValueError, match=r"part 1 of X .*position 2 of its sequence 1"):
        tacit.dask.fit(model, [lambda: ["ACGTA"], lambda: ["ACGTA", "AC?TA"]], [0, 1, 0], client=client)
    with pytest.raises(ValueError, match=r"part 1 of X .*sequence 1"):
        tacit.dask.fit(model, [lambda: ["ACGTA"], lambda: ["ACGTA", ""]], [0, 1, 0], client=client)


@pytest.mark.filterwarnings("error::RuntimeWarning")  # that a worker was lost
def test_an_error_of_a_function_of_the_user_is_told_and_loses_no_worker(client):
    X, y = np.random.default_rng(0).random((30, 4)), np.arange(30) % 2
    X[20, 1] = 3

    def refuse_large(rows):
        if rows.max() > 2:
            raise KeyError("too large")
        return rows

    model = LatentSVM(Transforms([np.array, refuse_large]), init="weights", max_iter=2, random_state=0)
    with pytest.raises(RuntimeError, match=r"could not answer for .*: KeyError: 'too large'"):
        tacit.dask.fit(model, loaders(X, [15]), y, client=client)


def test_a_question_that_cannot_be_read_is_answered_by_an_error():
    rows = np.ones((2, 3))
    source = sources.LoadedSource(lambda: rows, "part 0 of X")
    actor = ShardActor([Span(source, 0, 2, sources.walk(rows), None)])
    answer = Answer(*pickle.loads(actor.answer(b"no pickle")))
    assert answer.status == "error"
    assert "UnpicklingError" in answer.value


def test_functions_of_the_user_see_samples_alone(client):
    X, y = np.random.default_rng(0).random((30, 4)) + 0.1, np.arange(30) % 2

    def shorten(rows):
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        assert length.all(), "a row of zeros, which X does not have"
        return rows / length

    model = LatentSVM(Transforms([np.array, shorten]), init="weights", max_iter=2, max_inner=5, random_state=0)
    memory = LatentSVM(**model.get_params(deep=False)).fit(X, y)
    same(memory, tacit.dask.fit(model, loaders(X, [11]), y, client=client))


def test_a_file_that_changes_while_it_is_read_is_compared_again(tmp_path):
    folder = Shards.write(tmp_path / "s", np.ones((6, 2)), shards=1).folder

    class Touched(sources.FolderSource):
        def open(self):
            piece = super().open()
            os.utime(self.folder / "shard-00000.values.npy", ns=(1, 1))
            return piece

    source = Touched(folder, 0, "shard shard-00000")
    before = source.stamp()
    assert sources.describe(source).stamp == before != source.stamp()


def test_sums_of_products_load_every_part_once_and_have_the_bits_of_memory(client, tmp_path):
    X = np.random.default_rng(0).standard_normal((5000, 3))
    cuts, size = [2600, 4700], 256
    log = tmp_path / "log"

    def load(first, last):
        with log.open("a") as file:
            file.write(f"{first}\n")
        return X[first:last]

    parts = [lambda a=a, b=b: load(a, b) for a, b in itertools.pairwise([0, *cuts, len(X)])]
    read = sources.read_sources(parts)
    table = RemoteTable(client, read, [sources.describe(part) for part in read])
    log.unlink()
    found = list(table.moments(size, X[0]))
    expected = [sum_moments(X[first : first + size], X[0]) for first in range(0, len(X), size)]
    assert len(found) == len(expected)
    assert all(np.array_equal(a.products, b.products) for a, b in zip(found, expected, strict=True))
    assert all(np.array_equal(a.total, b.total) for a, b in zip(found, expected, strict=True))
    assert len(log.read_text().split()) == 3 + 2 * len(cuts)  # once each, and for the sum at each cut both its parts


def test_strands_are_compared_in_blocks_and_only_where_both_count(monkeypatch):
    X, _, _ = planted_motif(20, 15, "TGACTCA", seed=0)
    monkeypatch.setattr(sequences, "LETTERS_AT_A_TIME", 40)
    source = sources.LoadedSource(lambda: X, "part 0 of X")
    assert sources.describe(source, Motif(width=7).describe_rows).facts is None
    flipped = orient(read_sequences(X))[1]
    assert flipped.any()
    assert np.array_equal(sources.describe(source, Motif(width=7, strands="both").describe_rows).facts, flipped)


def test_a_worker_in_the_process_of_the_user_leaves_its_allocator_alone(client):
    assert not client.submit(is_nannied).result()
    assert not is_nannied()


def test_what_cannot_be_sharded_says_so_before_any_work(client):
    def never():
        raise AssertionError("the data were read")

    with pytest.raises(CapabilityError, match="Regions"):
        tacit.dask.fit(StructuredSVM(Regions()), [never], [[0]], client=client)
    with pytest.raises(CapabilityError, match="Subgradient"):
        tacit.dask.fit(latent(solver=Subgradient()), [never], [0], client=client)
    with pytest.raises(CapabilityError, match="LatentPerceptron"):
        tacit.dask.fit(LatentPerceptron(Candidates()), [never], [0], client=client)
    with pytest.raises(TypeError, match="dask"):
        tacit.dask.fit(latent(), np.ones((3, 2)), [0, 1, 0], client=client)


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_killed_workers_change_no_bit(tmp_path, workers):
    bags, y = make_bags()
    folder = bags.to_shards(tmp_path / "s", shards=3).folder
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
        smallest_blocks(),
    ):
        assert client.submit(is_nannied).result(timeout=60)
        doomed = list(client.run(os.getpid).values())[:1]

        def kill(line):
            while doomed:
                os.kill(doomed.pop(), signal.SIGKILL)

        same(latent().fit(bags, y), tacit.dask.fit(latent(callbacks=[kill]), folder, y, client=client))
        assert not doomed
