"""Fits on a Dask cluster: features stay on the workers, the result has the bits of a fit in memory.

For the extra ``tacit[dask]``. See the page "Beyond memory and beyond one machine".
"""

from tacit.dask.fitting import fit, predict

__all__ = ["fit", "predict"]
