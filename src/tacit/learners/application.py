"""What all applications share: files of fitted ones, and the check of what such a file holds."""

from __future__ import annotations

import os
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tacit.data import specs
from tacit.data.parameters import check_verbose
from tacit.runtime import storage
from tacit.runtime.archive import Stored


class Application(Stored, BaseEstimator):  # type: ignore[misc]
    """Base of all applications: an estimator whose `fit` takes files and plain data, and whose file `tacit.load` reads.

    A subclass stores its parameters in the constructor. `fit` sets attributes that end in an underscore: numbers, text,
    arrays, fitted learners, lists and dicts of those; all of them are saved. It declares specs (`tacit.data.specs`) of
    its ``parameters``, which are checked before any work, and of what it ``learned``, which is checked after loading;
    `check_learned` may be extended to see whether parts fit each other.
    """

    _not_saved: tuple[str, ...] = ("callbacks", "checkpoint", "resume", "verbose")

    def check_parameters(self) -> None:
        """Refuse invalid parameters: cause, value, remedy."""
        specs.check_parameters(self)
        check_verbose(getattr(self, "verbose", 0))

    def check_learned(self) -> None:
        """Refuse learned attributes that are missing, or do not fit each other."""
        if not specs.declared_specs(type(self), "learned"):
            raise NotImplementedError(f"{type(self).__name__} does not declare what it learned")
        specs.check_learned(self)

    def check(self) -> None:
        """Refuse what no fit could have made: `tacit.load` calls it on a model from a file."""
        self.check_parameters()
        self.check_learned()

    def learned_attributes(self) -> dict[str, Any]:
        """What goes into a file beside the parameters: everything that `fit` learned, by name."""
        return {name: value for name, value in vars(self).items() if name.endswith("_") and name[0] != "_"}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted application to a file that `tacit.load` reads: arrays and JSON, no pickle."""
        check_is_fitted(self)
        storage.save(path, self, self.learned_attributes())
