"""Text: mentions and who is who; parallel sentences and the links of their words; sentences that decide."""

from tacit.exports import export

__getattr__, __dir__, __all__ = export(__name__, __file__)
