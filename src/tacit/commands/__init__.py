"""What the commands of ``tacit`` share, and what a command outside of the package is written with.

A command is a thin shell: it reads options, calls an application, and writes files. The shared options and one run
with its record are in `run`, the folder that appears whole or not at all in `folder`, what an error becomes in
`failures`, and how a command is found in `group`: by the table there, or by an entry point ``tacit.commands`` of
another distribution.
"""

from tacit.exports import export

__getattr__, __dir__, __all__ = export(__name__, __file__)
