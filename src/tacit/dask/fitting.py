"""`fit` and `predict` on a Dask cluster: codes, weights and sums of features travel, features never do."""

from __future__ import annotations

import pickle
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby, pairwise
from typing import Any, TypeVar, cast

import numpy as np

from tacit.dask.actors import Actors, Answer, Question, Span, TaskPart, moments_of
from tacit.dask.sources import Description, Source, describe, read_sources
from tacit.data.arrays import Array, combine_crc32
from tacit.data.parameters import shorten
from tacit.data.ragged import Ragged
from tacit.data.shard_folder import Manifest, say_kind
from tacit.data.shards import Shards
from tacit.data.table import Table
from tacit.learners.learner import Learner
from tacit.oracle import Assignment, CapabilityError, Oracle, code_offsets
from tacit.oracle.capabilities import LivesOnWorkers
from tacit.oracle.sharing import Batch, add_in_order, join_arrays
from tacit.problems.views import Moments
from tacit.runtime.blocks import BlockOracle, RowBlocks, block_cuts
from tacit.solvers import FrankWolfe, Subgradient

L = TypeVar("L", bound=Learner)

MAX_MOMENTS_BYTES = 1 << 27
"""Bytes of sums of products that one task returns; a source with more rows than that is opened by several tasks."""

TASKS_PER_WORKER = 2
"""Tasks that are handed out ahead of the one whose sums are taken home next."""


def fit(model: L, X: Any, y: Any, *, hidden: Any = None, sample_weight: Any = None, client: Any = None) -> L:
    """Fit a learner on samples that are spread over the workers of a Dask cluster; returns the learner itself.

    Every worker keeps the features of some samples; labels stay here. In every round weights go out, and outputs and
    sums of features come back. The result is the same to the bit as that of ``model.fit`` in memory, for any number of
    workers and shards. A shard whose worker is lost is loaded again elsewhere, and the fit goes on.

    Parameters
    ----------
    model : a learner, such as `tacit.LatentSVM` with `tacit.solvers.Bundle` or `tacit.HiddenCRF`, with a problem that
        takes shards, such as `tacit.problems.Candidates`
    X : a folder of shards that every worker can read (`tacit.Ragged.to_shards`), or a Dask collection: a ``dask.array``
        or ``dask.dataframe`` with one row per sample, or a ``dask.bag`` of bags. A list of delayed parts or of
        functions works too; each returns the samples of one shard
    y, hidden, sample_weight : as in ``model.fit``, in memory; Dask collections of them are computed
    client : a ``distributed.Client``; None for the one that was made last
    """
    if not isinstance(model, Learner):
        raise TypeError(f"model must be a learner such as tacit.LatentSVM(...), got {shorten(model)}")
    if not model.problem.takes_shards:
        model.problem.refuse_shards("fit it in memory: model.fit(X, y)")
    solver = getattr(model, "solver", None)
    if model.asks_for_rows or isinstance(solver, FrankWolfe | Subgradient):
        who = type(model).__name__ if model.asks_for_rows else f"solver={solver!r}"
        raise CapabilityError(
            f"{who} needs single samples, which are on the workers; use a learner such as LatentSVM with Bundle(), "
            "or fit on one machine: model.fit(tacit.Shards.open(folder), y)"
        )
    client = _find_client(client)
    sources = read_sources(X)
    parts = client.gather(client.map(describe, sources, look=model.problem.describe_rows, pure=False))
    for part in parts:
        if isinstance(part, str):
            raise ValueError(part)
    kinds = [(*part[:3], part.boxes is not None) for part in parts]
    for source, kind in zip(sources, kinds, strict=True):
        if kind != kinds[0]:
            raise ValueError(
                f"{source.name} holds {say_kind(kind)}, {sources[0].name} {say_kind(kinds[0])}; make them alike"
            )
    shards = RemoteShards(client, sources, parts)
    try:
        return model.fit(shards, _here(y), hidden=_here(hidden), sample_weight=_here(sample_weight))  # type: ignore[no-any-return]
    finally:
        if shards.table.actors is not None:
            shards.table.actors.close()


