"""Fits on a Dask cluster: features stay on the workers, the result has the bits of a fit in memory.

For the extra ``tacit[dask]``. See the page "Beyond memory and beyond one machine".
"""

from tacit.exports import export

__getattr__, __dir__, __all__ = export(__name__, __file__)
