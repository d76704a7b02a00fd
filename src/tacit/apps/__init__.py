"""Applications: files in, answers out. Each is an estimator, and each has a command of `tacit` around it.

An application reads files (`tacit.datasets`), builds a problem, trains a learner, tests what it found on data that was
held out, and says what goes into the report and the exports. The commands in `tacit.commands` only read options and
write files.
"""

from tacit.exports import export

__getattr__, __dir__, __all__ = export(__name__, __file__)
