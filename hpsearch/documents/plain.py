"""Values that JSON has."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from typing import Any


def finite(value: Any) -> Any:
    """The value as plain data, with null for numbers that are not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return value
