"""Checks for people who extend tacit: does an oracle agree with its specification, does a solver certify its optimum,
does a learner behave like those of scikit-learn?

Brute force is the specification. `Problem.example` gives a tiny instance with its outputs, joint feature and loss in
plain Python; everything here compares compiled oracles with that enumeration. `problems`, `solvers` and `learners` find
whatever tacit exports, so a new file is tested without a list to edit.
"""

from tacit.testing.check_learner import check_learner
from tacit.testing.check_problem import check_problem
from tacit.testing.check_solver import check_solver
from tacit.testing.discovery import learners, problems, solvers
from tacit.testing.enumeration import Enumeration, example_task

__all__ = [
    "Enumeration",
    "check_learner",
    "check_problem",
    "check_solver",
    "example_task",
    "learners",
    "problems",
    "solvers",
]
