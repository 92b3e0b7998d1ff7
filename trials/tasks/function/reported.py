"""Metrics of reports, made plain: names that a person can type, and Python's numbers."""

from __future__ import annotations

from typing import Any

MOST_RESOURCE = 2.0**53
"""The most that a trial can say it has trained: above it a float cannot tell a number from the next
one."""


def metric_name(of: object) -> str:
    """The name of a metric.

    Raises:
        ValueError: It is not one that a person can type.
    """
    name = str(of)
    if not name.isprintable() or not name or name.startswith("$"):
        what = f"a metric cannot be named {name!r}: use letters, digits and marks such as _ or /"
        raise ValueError(what)
    return name


def number_of(name: str, value: Any) -> float:
    """A number of Python's, numpy's or torch's, as Python's; text is not one, even "0.5".

    Raises:
        ValueError: It is not a number; the error calls it by its name.
    """
    wrong = f"{name} must be a number, not {value!r}"
    try:
        # A tensor's own way: float() warns of one that carries gradients.
        plain = value.item() if hasattr(value, "item") else value
        if isinstance(plain, str | bytes | bytearray):
            raise ValueError(wrong)
        return float(plain)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(wrong) from None
    except OverflowError:
        raise ValueError(f"{name} is too large for a float") from None
