"""Sound and other signals as sequences of frames: mel spectra and cepstra, from arrays or wav files."""

from tacit.exports import export

__getattr__, __dir__, __all__ = export(__name__, __file__)