def predict(model: Any, X: Any) -> Any:
    """The labels of a Dask collection, lazily: a ``dask.array`` from a ``dask.array``, a list of delayed from parts."""
    import dask
    import dask.array

    if isinstance(X, dask.array.Array):
        inner = range(1, X.ndim)  # none where samples are strings
        table = X.rechunk(dict.fromkeys(inner, -1))
        labels: Any = table.map_blocks(model.predict, drop_axis=list(inner), dtype=model.classes_.dtype)
        return labels
    return [dask.delayed(partial(_predict_shard, model, source), pure=False)() for source in read_sources(X)]


def _predict_shard(model: Any, source: Source) -> Any:
    values, offsets, boxes = source.open()
    rows = values if isinstance(values, np.ndarray) else np.array(values.rows)
    if rows.dtype == np.uint8:
        return model.predict(Ragged(rows.ravel(), offsets))
    return model.predict(rows if offsets is None else Ragged(rows, offsets, boxes))


def _find_client(client: Any) -> Any:
    try:
        from distributed import Client, get_client
    except ImportError as error:
        raise ImportError("tacit.dask needs Dask: pip install 'tacit[dask]'") from error
    if client is None:
        try:
            client = get_client()
        except ValueError as error:
            raise ValueError("there is no Dask client; make one: client = distributed.Client()") from error
    if not isinstance(client, Client):
        raise TypeError(f"client must be a distributed.Client, got {shorten(client)}")
    return client


def _here(values: Any) -> Any:
    """A Dask collection, computed; anything else as it is."""
    return values.compute() if hasattr(values, "__dask_graph__") else values


class RemoteShards(Shards):
    """Shards whose rows are on workers, described by these."""

    def __init__(self, client: Any, sources: Sequence[Source], found: Sequence[Description]) -> None:
        first = found[0]
        self.manifest = Manifest(first.kind, first.dtype, first.width, ())
        self.table = RemoteTable(client, sources, found)
        self.values = self.table
        lengths = [np.ones(part.rows, np.int64) if part.lengths is None else part.lengths for part in found]
        self.offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
        boxes = [part.boxes for part in found if part.boxes is not None]
        self.__dict__["boxes"] = np.concatenate(boxes) if boxes else None
        facts = [part.facts for part in found if part.facts is not None]
        self.facts = np.concatenate(facts) if facts else None

    is_here = False

    def verify(self) -> None:
        """The workers have compared and checked the rows already."""


