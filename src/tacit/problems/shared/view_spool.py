"""Views of samples in a file: transformed once, because every pass reads them again."""

from __future__ import annotations

import errno
import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tacit.data.arrays import Array
from tacit.data.table import MappedArray, ShardedTable
from tacit.problems.shared.principal_components import SAMPLES_AT_A_TIME, sample_blocks

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What a system says when a file cannot grow: the disk is full, or a limit of the user or of files is reached."""


def spool_views(table: ShardedTable, views: Callable[[Array, int], Array]) -> ShardedTable:
    """All views of all samples as one table, (n·T, width), in a temporary file that goes with it.

    Parameters
    ----------
    table : one row per sample
    views : makes (samples, T, width) of rows, the first of which has this number
    """
    folder = Path(tempfile.mkdtemp(prefix="tacit-views-"))
    try:
        _write_views(folder / "views.npy", table, views)
        spooled = ShardedTable([MappedArray(folder / "views.npy")])
    except BaseException as error:
        shutil.rmtree(folder)
        if isinstance(error, OSError) and error.errno in NO_SPACE:
            told = (
                f"the views of {table.shape[0]} samples do not fit into the temporary folder {folder.parent}: "
                f"{error.strerror}; make room there, or name another folder in the environment variable TMPDIR"
            )
            raise OSError(error.errno, told) from error
        raise
    weakref.finalize(spooled, shutil.rmtree, folder, ignore_errors=True)
    return spooled


def _write_views(path: Path, table: ShardedTable, views: Callable[[Array, int], Array]) -> None:
    with path.open("wb") as file:
        for k, rows in enumerate(sample_blocks(table)):
            own = np.ascontiguousarray(views(rows, k * SAMPLES_AT_A_TIME))
            if k == 0:
                shape = table.shape[0] * own.shape[1], own.shape[2]
                kind = np.lib.format.dtype_to_descr(own.dtype)
                header = {"descr": kind, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, header)
            file.write(own.data)
