"""A problem from a user's plain functions for one sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any

import numpy as np

from tacit.data.arrays import Array
from tacit.data.parameters import has_length, is_whole, shorten
from tacit.data.specs import between, estimator, parameter, switch
from tacit.oracle import Example, Oracle, Problem, Schema
from tacit.oracle.contracts import missing_methods
from tacit.problems.per_sample.called_oracle import Bound, CalledOracle
from tacit.problems.per_sample.listed_oracle import ListedOracle
from tacit.problems.per_sample.user_functions import (
    Cost,
    Output,
    UserFunctions,
    as_labels,
    as_samples,
    is_scalar,
    name_of,
)


@estimator
class PerSample(Problem):
    """Structured prediction from functions of one sample, written in plain Python.

    ``joint_feature`` is always needed. To maximise, give functions (`argmax`, `augmented`, `impute`), or `outputs`, the
    list of all outputs of a sample. With `outputs` no other function is needed, all outputs are compared, and slack
    rescaling and checkpoints work too. Where both are given, the functions are used, and `tacit.testing.check_problem`
    compares them with the list.

    What a function returns is checked: a wrong length, a NaN, a loss of the truth, an argmax below the truth are
    errors that name the sample. A pass calls the functions once per sample, on several processes where ``n_jobs`` of
    the learner allows it and it pays; features are computed once per output and kept. On the digits a fit takes about
    11 times as long as `Multiclass` with outputs listed, 40 times with functions: write an oracle where that matters.
    With ``hidden=True`` an output is a pair (y, h).

    Parameters
    ----------
    joint_feature : ``(x, y)`` → vector Ψ, of the same length for all; ``(x, y, h)`` with hidden values
    argmax : ``(x, w)`` → the label y of the highest ``w @ joint_feature(x, y)``; the pair (y, h) with hidden values
    loss : ``(true, y)`` → number from 0, 0 for the truth; ``(true, y, h)`` with hidden values; None for 0/1
    augmented : ``(x, true, w)`` → the output of the highest score plus loss (loss-augmented inference)
    impute : ``(x, y, w)`` → the hidden value of the highest score for this label
    outputs : ``(x)`` → all outputs of a sample, or one list for all samples
    hidden_loss : ``(true, true_h, y, h)`` → number from 0, 0 for the truth: a loss that looks at the hidden value,
        instead of `loss`, for outputs that are listed. Where true_h is unknown, only the label counts
    hidden : whether there are hidden values; in ``fit(..., hidden=)``, −1 and None are unknown ones
    approximate : whether `argmax` and `augmented` may miss the best output. They are tried before every fit otherwise;
        with approximate ones objectives and bounds certify nothing
    blocks : names and shapes of the parts of w, such as ``{"emission": (3, 4), "transition": (3, 3)}``
    memory : bytes for features that are kept; those beyond are computed in every pass
    examples : ``(X, y)`` or ``(X, y, hidden)``, a few samples for `tacit.testing.check_problem`; or a function of a
        random generator that makes them, or makes an `Example` with its specification

    >>> import numpy as np
    >>> from tacit import StructuredSVM
    >>> def joint_feature(x, y):
    ...     return np.array([x, 1.0]) if y == "high" else np.zeros(2)
    >>> model = StructuredSVM(PerSample(joint_feature, outputs=["low", "high"]))
    >>> model.fit([0.0, 1.0, 2.0, 3.0], ["low", "low", "high", "high"]).predict([0.2, 2.9])
    array(['low', 'high'], dtype='<U4')
    """

    reads_once = True
    takes_table = False

    holds_functions = True  # so a model file cannot hold it

    joint_feature: Callable[..., Any]
    argmax: Callable[..., Any] | None = None
    loss: Callable[..., Any] | None = None
    _: KW_ONLY
    augmented: Callable[..., Any] | None = None
    impute: Callable[..., Any] | None = None
    outputs: Callable[[Any], Any] | Sequence[Any] | None = None
    hidden_loss: Callable[..., Any] | None = None
    hidden: bool = parameter(switch, default=False)
    approximate: bool = parameter(switch, default=False)
    blocks: Mapping[str, tuple[int, ...]] | None = None
    memory: float = parameter(between("a number of bytes (2**29 is half a gigabyte)", 0, math.inf), default=2**29)
    examples: Any = None

    def check(self) -> None:
        super().check()
        self._blocks()
        self.functions()

    def read(self, X: Any) -> list[Any]:
        samples = as_samples(X)
        if not samples:
            raise ValueError("X must have at least one sample")
        return samples

    def schema(self, X: Any, y: Any) -> Schema:
        """Learn the length of joint features from the first sample, and the classes where labels are single values.

        ``n_features`` is the length of the joint features, since samples may be of any kind.
        """
        samples = self.ensure_read(X)
        labels, single = as_labels(y, len(samples))
        self.check()
        functions = self.functions()
        classes = self._classes(functions, samples, labels) if single else np.zeros(0)
        blocks = self._blocks()
        total = sum(math.prod(shape) for shape in blocks.values())
        output = self._some_output(functions, samples[0], labels[0])
        size = total if output is None else functions.feature(0, samples[0], *output).size
        if self.blocks is not None and total != size:
            shown = shorten(self.blocks)
            raise ValueError(f"blocks={shown} must have as many numbers as joint features: {total} are not {size}")
        return Schema(classes, size, blocks or {"weights": (size,)})

    def bind(self, X: Any, y: Any, schema: Schema, *, hidden: Any = None) -> Any:
        self.check_schema(schema)
        samples = self.ensure_read(X)
        n = len(samples)
        if hidden is not None and not self.hidden:
            raise ValueError("hidden= needs PerSample(..., hidden=True); set it, or leave out hidden=")
        values = None if hidden is None else as_samples(hidden, "hidden")
        if values is not None and len(values) != n:
            raise ValueError(f"hidden has {len(values)} entries for {n} samples; give one each, -1 if unknown")
        labels = None if y is None else as_labels(y, n)[0]
        functions = self.functions(schema.n_params)
        bound = Bound(functions, samples, labels, values, schema.classes, self.memory, approximate=self.approximate)
        return CalledOracle(bound) if self.outputs is None else ListedOracle(bound)

    def _blocks(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the parts of w, in Python integers; none where the user gave none."""
        if self.blocks is None:
            return {}
        fits = isinstance(self.blocks, Mapping) and all(
            isinstance(name, str) and isinstance(shape, tuple) and shape and all(is_whole(k) and k > 0 for k in shape)
            for name, shape in self.blocks.items()
        )
        if not fits or not self.blocks:
            example = '{"emission": (3, 4), "intercept": (3,)}'
            raise ValueError(f"blocks must map names to shapes, such as {example}, got {shorten(self.blocks)}")
        return {name: tuple(int(k) for k in shape) for name, shape in self.blocks.items()}

    def functions(self, n_params: int | None = None) -> UserFunctions:
        """The functions that were given; refuses what is missing or not a function."""
        given = {name: getattr(self, name) for name in ("joint_feature", "argmax", "loss", "augmented", "impute")}
        if self.outputs is not None and not callable(self.outputs):
            if not has_length(self.outputs) or isinstance(self.outputs, str):
                raise TypeError(
                    f"outputs must be a function of x or a list of all outputs, got {shorten(self.outputs)}"
                )
            given["outputs"] = _SameOutputs(list(self.outputs))
        else:
            given["outputs"] = self.outputs
        for name, function in given.items():
            if function is not None and not callable(function):
                raise TypeError(f"{name} must be a function, got {shorten(function)}")
        if self.joint_feature is None:
            raise TypeError("joint_feature must be a function (x, y) -> vector, got None")
        if self.argmax is None and self.outputs is None:
            raise TypeError("PerSample needs argmax=, a function (x, w) -> output, or outputs=, a list of all outputs")
        if self.hidden_loss is not None:
            if not callable(self.hidden_loss):
                raise TypeError(f"hidden_loss must be a function, got {shorten(self.hidden_loss)}")
            if self.outputs is None or not self.hidden or self.loss is not None or self.augmented is not None:
                raise TypeError("hidden_loss= needs hidden=True and outputs=, and replaces loss= and augmented=")
            given["hidden_loss"] = self.hidden_loss
        if self.impute is not None and not self.hidden:
            raise TypeError("impute= needs hidden=True; set it, or leave out impute=")
        return UserFunctions({k: f for k, f in given.items() if f is not None}, self.hidden, n_params)

    def costs(self, X: Any, y: Any, *, hidden: Any = None, w: Array | None = None) -> dict[str, Cost]:
        """Calls and microseconds per call of every function, in one loss-augmented pass and one prediction.

        >>> costs = PerSample(lambda x, y: [x * y], outputs=[-1, 1]).costs([1.0, 2.0], [-1, 1])
        >>> costs["joint_feature"].calls
        4
        """
        schema = self.schema(X, y)
        oracle = self.bind(X, y, schema, hidden=hidden)
        w = np.random.default_rng(0).standard_normal(schema.n_params) if w is None else w
        code = oracle.predict(w).code
        if not missing_methods(oracle, [Oracle.predict_augmented]):
            code = oracle.predict_augmented(w).code
        oracle.features(code, np.ones(oracle.n_samples))
        found: dict[str, Cost] = oracle.costs()
        return found

    def example(self, rng: np.random.Generator) -> Example:
        given = self.examples(rng) if callable(self.examples) else self.examples
        if given is None:
            needed = "(X, y, hidden)" if self.hidden else "(X, y)"
            raise ValueError(f"checking your functions needs a few samples: give PerSample(..., examples={needed})")
        if isinstance(given, Example):
            return given
        X, y, *rest = given
        outputs: Any = None if self.outputs is None else self._pairs
        return Example(X, y, rest[0] if rest else None, outputs, self._feature, self._cost)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """With functions by name: a checkpoint compares problems, and addresses differ from run to run."""
        defaults = {one.name: one.default for one in fields(self)}
        params = self.get_params(deep=False)
        shown = [f"{k}={name_of(v)}" for k, v in params.items() if v is not defaults.get(k) and v != defaults.get(k)]
        return f"PerSample({', '.join(shown)})"

    def _classes(self, functions: UserFunctions, samples: list[Any], labels: list[Any]) -> Array:
        """All labels that occur, in y and in the lists; sorted."""
        found = set(labels)
        if self.outputs is not None:
            listed = [y for i, x in enumerate(samples) for y, _ in functions.outputs(i, x) if is_scalar(y)]
            try:
                found |= set(listed)
            except (TypeError, ValueError) as error:  # a time span without a unit, say
                raise ValueError(f"labels must be hashable: {error}; use numbers or strings in outputs=") from error
        if len({isinstance(label, str) for label in found}) > 1:
            raise ValueError(f"labels must be all numbers or all strings, got {shorten(sorted(map(str, found))[:5])}")
        if len(found) < 2:
            remedy = "" if self.outputs is not None else ", or list all labels with outputs="
            raise ValueError(f"y has only one label, {shorten(labels[0])}; add samples of another label{remedy}")
        try:
            return np.array(sorted(found))
        except TypeError as error:  # dates beside numbers, say
            shown = sorted(map(str, found))[:5]
            raise ValueError(f"labels must be of one kind, got {shown}") from error

    def _some_output(self, functions: UserFunctions, x: Any, label: Any) -> Output | None:
        """An output of the first sample, to learn the length of joint features from."""
        if self.outputs is not None:
            return functions.outputs(0, x)[0]
        if not self.hidden:
            return label, None
        if self.blocks is None:
            remedy = 'give it, as blocks={"weights": (length,)} or by the named parts of w'
            raise ValueError(
                f"with hidden=True and without outputs=, the length of joint features is unknown; {remedy}"
            )
        return None

    def _pairs(self, x: Any) -> list[Output]:
        return self.functions().outputs(0, x)

    def _feature(self, x: Any, y: Any, h: Any) -> Array:
        return np.asarray(self.joint_feature(x, y, h) if self.hidden else self.joint_feature(x, y), dtype=np.float64)

    def _cost(self, true: Any, y: Any, h: Any) -> float:
        return self.functions().cost(0, true, y, h)


@dataclass(repr=False)
class _SameOutputs:
    """The same outputs for every sample."""

    everything: list[Any]

    def __call__(self, x: Any) -> list[Any]:
        return self.everything

    def __repr__(self) -> str:
        return repr(self.everything)
