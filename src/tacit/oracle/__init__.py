"""The contracts between problems, learners and solvers.

The mathematics, in one place
-----------------------------
A sample has an input ``x_i``, a label ``y_i`` and a hidden value ``h_i``. A model scores outputs linearly,
``s(y, h) = w·Ψ(x, y, h)``, and predicts the output of the highest score. Every convex piece that is ever
minimised is a **task**::

    min_w  Ω(w) + Σ_i c_i ξ_i(w)
    ξ_i(w) = max_a [ ℓ_i(a) + w·Ψ(x_i, a) ] − w·Ψ(x_i, t_i) − b_i            margin rescaling
    ξ_i(w) = max_a ℓ_i(a) · [ 1 + w·Ψ(x_i, a) − w·Ψ(x_i, t_i) ] − b_i        slack rescaling

over assignments ``a = (y, h)``; ``ℓ_i(a) ≥ 0`` is the loss, zero on the truth, ``t_i`` the target, and ``b_i`` a
constant, zero except where an objective was linearised.

Everything else is a change of one of these: pacing changes ``c``, imputing hidden values ``t``, losses on the hidden
value ``ℓ``, linearising ``ℓ`` and ``b``, group norms and trust regions ``Ω`` (a `tacit.penalties.Penalty`).

Who promises what
-----------------
- A `Problem` holds hyperparameters, its loss among them. `Problem.schema` learns the dimensions from data,
  `Problem.bind` packs data once and returns an `Oracle`. A problem never changes.
- An `Oracle` finds the best outputs, measures losses, and sums features, for many samples per call. It is immutable
  and safe to call from several threads. ``rows`` is None (all samples), a slice (no copy) or a sorted array of indices;
  the answer has one entry per row. Ties go to the first label, then to the first hidden value, except where `prefer`
  says otherwise. It never returns one feature vector per sample: `features` sums them.
- Whatever else an oracle can do is a **capability**, one protocol each in `tacit.oracle.capabilities`. Examples are
  sums over outputs (`SumsOutputs`), posteriors, the best few hidden values and losses on the hidden value.
  `capability` asks for one and may return None; `require` raises if it is missing.
- What is known of a hidden value is the value, nothing, or a set that it is in (`KnownHidden`); `impute` chooses within
  the set.
- An assignment travels as integers, `Assignment.code`: one per sample, or where an output has several parts one per
  part (a tag per token), sample after sample, cut by `Oracle.code_offsets`. Only the oracle that made a code can read
  it; all other code stores it, cuts it (`take_code`) or hands it back. `TARGET` (−1) stands for "this row's target".
  Where y itself has gaps (missing tags), and filling them is what is hidden, ``completes_labels`` is True.
- A `Task` turns an assignment into a **plane**, ``gradient·w + offset ≤ Σ c_i ξ_i(w)`` for all w. Any assignment
  gives a valid plane, so planes kept as codes survive new weights, targets and losses.
- A learner or solver names the protocols or methods that it needs; `require` checks them before any work starts.

`EnumerableOracle` derives all of this from three linear maps, for problems whose outputs can be listed;
`tacit.oracle.parts.PartsOracle` has what the others share, whose outputs have several parts.
"""

from tacit.exports import export

__getattr__, __dir__, __all__ = export(__name__, __file__)
