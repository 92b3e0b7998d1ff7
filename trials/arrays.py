"""The types of arrays that pass between rooms."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.integer]
"""Whole numbers, such as the numbers of rows or the lengths of samples."""
