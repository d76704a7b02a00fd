"""`fit` and `predict` on a Dask cluster."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeVar

import numpy as np

from tacit.dask.oracle import RemoteShards
from tacit.dask.sources import Description, Source, describe, read_sources
from tacit.data.parameters import shorten
from tacit.data.ragged import Ragged
from tacit.learners.learner import Learner
from tacit.oracle import CapabilityError
from tacit.solvers import FrankWolfe, Subgradient

L = TypeVar("L", bound=Learner)


def fit(model: L, X: Any, y: Any, *, hidden: Any = None, sample_weight: Any = None, client: Any = None) -> L:
    """Fit a learner on samples that are spread over the workers of a Dask cluster; returns the learner itself.

    Every worker keeps the features of some samples; labels stay here. In every round weights go out, and outputs and
    sums of features come back. The result is the same to the bit as that of ``model.fit`` in memory, for any number of
    workers and shards. A shard whose worker is lost is loaded again elsewhere, and the fit goes on.

    Parameters
    ----------
    model : a learner, such as `tacit.LatentSVM` with `tacit.solvers.Bundle` or `tacit.HiddenCRF`, with a problem that
        takes shards: Candidates, Multiclass, Chain, Motif or Transforms
    X : a folder of shards that every worker sees (`tacit.Ragged.to_shards`); a ``dask.array`` or ``dask.dataframe``
        with one row per sample; a ``dask.bag`` of bags; or a list of delayed parts or of functions, each of which
        returns the samples of one shard
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
            f"{who} asks for single samples, which are on the workers; use a learner such as LatentSVM with Bundle(), "
            "or fit on one machine: model.fit(tacit.Shards.open(folder), y)"
        )
    client = _find_client(client)
    sources = read_sources(X)
    parts = client.gather(client.map(describe, sources, look=model.problem.describe_rows, pure=False))
    found = [_described(part) for part in parts]
    for source, part in zip(sources, found, strict=True):
        if part[:3] != found[0][:3] or (part.boxes is None) != (found[0].boxes is None):
            raise ValueError(
                f"{source.name} holds {_in_words(part)}, {sources[0].name} {_in_words(found[0])}; make them alike"
            )
    shards = RemoteShards(client, sources, found)
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


def _described(part: Description | str) -> Description:
    if isinstance(part, str):
        raise ValueError(part)
    return part


def _in_words(part: Description) -> str:
    return f"{part.kind} of {part.width} × {np.dtype(part.dtype)}{'' if part.boxes is None else ' with boxes'}"


def _here(values: Any) -> Any:
    """A Dask collection, computed; anything else as it is."""
    return values.compute() if hasattr(values, "__dask_graph__") else values
