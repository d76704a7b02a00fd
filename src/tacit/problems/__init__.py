"""Problems: what F(x, y, h) = w·Ψ(x, y, h) looks like and how to maximise it. One file a problem."""

from tacit.exports import export

__getattr__, __dir__, __all__ = export(__name__, __file__)