class RemoteTable(Table):
    """The shape of a table whose rows are on workers."""

    def __init__(self, client: Any, sources: Sequence[Source], found: Sequence[Description]) -> None:
        self._client, self._sources, self._found = client, sources, found
        self._releases = False  # there is nothing here
        self._starts = np.concatenate([[0], np.cumsum([part.rows for part in found])]).astype(np.int64)
        self.dtype = np.dtype(found[0].dtype)
        self.shape = int(self._starts[-1]), found[0].width
        self.actors: Actors | None = None
        self.cuts: Array = np.zeros(0, np.int64)

    def __getitem__(self, key: Any) -> Array:
        raise CapabilityError(
            "this step needs single rows, which are on the workers; use solver=Bundle(), init='weights' and "
            "unknown_weight=1.0, or fit on one machine: model.fit(tacit.Shards.open(folder), y)"
        )

    @property
    def first_row(self) -> Array:
        return np.concatenate([part.first_row for part in self._found])[:1]

    def add_to_checksum(self, total: int) -> int:
        for part in self._found:
            total = combine_crc32(total, part.crc, part.rows * part.width * self.dtype.itemsize)
        return total

    def distribute(self, oracle: Oracle) -> Oracle:
        """The oracle of all samples, answered by the actors; these are built at the first call."""
        if self.actors is None:
            blocks = np.array(block_cuts(oracle, oracle.n_samples))
            n_actors = min(len(self._client.scheduler_info(n_workers=-1)["workers"]) or 1, blocks.size - 1)
            samples: Any = oracle
            offsets = getattr(samples, "row_offsets", samples.offsets)
            states = offsets[blocks]
            ideal = np.linspace(0, states[-1], n_actors + 1)
            self.cuts = np.unique(blocks[np.abs(states[:, None] - ideal).argmin(axis=0)])
            rows, size = offsets[self.cuts].tolist(), getattr(samples, "row_alignment", 1)
            wanted = [(a // size * size, min(-(-b // size) * size, len(self))) for a, b in pairwise(rows)]
            self.actors = Actors(self._client, [self._spans(a, b) for a, b in wanted])
        return cast(Oracle, Distributed(oracle, self))

    def moments(self, size: int, origin: Array) -> Iterator[Moments]:
        """The moments of so many rows at a time, summed up by the workers; see `principal_components`.

        A task opens a source once for all sums of its rows. Sums are taken home in order while the next tasks run, so
        that few are held at a time.
        """
        sums = [self._spans(first, min(first + size, len(self))) for first in range(0, len(self), size)]
        at_once = max(1, MAX_MOMENTS_BYTES // (8 * self.shape[1] * (self.shape[1] + 1)))
        tasks: list[list[list[Span]]] = []
        for _, of_source in groupby(sums, key=lambda spans: [span.source.name for span in spans]):
            own = list(of_source)
            tasks += [own[first : first + at_once] for first in range(0, len(own), at_once)]
        ahead = TASKS_PER_WORKER * len(self._client.scheduler_info(n_workers=-1)["workers"])
        waiting: deque[Any] = deque()
        for task in tasks:
            waiting.append(self._client.submit(moments_of, task, origin, pure=False))
            if len(waiting) > ahead:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()

    def _spans(self, first: int, last: int) -> list[Span]:
        """Which rows of which sources these are."""
        return [
            Span(source, max(first, start) - start, min(last, stop) - start, part.crc, part.stamp)
            for source, part, (start, stop) in zip(
                self._sources, self._found, pairwise(self._starts.tolist()), strict=True
            )
            if max(first, start) < min(last, stop)
        ]


class Distributed(BlockOracle):
    """An oracle whose blocks of rows are answered by actors; one call per actor and question.

    Parameters
    ----------
    oracle : all but the rows
    table : the actors, and where their samples begin
    """

    def __init__(self, oracle: Oracle, table: RemoteTable) -> None:
        super().__init__(oracle)
        self.innermost = self  # it offers more than the oracle does: `tangent`, `slopes`
        self._table = table
        self._name = uuid.uuid4().hex
        self._sent: set[str] = set()  # names that all workers were told
        self._tasks: list[tuple[Array, Array, str]] = []  # the latest weights and targets, by the name workers know

    def _wrap(self, oracle: Oracle) -> Oracle:
        return cast(Oracle, Distributed(oracle, self._table))

    def _answer(self, name: str, batch: Batch, *positional: Any, **named: Any) -> Any:
        if name == "loss":  # labels are here
            return self.oracle.loss(*positional, **named)
        call = RowBlocks(self.oracle, batch, positional, named)
        if call.n != self.n_samples or not (call.rows is None or isinstance(call.rows, slice)):
            self._table[0]  # says what to do
        per_block = {"rows", *batch.codes, *batch.per_row}
        blocks = list(call.cut(self._cuts))
        shared = {key: value for key, value in blocks[0].items() if key not in per_block}
        own = [{key: value for key, value in block.items() if key in per_block} for block in blocks]
        return batch.join(self._ask([self._name], name, shared, own))

    def tangent(self, w: Array, weights: Array, target: Array, rescaling: str) -> tuple[Assignment, Array]:
        """See `tacit.oracle.capabilities.FusesPlanes`."""
        names = [self._name, self._name_task(weights, target)]
        blocks = [{"rows": slice(a, b)} for a, b in pairwise(self._cuts)]
        code, value, best, own = zip(
            *self._ask(names, "tangent", {"w": w, "rescaling": rescaling}, blocks), strict=True
        )
        return Assignment(join_arrays(code), join_arrays(value)), _difference(best, own)

    def slopes(self, codes: Sequence[Array], weights: Array, target: Array, rescaling: str) -> list[Array]:
        """See `tacit.oracle.capabilities.FusesPlanes`."""
        names = [self._name, self._name_task(weights, target)]
        table, cuts = np.array(codes), self._cuts
        blocks = [
            {"rows": slice(a, b), "codes": table[:, start:stop]}
            for (a, b), (start, stop) in zip(pairwise(cuts), pairwise(self._code_positions(cuts)), strict=True)
        ]
        parts = self._ask(names, "slopes", {"rescaling": rescaling}, blocks)
        return [_difference([part[k][0] for part in parts], [part[k][1] for part in parts]) for k in range(len(codes))]

    @property
    def _cuts(self) -> list[int]:
        return block_cuts(self.oracle, self.n_samples)

    def _name_task(self, weights: Array, target: Array) -> str:
        for known, aim, name in self._tasks:
            if known is weights and aim is target:
                return name
        self._tasks = [*self._tasks[-3:], (weights, target, uuid.uuid4().hex)]
        return self._tasks[-1][2]

    def _ask(self, names: list[str], method: str, shared: Any, blocks: list[dict[str, Any]]) -> list[Any]:
        """The answers for all blocks, in order."""
        actors, cuts = self._table.actors, self._table.cuts
        assert actors is not None
        from distributed.protocol.pickle import dumps  # functions of users are sent by value

        firsts = [block["rows"].start for block in blocks]
        calls: list[list[dict[str, Any]]] = [[] for _ in cuts[:-1]]
        for first, block in zip(firsts, blocks, strict=True):
            k = int(np.searchsorted(cuts, first, side="right")) - 1
            rows = block["rows"]
            calls[k].append({**block, "rows": slice(rows.start - int(cuts[k]), rows.stop - int(cuts[k]))})
        new = [name for name in names if name not in self._sent]
        self._sent.update(new)
        sent = [{name: self._part(name, k) for name in new} for k in range(len(calls))]
        answers: dict[int, Answer] = {}
        waiting = list(range(len(calls)))
        while waiting:  # a worker that does not know a name, because it is new, gets what it stands for
            asked = {k: dumps(tuple(Question(names, method, shared, calls[k], sent[k]))) for k in waiting}
            answers |= {k: Answer(*pickle.loads(answer)) for k, answer in actors.call(asked).items()}
            waiting = [k for k in waiting if answers[k].status == "unknown"]
            for k in waiting:
                sent[k] = {name: self._part(name, k) for name in names}
        for k, spans in enumerate(actors.shards):
            if answers[k].status != "ok":
                shard = ", ".join(span.source.name for span in spans)
                raise RuntimeError(f"a worker could not answer for {shard}: {answers[k].value}")
        return [part for k in range(len(calls)) for part in answers[k].value]

    def _part(self, name: str, k: int) -> Any:
        """What a name stands for, of the samples of one actor."""
        first, last = int(self._table.cuts[k]), int(self._table.cuts[k + 1])
        if name == self._name:
            return cast(LivesOnWorkers, self.oracle).part(first, last)
        weights, target, _ = next(task for task in self._tasks if task[2] == name)
        start, stop = self._code_positions([first, last])
        return TaskPart(weights[first:last], target[start:stop], target.shape == weights.shape, {})

    def _code_positions(self, samples: Sequence[int]) -> list[int]:
        """Where the codes of these samples begin."""
        offsets = code_offsets(self.oracle)
        return list(samples) if offsets is None else [int(offset) for offset in offsets[list(samples)]]


def _difference(best: Sequence[Array], own: Sequence[Array]) -> Array:
    """A gradient from the sums of blocks; those of targets are empty where blocks were summed as differences."""
    return add_in_order(best) - add_in_order(own) if own[0].size else add_in_order(best)
