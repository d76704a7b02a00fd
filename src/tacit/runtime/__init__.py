"""Long runs: the one loop of everything iterative, why it stopped, and progress on a terminal."""

from tacit.exports import export

__getattr__, __dir__, __all__ = export(__name__, __file__)
