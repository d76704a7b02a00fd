"""The contracts between problems, learners and solvers.

The mathematics, in one place
-----------------------------
A sample has an input ``x_i``, a label ``y_i`` and a hidden value ``h_i``. A model scores outputs linearly,
``s(y, h) = w·Ψ(x, y, h)``, and predicts the output of the highest score. Every convex piece that is ever
minimised is a **task**::

    min_w  Ω(w) + Σ_i c_i ξ_i(w)
    ξ_i(w) = max_a [ ℓ_i(a) + w·Ψ(x_i, a) ] − w·Ψ(x_i, t_i)            margin rescaling
    ξ_i(w) = max_a ℓ_i(a) · [ 1 + w·Ψ(x_i, a) − w·Ψ(x_i, t_i) ]        slack rescaling

over assignments ``a = (y, h)``; ``ℓ_i(a) ≥ 0`` is the loss, zero on the truth, and ``t_i`` the target. Pacing
changes only ``c``, imputing hidden values only ``t``, losses on the hidden value only ``ℓ``, group norms and
trust regions only ``Ω``.

Who promises what
-----------------
- A `Problem` holds hyper-parameters, its loss among them. `Problem.schema` learns the dimensions from data,
  `Problem.bind` packs data once and returns an `Oracle`. A problem never changes.
- An `Oracle` maximises, measures and sums, for many samples a call. It is immutable and safe to call from
  several threads; ``rows`` is None (all samples), a slice (no copy) or a sorted array of indices, and what comes
  back has one entry for each of those rows. Ties go to the first label, then to the first hidden value, except
  where `prefer` says otherwise. It never returns one feature vector per sample: `features` sums them. One that sums
  differences ``Σ coef_i (Ψ(x_i, code_i) − Ψ(x_i, target_i))`` for less than two such sums may offer them as
  ``difference(code, target, coef, rows)``; planes are then made of these.
- ``shifted(code)`` of an oracle, if it has one, lists codes whose hidden values are all moved together: what no sample
  gains by alone.
- ``loss_needs_hidden`` on an oracle (False where it is missing) says that ``ℓ_i`` is measured against the true hidden
  value, so that it is defined only where that is given; elsewhere it counts the label alone. ``measured_against(code)``
  is then the same data with the loss measured against these outputs.
- An assignment travels as integers, `Assignment.code`: one a sample, or where an output is a sequence one a token,
  sample after sample, cut by `Oracle.code_offsets`. Only the oracle that made a code can read it; everybody else
  stores it, cuts it (`take_code`) or hands it back. `TARGET` (−1) stands for "this row's target".
- A `Task` turns an assignment into a **plane**, ``gradient·w + offset ≤ Σ c_i ξ_i(w)`` for all w. Any assignment
  gives a valid plane, so planes kept as codes survive new weights, targets and losses.
- A learner or solver names the methods that it needs; `require` compares before any work starts.

`EnumerableOracle` derives all of this from three linear maps, for problems whose outputs can be listed.
"""

from tacit.oracle.contracts import (
    TARGET,
    Assignment,
    CapabilityError,
    Example,
    Oracle,
    Problem,
    Schema,
    hidden_values,
    is_sequence,
    require,
    take_code,
)
from tacit.oracle.enumerable import EnumerableOracle, LossTable, check_hidden, checksum
from tacit.oracle.hidden_loss import HiddenLoss, PairLoss
from tacit.oracle.task import Plane, Task

__all__ = [
    "TARGET",
    "Assignment",
    "CapabilityError",
    "EnumerableOracle",
    "Example",
    "HiddenLoss",
    "LossTable",
    "Oracle",
    "PairLoss",
    "Plane",
    "Problem",
    "Schema",
    "Task",
    "check_hidden",
    "checksum",
    "hidden_values",
    "is_sequence",
    "require",
    "take_code",
]
