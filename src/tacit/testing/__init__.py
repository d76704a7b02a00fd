"""Checks for people who extend tacit: does an oracle agree with its specification, does a solver certify its optimum,
does a learner behave like those of scikit-learn?

Brute force is the specification. `Problem.example` gives a tiny example with its outputs, joint feature and loss in
plain Python; everything here compares compiled oracles with that enumeration. `problems`, `solvers` and `learners` find
all that tacit exports, so a new part is tested without a list to edit.
"""

from tacit.exports import export

__getattr__, __dir__, __all__ = export(__name__, __file__)
