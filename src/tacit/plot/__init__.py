"""Pictures of what was learned and how. Needs matplotlib: ``pip install "tacit[plot]"``.

Every function draws on axes that are given or makes its own, and returns them; the numbers behind a picture come from
a function of their own.
"""

from tacit.exports import export

__getattr__, __dir__, __all__ = export(__name__, __file__)
