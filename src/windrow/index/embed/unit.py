"""Rows of length one, which is what every embedder gives."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def to_unit_length(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows, each divided by its length; one of nothing but zeros stays as it is."""
    # What `norm` does in the end: a search has one row, for which all else takes longer than this.
    lengths = np.sqrt(np.add.reduce(rows * rows, axis=1, keepdims=True))
    lengths[~(lengths > 0)] = 1
    return (rows / lengths).astype(np.float32, copy=False)
