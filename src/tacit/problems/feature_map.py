"""Nonlinear features of the rows of another problem: kernels by landmarks or random features, principal components."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import linalg
from scipy.spatial.distance import pdist

from tacit.data.arrays import Array, is_table
from tacit.data.parameters import random_numbers, shorten
from tacit.data.ragged import Ragged
from tacit.data.specs import choice, either, estimator, instance, parameter, positive, switch, whole
from tacit.oracle import Example, Oracle, Problem, Schema
from tacit.problems.bags.problem import Bags
from tacit.problems.candidates import Candidates
from tacit.problems.chain.problem import Chain
from tacit.problems.multiclass import Multiclass

KERNELS = ("rbf", "fourier", "linear")

MAX_DRAWN, MAX_COMPARED = 50_000, 2000
"""Rows that features are learned from, and those among them whose distances are taken for γ."""

BLOCK_CELLS = 1 << 22
"""Similarities that are in memory at a time."""

MIN_EIGENVALUE = 1e-10
"""Directions whose share of the largest eigenvalue is below this are noise of rounding."""

GRAIN = 2.0**-24
"""Features are rounded to multiples of this: equal rows then have equal features, whatever rounding products have."""

PREFIX = "map_"
"""What the facts of a schema begin with that are those of the features."""


@estimator
class FeatureMap(Problem):
    """Another problem on new features of its rows: of samples, instances of a bag, windows, or tokens.

    With the RBF kernel ``exp(−γ‖x − z‖²)`` the score becomes a nonlinear function of a row, and every learner and
    solver works as before. Features are learned from the rows of the training data, without labels, and kept in
    `schema_`. Rows must be dense. O(rows · n_landmarks · (d + n_components)) per call of a learner.

    The features of "rbf" and "linear" are nested: those of a smaller `n_components` are the first ones of a larger.

    Parameters
    ----------
    problem : whose rows get other features, such as ``Candidates()`` or ``Chain()``
    kernel : "rbf" by similarities to landmarks (Nyström's method; Williams & Seeger 2001), in the order of the
        eigenvalues. "fourier" for random Fourier features of the same kernel (Rahimi & Recht 2007), which need no
        landmarks. "linear" for principal components
    gamma : γ of the kernel; "auto" is one over the median squared distance of rows
    n_components : number of features at most; fewer where landmarks or columns have no more directions
    n_landmarks : training rows that others are compared with, drawn at random
    scale : whether columns get mean 0 and standard deviation 1 before
    random_state : seed of landmarks and of Fourier features

    >>> from tacit import StructuredSVM
    >>> from tacit.problems import Multiclass
    >>> X, y = [[-2.0], [-1.0], [0.0], [1.0], [2.0]], ["far", "far", "near", "far", "far"]
    >>> StructuredSVM(Multiclass(), C=100).fit(X, y).score(X, y)
    0.8
    >>> StructuredSVM(FeatureMap(Multiclass()), C=100).fit(X, y).score(X, y)
    1.0
    """

    reads_once = True

    problem: Problem = parameter(instance(Problem, "a problem, such as Candidates()"))
    kernel: str = parameter(choice(*KERNELS), default="rbf")
    gamma: float | str = parameter(either("auto", positive), default="auto")
    n_components: int = parameter(whole(1, 100_000), default=200)
    n_landmarks: int = parameter(whole(1, 20_000), default=400)
    scale: bool = parameter(switch, default=True)
    random_state: Any = 0

    @property
    def takes_table(self) -> bool:  # type: ignore[override]
        return bool(self.problem.takes_table)

    @property
    def has_smooth_start(self) -> bool:  # type: ignore[override]
        return bool(self.problem.has_smooth_start)

    @property
    def has_marginals(self) -> bool:  # type: ignore[override]
        return bool(self.problem.has_marginals)

    @property
    def hidden_kinds(self) -> tuple[str, ...]:
        return tuple(self.problem.hidden_kinds)

    @property
    def holds_functions(self) -> bool:
        """Whether a file of a model lacks a part of the problem, because it is the user's function."""
        return bool(getattr(self.problem, "holds_functions", False))

    def __sklearn_tags__(self) -> Any:
        tags = self.problem.__sklearn_tags__() if isinstance(self.problem, Problem) else super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def read(self, X: Any) -> Any:
        self.check()
        found = self.problem.read(X)
        if not is_table(_rows(found), 2, "f"):
            raise ValueError(
                f"FeatureMap needs samples of {type(self.problem).__name__} with dense rows of numbers, got "
                f"{shorten(_rows(found))}; make sparse rows dense, or use {type(self.problem).__name__} alone"
            )
        return found

    def schema(self, X: Any, y: Any) -> Schema:
        X = self.ensure_read(X)
        rows = np.asarray(_rows(X), dtype=np.float64)
        rng = random_numbers(self.random_state)
        features = learn_features(rows, self, np.random.default_rng(int(rng.randint(2**31))))
        inner = self.problem.schema(self._describe(X, features), y)
        facts = {**inner.facts, **{PREFIX + name: value for name, value in features._asdict().items()}}
        return Schema(inner.classes, rows.shape[1], inner.blocks, facts)

    def check_schema(self, schema: Schema) -> None:
        super().check_schema(schema)
        self.problem.check_schema(self._inner(schema))

    def lower_bounds(self, schema: Schema) -> Mapping[str, float]:
        return self.problem.lower_bounds(self._inner(schema))

    def bind(self, X: Any, y: Any, schema: Schema, *, hidden: Any = None) -> Oracle:
        X = self.ensure_read(X)
        self.check_schema(schema)
        width = _rows(X).shape[1]
        if width != schema.n_features:
            raise ValueError(
                f"X has {width} features, but FeatureMap is expecting {schema.n_features} features as input"
            )
        described = self._describe(X, read_features(schema))
        return self.problem.bind(described, y, self._inner(schema), hidden=hidden)

    def _inner(self, schema: Schema) -> Schema:
        """The schema of the problem on the new features."""
        features = read_features(schema)
        facts = {name: value for name, value in schema.facts.items() if not name.startswith(PREFIX)}
        return Schema(schema.classes, features.n_components, schema.blocks, facts)

    def _describe(self, X: Any, features: Features) -> Any:
        """The same samples with new rows, in the precision of the old ones."""
        new = features(_rows(X)).astype(_rows(X).dtype, copy=False)
        return X.with_values(new) if isinstance(X, Ragged) else new

    def example(self, rng: np.random.Generator) -> Example:
        inner = self.problem.example(rng)
        X = (
            inner.X.with_values(np.asarray(inner.X.values, np.float64))
            if isinstance(inner.X, Ragged)
            else (np.asarray(inner.X, np.float64))
        )
        features = read_features(self.schema(X, inner.y))

        def joint_feature(x: Any, label: Any, h: Any) -> Array:
            table = np.atleast_2d(np.asarray(x, dtype=np.float64))
            new = np.array([_describe_row(row, features) for row in table])
            return inner.joint_feature(new if np.ndim(x) == 2 else new[0], label, h)

        return inner._replace(X=X, joint_feature=joint_feature)

    @classmethod
    def variants(cls) -> list[Self]:
        return [
            cls(Candidates(), gamma=0.3, scale=False),
            cls(Multiclass(), kernel="fourier", gamma=0.3, n_components=5, scale=False),
            cls(Chain(), gamma=0.3, scale=False),
            cls(Bags(), kernel="linear", scale=False),
        ]


class Features(NamedTuple):
    """How a row becomes features.

    ``(x − centre) / scale`` is compared with the ``landmarks`` (rbf), or is projected on the ``frequencies`` (fourier);
    ``mapping`` turns similarities, or the columns themselves (linear), into features.
    """

    kernel: str
    centre: Array
    scale: Array
    gamma: float
    landmarks: Array
    mapping: Array

    @property
    def n_components(self) -> int:
        """The number of features."""
        return len(self.landmarks) if self.kernel == "fourier" else self.mapping.shape[1]

    def __call__(self, rows: Array) -> Array:
        """The features of rows, block by block."""
        out = np.empty((len(rows), self.n_components))
        for block in _blocks(len(rows), max(len(self.landmarks), self.n_components)):
            scaled = (np.asarray(rows[block], dtype=np.float64) - self.centre) / self.scale
            if self.kernel == "linear":
                out[block] = scaled @ self.mapping
            elif self.kernel == "rbf":
                out[block] = similarities(scaled, self.landmarks, self.gamma) @ self.mapping
            else:
                out[block] = np.cos(scaled @ self.landmarks.T + self.mapping[0])
                out[block] *= np.sqrt(2 / len(self.landmarks))
        return np.asarray(np.round(out / GRAIN) * GRAIN)

    def check(self, n_inputs: int) -> None:
        """Refuse what no fit could have made."""
        d = n_inputs
        tables = {"landmarks": (self.landmarks, 2), "mapping": (self.mapping, 2)}
        tables |= {"centre": (self.centre, 1), "scale": (self.scale, 1)}
        for name, (table, dimensions) in tables.items():
            if not is_table(table, dimensions, "f"):
                raise ValueError(
                    f"{PREFIX}{name} of the schema must be an array of finite numbers, got {shorten(table)}"
                )
        choice(*KERNELS)(f"{PREFIX}kernel", self.kernel)
        positive(f"{PREFIX}gamma", self.gamma)
        shapes = {
            "linear": (self.landmarks.size == 0, len(self.mapping) == d),
            "rbf": (self.landmarks.shape[1] == d, len(self.mapping) == len(self.landmarks)),
            "fourier": (self.landmarks.shape[1] == d, self.mapping.shape == (1, len(self.landmarks))),
        }[self.kernel]
        fits = self.centre.shape == self.scale.shape == (d,) and (self.scale > 0).all() and self.n_components > 0
        if not fits or not all(shapes):
            raise ValueError(f"the features of the schema do not fit {d} columns; take one from FeatureMap.schema")


def read_features(schema: Schema) -> Features:
    """The features that a schema holds, checked."""
    missing = [name for name in Features._fields if PREFIX + name not in schema.facts]
    if missing:
        raise ValueError(f"the schema lacks {PREFIX + missing[0]!r}; take one from FeatureMap.schema")
    found = Features(*(schema.facts[PREFIX + name] for name in Features._fields))
    found.check(schema.n_features)
    return found


def learn_features(rows: Array, settings: FeatureMap, rng: np.random.Generator) -> Features:
    """Features of these rows, by the settings of a `FeatureMap`.

    Everything is learned from distinct rows in a fixed order, so that copies of samples and their order change nothing.
    """
    d, most = rows.shape[1], int(settings.n_components)
    if len(rows) > MAX_DRAWN:
        rows = rows[np.sort(rng.permutation(len(rows))[:MAX_DRAWN])]
    rows = np.unique(rows, axis=0)
    centre, scale = np.zeros(d), np.ones(d)
    if settings.scale or settings.kernel == "linear":
        centre = rows.mean(axis=0)
    if settings.scale:
        deviation = rows.std(axis=0)
        scale = np.where(deviation > 1e-12 * np.abs(centre), deviation, 1.0)
    rows = (rows - centre) / scale
    if settings.kernel == "linear":
        values, directions = linalg.eigh(rows.T @ rows)
        kept = _largest(values, most)
        size = np.sqrt(max(float(values.sum()) / len(rows), 1e-300))
        return Features("linear", centre, scale, 1.0, np.zeros((0, d)), _fix_signs(directions[:, kept]) / size)
    gamma = _typical_gamma(rows) if settings.gamma == "auto" else float(settings.gamma)
    if settings.kernel == "fourier":
        frequencies = rng.standard_normal((most, d)) * np.sqrt(2 * gamma)
        return Features("fourier", centre, scale, gamma, frequencies, rng.uniform(0, 2 * np.pi, (1, most)))
    landmarks = rows[np.sort(rng.permutation(len(rows))[: int(settings.n_landmarks)])]
    values, directions = linalg.eigh(similarities(landmarks, landmarks, gamma))
    kept = _largest(values, most)
    return Features("rbf", centre, scale, gamma, landmarks, _fix_signs(directions[:, kept]) / np.sqrt(values[kept]))


def similarities(rows: Array, landmarks: Array, gamma: float) -> Array:
    """The RBF kernel of every pair, by one product of matrices.

    >>> similarities(np.array([[0.0], [1.0]]), np.array([[1.0]]), 2.0).round(4)
    array([[0.1353],
           [1.    ]])
    """
    squares = (rows**2).sum(axis=1)[:, None] + (landmarks**2).sum(axis=1)
    return np.asarray(np.exp(-gamma * np.maximum(squares - 2 * (rows @ landmarks.T), 0.0)))


def _typical_gamma(rows: Array) -> float:
    """One over the median squared distance of different rows."""
    some = rows[np.linspace(0, len(rows) - 1, min(len(rows), MAX_COMPARED)).astype(np.int64)]
    distances = pdist(some, "sqeuclidean")
    middle = float(np.median(distances)) if distances.size else 0.0
    return 1 / middle if middle > 0 else 1.0


def _largest(values: Array, most: int) -> Array:
    """Positions of the largest eigenvalues, the largest first, without those that are 0 but for rounding."""
    order = np.argsort(-values, kind="stable")[:most]
    kept = order[values[order] > MIN_EIGENVALUE * max(float(values.max(initial=0.0)), 1e-300)]
    return kept if kept.size else order[:1]


def _fix_signs(directions: Array) -> Array:
    """Eigenvectors with their largest entry positive: their sign is arbitrary."""
    largest = np.abs(directions).argmax(axis=0)
    signs = np.sign(directions[largest, np.arange(directions.shape[1])])
    return directions * np.where(signs == 0, 1.0, signs)


def _blocks(n: int, width: int) -> Iterator[slice]:
    step = max(BLOCK_CELLS // max(width, 1), 1)
    return (slice(first, min(first + step, n)) for first in range(0, n, step))


def _rows(X: Any) -> Any:
    """The table of rows of checked input."""
    return X.values if isinstance(X, Ragged) else X


def _describe_row(row: Array, features: Features) -> Array:
    """The features of one row, by definition."""
    x = (row - features.centre) / features.scale
    if features.kernel == "linear":
        found = [(x * column).sum() for column in features.mapping.T]
    elif features.kernel == "rbf":
        similar = np.array([np.exp(-features.gamma * ((x - z) ** 2).sum()) for z in features.landmarks])
        found = [(similar * column).sum() for column in features.mapping.T]
    else:
        angles = [(z * x).sum() + shift for z, shift in zip(features.landmarks, features.mapping[0], strict=True)]
        found = [np.sqrt(2 / len(angles)) * np.cos(angle) for angle in angles]
    return np.round(np.array(found) / GRAIN) * GRAIN
