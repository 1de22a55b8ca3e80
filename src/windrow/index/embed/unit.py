"""Rows of length one, which is what every embedder gives."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def to_unit_length(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows, each divided by its length; one of nothing but zeros stays as it is."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32, copy=False)
