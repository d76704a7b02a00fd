from tacit.dask.fitting import fit as fit
from tacit.dask.fitting import predict as predict
