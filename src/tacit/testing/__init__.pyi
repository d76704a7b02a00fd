from tacit.testing.discovery import learners as learners
from tacit.testing.discovery import problems as problems
from tacit.testing.discovery import solvers as solvers
from tacit.testing.enumeration import Enumeration as Enumeration
from tacit.testing.enumeration import example_task as example_task
from tacit.testing.learner_checks import check_learner as check_learner
from tacit.testing.problem_checks import check_problem as check_problem
from tacit.testing.solver_checks import check_solver as check_solver
