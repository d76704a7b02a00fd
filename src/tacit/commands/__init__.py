"""What the commands of ``tacit`` share, and what a command outside of the package is written with.

A command reads options, calls an application, and writes files. `run` has the shared options and one run with its
record, `values` the types of options, `folder` the folder that appears whole or not at all, and `failures` the exit
codes. `group` finds a command: in its table, or by an entry point ``tacit.commands`` of another distribution.
"""

from tacit.exports import export

__getattr__, __dir__, __all__ = export(__name__, __file__)
