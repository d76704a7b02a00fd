"""Kernels of weighted automata: products of matrices along strings, rescaled so that nothing underflows."""

from __future__ import annotations

import numpy as np

from tacit.data.arrays import Array
from tacit.data.kernels import kernel


@kernel
def values_of_strings(
    codes: Array, offsets: Array, initial: Array, transitions: Array, final: Array, sign: Array, log_size: Array
) -> None:
    """f(x) of every string, as its sign (−1, 0, 1) and the logarithm of its size; unseen symbols make it zero."""
    n = initial.size
    row, following = np.empty(n), np.empty(n)
    for i in range(offsets.size - 1):
        total = 0.0
        for j in range(n):
            row[j] = initial[j]
        for t in range(offsets[i], offsets[i + 1]):
            s = codes[t]
            largest = 0.0
            for j in range(n):
                following[j] = 0.0
            if s >= 0:
                for k in range(n):
                    weight = row[k]
                    if weight != 0.0:
                        for j in range(n):
                            following[j] += weight * transitions[s, k, j]
                for j in range(n):
                    largest = max(largest, abs(following[j]))
            if largest == 0.0:
                for j in range(n):
                    row[j] = 0.0
                break
            total += np.log(largest)
            inverse = 1.0 / largest
            for j in range(n):
                row[j] = following[j] * inverse
        value = 0.0
        for j in range(n):
            value += row[j] * final[j]
        sign[i] = np.sign(value)
        log_size[i] = total + np.log(abs(value)) if value != 0.0 else -np.inf


@kernel
def states_along(codes: Array, initial: Array, transitions: Array, out: Array, log_scale: Array) -> None:
    """``out[t]·exp(log_scale[t])`` is initialᵀ A_{x_1} … A_{x_t}; rows of out are zero or have one as largest entry."""
    n = initial.size
    for t in range(codes.size + 1):
        for j in range(n):
            out[t, j] = 0.0
        if t == 0:
            for j in range(n):
                out[0, j] = initial[j]
        elif codes[t - 1] >= 0:
            for k in range(n):
                weight = out[t - 1, k]
                for j in range(n):
                    out[t, j] += weight * transitions[codes[t - 1], k, j]
        largest = 0.0
        for j in range(n):
            largest = max(largest, abs(out[t, j]))
        log_scale[t] = log_scale[t - 1] if t > 0 else 0.0
        if largest > 0.0:
            log_scale[t] += np.log(largest)
            inverse = 1.0 / largest
            for j in range(n):
                out[t, j] *= inverse
