"""Columns of integers, and structures at many offsets of a buffer."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Octets: TypeAlias = npt.NDArray[np.uint8]


def kinds(values: npt.NDArray[np.integer[Any]]) -> list[int]:
    """List the distinct values, ascending.

    Usually there is only one; `np.unique` would hash all of them, and import masked arrays.
    """
    if not len(values):
        return []
    if (values == values[0]).all():
        return [int(values[0])]
    return sorted(set(values.tolist()))


def take_rows(data: bytes, starts: Ints, dtype: np.dtype[np.void]) -> npt.NDArray[np.void]:
    """Copy a structure of `dtype` from each offset of `data`; all must lie inside."""
    size = dtype.itemsize
    if not len(starts):
        return np.empty(0, dtype)
    octets = np.frombuffer(data, np.uint8)
    windows = np.lib.stride_tricks.as_strided(
        octets, (len(data) - size + 1, size), (1, 1), writeable=False
    )
    rows = windows.view(f"V{size}")[:, 0]
    return rows[starts].view(dtype)
