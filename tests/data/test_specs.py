"""Declared specs: one checker for parameters and for what a model file says was learned."""

import numpy as np
import pytest

from tacit.data import specs


class Base:
    parameters = {"C": specs.positive, "tol": specs.positive}
    learned = {"n_iter_": specs.whole(0)}

    def __init__(self, C=1.0, tol=1e-3):
        self.C, self.tol = C, tol


class Derived(Base):
    parameters = {"C": specs.either("auto", specs.positive), "kind": specs.choice("a", "b", None)}
    learned = {"coef_": specs.table(None)}
    kind = "a"


def test_specs_of_bases_hold_and_are_replaced_by_name():
    specs.check_parameters(Derived(C="auto"))
    with pytest.raises(ValueError, match="C"):
        specs.check_parameters(Base(C="auto"))
    with pytest.raises(ValueError, match="tol"):
        specs.check_parameters(Derived(tol=0))


def test_what_was_learned_is_there_and_fits():
    model = Derived()
    model.n_iter_, model.coef_ = 3, np.zeros(2)
    specs.check_learned(model)
    model.coef_ = np.array([np.nan])
    with pytest.raises(ValueError, match="coef_"):
        specs.check_learned(model)
    del model.coef_
    with pytest.raises(ValueError, match="coef_"):
        specs.check_learned(model)


@pytest.mark.parametrize(
    ("spec", "good", "bad"),
    [
        (specs.positive, 0.5, 0),
        (specs.not_negative, 0, -1),
        (specs.finite, -3, np.inf),
        (specs.any_number, np.inf, np.nan),
        (specs.share, 1, 1.5),
        (specs.inner_share, 0.5, 1),
        (specs.some_share, 1, 0),
        (specs.whole(2, 5), np.uint8(2), 6),
        (specs.choice("a", None), None, "b"),
        (specs.optional(specs.positive), None, 0),
        (specs.either("auto", specs.whole()), "auto", "all"),
        (specs.instance(dict, "a dict"), {}, []),
        (specs.table(2, None), np.zeros((2, 7)), np.zeros((3, 7))),
        (specs.switch, np.True_, 1),
    ],
)
def test_a_spec_names_the_parameter_and_shows_the_value(spec, good, bad):
    spec("thing", good)
    with pytest.raises(ValueError, match="thing"):
        spec("thing", bad)
