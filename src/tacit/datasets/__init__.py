"""Readers of public formats, and small generators.

Readers of data sets take a folder, or look in the folder that the environment variable TACIT_DATA names.
"""

from tacit.exports import export

__getattr__, __dir__, __all__ = export(__name__, __file__)
