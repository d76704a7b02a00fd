"""An input seen through one of a few transformations: which one is hidden."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA

from tacit.data.arrays import Array, first_non_finite, is_table
from tacit.data.labels import read_classes
from tacit.data.parameters import ArrayError, even_table, plain_array, shorten
from tacit.data.shards import Shards, read_table_shards
from tacit.data.specs import choice, estimator, optional, parameter, whole
from tacit.oracle import CapabilityError, Example, HiddenLoss, PairLoss, Schema
from tacit.oracle.contracts import KnownHidden
from tacit.oracle.known_hidden import read_hidden
from tacit.problems.candidates import exact_loss
from tacit.problems.classes.blocks import ClassBlocks, check_blocks
from tacit.problems.classes.problem import ClassProblem
from tacit.problems.classes.state_blocks import KeptStates, StateBlocks
from tacit.problems.rotation import Rotations
from tacit.problems.views import SAMPLES_AT_A_TIME, RemoteViews, principal_components, sample_blocks, spool_views
from tacit.runtime.blocks import one_blas_thread

FEW_SAMPLES = 200
"""Samples below which principal components are found by a singular value decomposition."""


@estimator
class Transforms(ClassProblem):
    """Inputs that were rotated, shifted or changed in one of T known ways; ``s(y, h) = w_y·φ(x, h) + b_y``.

    ``φ(x, h)`` is the input under transformation h, reduced to `n_components` principal components. The hidden value is
    the number of the transformation; ``schema_.facts["states"]`` has their values, such as angles. All T views of
    every sample are kept, reduced: O(n·T·K·components) per pass and as much memory, or a temporary file for
    `tacit.Shards`. Rotations are linear: rotating and reducing is one matrix product, and no rotated image is made.
    Images to rotate are (n, height, width), colours in a last dimension, or flat rows (see `rotations`).

    The principal components are those of the training inputs *as they come*, untransformed, in double precision; the
    mean is taken off. Inputs are not scaled: divide pixels yourself, since C means nothing without their scale.

    Parameters
    ----------
    transforms : `rotations(-60, 60, 11)`, or a list of functions of the whole input, ``(n, ...) → (n, ...)``, one per
        state (a model with functions of yours is restored by ``tacit.load(path, problem=...)``)
    n_components : principal components to keep; None for the transformed input itself
    blocks : "class" for one weight block per class, shared by all states; "class and state" for one for each pair
    loss : "0/1", a cost matrix, or a function ``(true label, true state, label, state)`` → loss. "exact" costs 1 unless
        both label and state are right. "angle" costs 1 under a wrong label; under the right one, it costs the
        difference of the angles as a share of the largest
    classes : all labels, where the training data may lack some; None takes those of y, sorted
    fit_intercept : whether every block has an intercept, penalised like the other weights
    kept : (K, T) booleans, which states each class has, with one block for each pair; None for all.
        `tacit.GroupNormSVM.prune` makes such problems
    null : whether classes have a null state: score 0, hidden value −1. False, True, or a boolean for each class

    >>> from sklearn.datasets import load_digits
    >>> from tacit import LatentSVM
    >>> from tacit.problems import rotations
    >>> digits = load_digits()
    >>> some = digits.target < 4
    >>> problem = Transforms(rotations(-30, 30, 5), n_components=10)
    >>> model = LatentSVM(problem, C=100).fit(digits.images[some] / 16, digits.target[some])
    >>> model.predict(digits.images[:4] / 16), model.schema_.facts["states"][model.hidden_[:4]].shape
    (array([0, 1, 2, 3]), (4,))
    """

    hidden_losses = ("exact", "angle")
    takes_shards = True
    has_smooth_start = True

    transforms: Any
    n_components: int | None = parameter(optional(whole()), default=None)
    blocks: str = parameter(choice("class", "class and state"), default="class")
    loss: Any = "0/1"
    classes: Any = None
    fit_intercept: bool = True
    kept: Any = None
    null: Any = False

    @property
    def holds_functions(self) -> bool:
        """Whether a file of a model lacks a part of the problem, because it is the user's function."""
        return not isinstance(self.transforms, Rotations) or callable(self.loss)

    def check(self) -> None:
        super().check()
        null = even_table("null", self.null)
        if null.dtype != bool or (null.any() and self.kept is None):
            raise ValueError(f"null must be False; with kept=, True or a boolean per class; got {shorten(self.null)}")
        if self.kept is not None and self.blocks != "class and state":
            raise ValueError("kept= needs blocks='class and state': it says which states each class has")
        if isinstance(self.transforms, Rotations):
            self.transforms.check()
            return
        if isinstance(self.loss, str) and self.loss == "angle":
            raise ValueError("loss='angle' compares angles, which only rotations(...) have; use 'exact' or a function")
        if (
            not isinstance(self.transforms, Sequence)
            or not self.transforms
            or not all(callable(function) for function in self.transforms)
        ):
            raise TypeError(f"transforms must be rotations(...) or a list of functions, got {shorten(self.transforms)}")

    def check_schema(self, schema: Schema) -> None:
        super().check_schema(schema)
        facts, k, has_angles = schema.facts, len(schema.classes), isinstance(self.transforms, Rotations)
        parts: dict[str, Any] = {name: facts.get(name) for name in ("states", "shape", "components", "mean")}
        states, shape, components, mean = parts.values()
        if not is_table(states, 1, "iuf") or len(states) != len(self._states()):
            raise ValueError(f"the fit had the states {shorten(states)}, not {len(self._states())} of them: fit again")
        if not is_table(shape, 1, "iu") or shape.min(initial=0) < 0 or math.prod(shape.tolist()) != schema.n_features:
            raise ValueError(f"the shape {shorten(shape)} does not fit {schema.n_features} features")
        width = schema.blocks.get("weights", (0,))[-1]
        if components is not None:
            fits = is_table(components, 2, "f") and is_table(mean, 1, "f") and mean.shape == components.shape[1:]
            if not fits or components.shape[0] != width or (has_angles and mean.size != schema.n_features):
                raise ValueError("the principal components of the schema do not fit its weights: fit again")
        elif has_angles and width != schema.n_features:
            raise ValueError(f"the weights have {width} numbers, images have {schema.n_features}: fit again")
        blocks = (k,) if self.blocks == "class" else (k, len(states))
        check_blocks(schema, {"weights": (*blocks, width)}, {"intercept": blocks})
        self.check_loss(schema.classes)
        if self.kept is not None:
            self._read_kept(k, len(states))

    def read(self, X: Any) -> Any:
        if isinstance(X, Shards):
            if self.blocks != "class":
                raise CapabilityError(
                    f"Transforms(blocks={shorten(self.blocks)}) cannot learn from shards; set blocks='class', "
                    "or load the samples: shards.in_memory()"
                )
            return read_table_shards(X)
        if sparse.issparse(X):
            raise TypeError("X must be dense, got a sparse matrix; call toarray() first")
        try:
            X = plain_array(X, "X")
        except ArrayError:
            raise
        except ValueError as error:
            shapes = [_shape(x) for x in X]
            other = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), 0)
            where = f" where input 0 has {shapes[0]}" if other else ""
            odd = f"input {other} has {shapes[other]}{where}"
            raise ValueError(f"inputs must have the same shape, but {odd}; crop, pad or scale them") from error
        if X.ndim < 2:
            raise ValueError(f"X must be images (n, height, width) or rows (n, d), got an array of shape {X.shape}")
        if len(X) == 0:
            raise ValueError("X has 0 samples, a minimum of 1 is required")
        if X.dtype.kind not in "biuf":
            raise ValueError(f"X must hold numbers, got {X.dtype}")
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        found = first_non_finite(X.reshape(len(X), -1))
        if found:
            raise ValueError(f"X contains NaN or infinity, in sample {found[0]}; drop it or fill the gap")
        return np.asarray(X)

    def schema(self, X: Any, y: Any) -> Schema:
        self.check()
        X = self.ensure_read(X)
        classes = read_classes(self.classes, y, len(X))
        self.check_loss(classes)
        table: Any = X.values if isinstance(X, Shards) else X
        shape = self._input_shape(table)
        facts: dict[str, Any] = {"states": self._states(), "shape": np.array(shape)}
        if self.n_components is not None:
            kept = int(self.n_components)
            if kept > min(len(X), math.prod(shape)):
                raise ValueError(
                    f"n_components={kept} exceeds {len(X)} samples or {math.prod(shape)} features; lower it"
                )
            if len(X) < FEW_SAMPLES and isinstance(X, Shards) and not X.is_here:
                raise CapabilityError(f"n_components= needs at least {FEW_SAMPLES} samples on workers, got {len(X)}")
            if len(X) < FEW_SAMPLES:
                with one_blas_thread:
                    pca = PCA(kept, svd_solver="full").fit(np.ascontiguousarray(_flat(table[0 : len(X)]), np.float64))
                mean, components = pca.mean_, pca.components_
            else:
                mean, components = principal_components(table if isinstance(X, Shards) else _flat(X), kept)
            facts |= {"mean": mean, "components": components}
        first = table.first_row if isinstance(X, Shards) else table[0:1]
        width = self._views(first.reshape(1, *shape), facts).shape[2]
        states = (len(facts["states"]),) if self.blocks == "class and state" else ()
        blocks: dict[str, tuple[int, ...]] = {"weights": (len(classes), *states, width)}
        if self.fit_intercept:
            blocks["intercept"] = (len(classes), *states)
        return Schema(classes, math.prod(shape), blocks, facts)

    def bind(self, X: Any, y: Any, schema: Schema, *, hidden: Any = None) -> ClassBlocks | StateBlocks:
        X = self.ensure_read(X)
        self.check()
        self.check_schema(schema)
        shape = tuple(schema.facts["shape"].tolist())
        if math.prod(X.shape[1:]) != schema.n_features or (len(X.shape) > 2 and X.shape[1:] != shape):
            raise ValueError(
                f"X has {math.prod(X.shape[1:])} features, of shape {X.shape[1:]}, but Transforms is expecting "
                f"{schema.n_features} features as input, of shape {shape}"
            )
        if isinstance(X, Shards):
            views_of = partial(self._views_of_rows, shape, schema.facts)
            offsets = np.arange(len(X) + 1) * len(self._states())
            supervision = self.read_supervision(X, y, schema, offsets, hidden)
            if not X.is_here:
                dtype = views_of(X.values.first_row).dtype
                return RemoteViews(X.values, views_of, dtype, schema, offsets, **supervision)
            return ClassBlocks(spool_views(X.values, views_of), schema, offsets, **supervision)
        blocks = [
            self._views_of_rows(shape, schema.facts, rows, k * SAMPLES_AT_A_TIME)
            for k, rows in enumerate(sample_blocks(X))
        ]
        views = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
        if self.kept is not None:
            kept, has_null = self._read_kept(len(schema.classes), views.shape[1])
            offsets = np.arange(len(X) + 1) * (views.shape[1] + bool(has_null.any()))
            supervision = self.read_supervision(X, y, schema, offsets, hidden)
            self._check_known(supervision, kept)
            return KeptStates(views, schema, offsets, kept, has_null, **supervision)
        offsets = np.arange(len(X) + 1) * views.shape[1]
        supervision = self.read_supervision(X, y, schema, offsets, hidden)
        if self.blocks == "class":
            return ClassBlocks(views.reshape(-1, views.shape[2]), schema, offsets, **supervision)
        return StateBlocks(views, schema, offsets, **supervision)

    def with_states(self, schema: Schema, w: Array, kept: Array, null: bool) -> tuple[Transforms, Schema, Array]:
        """The same problem, schema and weights with only some states, (K, T) booleans; see `kept` and `null`."""
        has_null = ~kept.all(axis=1) & null
        if self.kept is not None:
            kept, has_null = kept & self._read_kept(*kept.shape)[0], self._read_kept(*kept.shape)[1] | has_null
        used = np.flatnonzero(kept.any(axis=0))
        left = kept.any(axis=1) | has_null
        if not left.all():
            name = schema.classes[np.argmin(left)]
            raise ValueError(f"class {name} keeps none of its states: set drop_null=False, or raise C")
        used = used if used.size else np.zeros(1, dtype=np.int64)  # at least one, which scores 0
        has_angles = isinstance(self.transforms, Rotations)
        parts = [self.transforms.angles[t] if has_angles else self.transforms[t] for t in used]
        params = {**self.get_params(deep=False), "kept": kept[:, used], "null": has_null}
        problem = type(self)(**params | {"transforms": Rotations(tuple(parts)) if has_angles else parts})
        views = {
            name: block[:, used] * kept[:, used].reshape(-1, used.size, *[1] * (block.ndim - 2))
            for name, block in schema.views(w).items()
        }
        facts = {**schema.facts, "states": schema.facts["states"][used]}
        blocks = {name: block.shape for name, block in views.items()}
        small = Schema(schema.classes, schema.n_features, blocks, facts)
        weights = np.concatenate([block.ravel() for block in views.values()])
        return problem, small, weights

    def _read_kept(self, k: int, n_states: int) -> tuple[Array, Array]:
        """Which states each class has, and which classes have a null state."""
        kept = np.asarray(self.kept)
        if kept.shape != (k, n_states) or kept.dtype != bool:
            raise ValueError(f"kept must hold booleans, {k} classes × {n_states} states, got {shorten(self.kept)}")
        given: Any = np.asarray(self.null)
        has_null: Any = np.broadcast_to(given, k) if given.shape in ((), (k,)) else np.zeros(0)
        if has_null.shape != (k,):
            raise ValueError(f"null must hold a boolean for each of {k} classes, got {shorten(self.null)}")
        if not (kept.any(axis=1) | has_null).all():
            raise ValueError(
                f"kept leaves class {np.argmin(kept.any(axis=1))} without states; keep one, or set null=True"
            )
        return kept, has_null

    @staticmethod
    def _check_known(supervision: dict[str, Any], kept: Array) -> None:
        """Refuse a known hidden value that `kept` leaves out."""
        if "hidden" not in supervision or "labels" not in supervision:
            return
        states, labels = supervision["hidden"].states, supervision["labels"]
        own = np.flatnonzero((states >= 0) & (states < kept.shape[1]) & (labels < len(kept)))
        gone = own[~kept[labels[own], states[own]]]
        if gone.size:
            raise ValueError(f"hidden[{gone[0]}] is {states[gone[0]]}, a state that kept= leaves out for its class")

    def known_hidden(self, hidden: Any, offsets: Array) -> KnownHidden:
        return read_hidden(hidden, np.diff(offsets))

    def hidden_loss(self, X: Any, offsets: Array) -> PairLoss:
        if self.loss == "exact":
            return exact_loss(np.diff(offsets))
        states, size = np.asarray(self._states(), dtype=np.float64), int(offsets[1])
        away = np.abs(states[:, None] - states[None])
        table = np.ones((size, size))  # a null state is as far from all others as can be
        table[: states.size, : states.size] = away / max(float(away.max()), 1e-300)
        np.fill_diagonal(table, 0.0)
        return HiddenLoss(np.zeros(offsets.size - 1, np.int64), [table])

    def _input_shape(self, X: Array) -> tuple[int, ...]:
        return self.transforms.input_shape(X) if isinstance(self.transforms, Rotations) else X.shape[1:]

    def _states(self) -> Array:
        return self.transforms.states if isinstance(self.transforms, Rotations) else np.arange(len(self.transforms))

    def _views(self, X: Array, facts: Any, first: int = 0) -> Array:
        """(n, T, width): every input under every transformation, reduced; ``first`` is the number of the first one."""
        components, mean = facts.get("components"), facts.get("mean")
        if not isinstance(self.transforms, Rotations):
            return self._call_functions(X, components, mean, first)
        flat = X.reshape(len(X), -1)
        maps = self.transforms.maps(tuple(facts["shape"].tolist()))
        if components is None:
            return np.stack([np.asarray(flat @ one.astype(flat.dtype)) for one in maps], axis=1)
        reduced = np.hstack([np.asarray(one @ components.T) for one in maps])
        views = (flat @ reduced.astype(flat.dtype)).astype(np.float64).reshape(len(X), len(maps), -1)
        return np.asarray(views - components @ mean)

    def _views_of_rows(self, shape: tuple[int, ...], facts: Any, rows: Array, first: int = 0) -> Array:
        """The views of some rows; their bits depend neither on the threads of BLAS nor on the order in memory."""
        with one_blas_thread:
            return self._views(np.ascontiguousarray(rows).reshape(len(rows), *shape), facts, first)

    def _call_functions(self, X: Array, components: Array | None, mean: Array | None, first: int) -> Array:
        views = [_call_transform(function, X, t, first) for t, function in enumerate(self.transforms)]
        other = [t for t, view in enumerate(views) if view.shape != views[0].shape]
        if other:
            sizes = f"{views[other[0]].shape[1]} numbers per sample, transformation 0 returned {views[0].shape[1]}"
            raise ValueError(f"transformation {other[0]} returned {sizes}; all must return as many")
        table = np.stack(views, axis=1)
        if components is None:
            return table
        if table.shape[2] != components.shape[1]:
            sizes = f"{table.shape[2]} numbers per sample, inputs have {components.shape[1]}"
            raise ValueError(f"transformations returned {sizes}; use n_components=None, or keep the length")
        return np.asarray((table - mean) @ components.T)

    def example(self, rng: np.random.Generator) -> Example:
        classes = np.array(["d", "p", "q"] if self.classes is None else self.classes)
        n, T = int(rng.integers(4, 7)), len(self._states())
        X = rng.integers(-2, 3, (n, 2, 2)).astype(rng.choice(["float64", "float32"]))
        plain = self.specify(X, rng.integers(0, T, n), classes, rng)

        def joint_feature(x: Any, label: Any, h: Any) -> Array:
            view = self._plain_view(np.asarray(x, dtype=np.float64), max(int(h), 0))
            if self.blocks == "class":
                return plain.joint_feature([view], label, 0)
            if h == -1:
                size = len(classes) * T
                return np.zeros(size * view.size + (size if self.fit_intercept else 0))
            where = (classes.tolist().index(label), int(h))
            weights, intercept = np.zeros((len(classes), T, view.size)), np.zeros((len(classes), T))
            weights[where], intercept[where] = view, 1
            return np.concatenate([weights.ravel(), intercept.ravel()] if self.fit_intercept else [weights.ravel()])

        def outputs(x: Any) -> list[tuple[Any, Any]]:
            if self.kept is None:
                return [(label, h) for label in classes.tolist() for h in range(T)]
            kept, has_null = self._read_kept(len(classes), T)
            states = [[*np.flatnonzero(own), *([-1] if null else [])] for own, null in zip(kept, has_null, strict=True)]
            return [(label, int(h)) for label, own in zip(classes.tolist(), states, strict=True) for h in own]

        hidden = plain.hidden
        if self.kept is not None:
            rows = [self.kept[classes.tolist().index(label)] for label in plain.y]
            hidden = np.array([int(rng.choice(np.flatnonzero(own))) for own in rows])
        return plain._replace(outputs=outputs, joint_feature=joint_feature, hidden=hidden)

    def _plain_view(self, x: Array, h: int) -> Array:
        from scipy.ndimage import rotate

        if isinstance(self.transforms, Rotations):
            return np.asarray(rotate(x, self.transforms.angles[h], reshape=False, order=1)).ravel()
        return np.asarray(self.transforms[h](x[None])).ravel()

    @classmethod
    def variants(cls) -> list[Self]:
        quarters = Rotations((-90.0, 0.0, 90.0))
        kept = np.array([[True, False, True], [True, True, True], [False, True, False]])
        return [
            cls(quarters),
            cls(quarters, blocks="class and state"),
            cls(quarters, fit_intercept=False),
            cls(quarters, blocks="class and state", kept=kept, null=np.array([True, True, False])),
        ]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


def _call_transform(function: Callable[[Array], Any], X: Array, t: int, first: int) -> Array:
    view = np.asarray(function(X))
    if view.shape[:1] != (len(X),) or view.dtype.kind not in "biuf":
        found = f"{view.dtype} of shape {view.shape} for {len(X)} inputs"
        raise ValueError(f"transformation {t} returned {found}; it must return one row of numbers per input")
    view = view.reshape(len(X), -1).astype(np.float64)
    bad = first_non_finite(view)
    if bad:
        raise ValueError(f"transformation {t} returned NaN or infinity for sample {first + bad[0]}")
    return view


def _flat(X: Array) -> Array:
    return X.reshape(len(X), -1)


def _shape(x: Any) -> str:
    """The shape of one input, for a message."""
    try:
        return f"shape {np.shape(x)}"
    except ValueError:
        return "rows of several lengths"
