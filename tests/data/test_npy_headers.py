"""Headers of .npy files, read without evaluating them."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tacit.data.arrays import read_npy_header
from tacit.runtime.archive import StorageError, read_array

TYPES = ["<f8", ">f4", "<f2", "|i1", "<u8", "|b1", "<U3", ">U2", "|S4"]


def _npy(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


@given(st.sampled_from(TYPES), arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4), st.booleans())
def test_headers_are_read_as_numpy_reads_them(kind, shape, by_columns):
    array = np.zeros(shape, kind, order="F" if by_columns else "C")
    file, same = io.BytesIO(_npy(array)), io.BytesIO(_npy(array))
    np.lib.format.read_magic(same)
    assert read_npy_header(file) == np.lib.format.read_array_header_1_0(same)
    assert file.tell() == same.tell()


@given(arrays.arrays(np.float64, arrays.array_shapes(max_dims=3, max_side=4)), st.booleans())
def test_arrays_come_back_to_the_bit(array, by_columns):
    array = np.asfortranarray(array) if by_columns else array
    read = read_array(_npy(array), "w", "model")
    np.testing.assert_array_equal(read.view(np.int64), array.view(np.int64))
    assert read.flags.writeable
    assert read.flags.f_contiguous == array.flags.f_contiguous


@pytest.mark.parametrize(
    "array", [np.array([None]), np.zeros(2, [("a", "f8")]), np.zeros(2, "M8[s]")], ids=["objects", "records", "times"]
)
def test_other_types_are_refused(array):
    file = io.BytesIO()
    np.save(file, array)
    with pytest.raises(ValueError, match="header"):
        read_npy_header(io.BytesIO(file.getvalue()))


@pytest.mark.parametrize("change", [b"\x93NUMPX\x01\x00", b"", b"\x93NUMPY\x01\x00\xff\xff{'descr': "])
def test_damaged_headers_are_refused(change):
    with pytest.raises(StorageError, match="broken array"):
        read_array(change, "w", "model")
