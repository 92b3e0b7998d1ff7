"""The parts of a report, made plain: names that a person can type, Python's numbers, and the time
that a trial has trained."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from trials.foreign import plain

MOST_RESOURCE = 2.0**53
"""The largest resource: above it a float cannot tell a number from the next one."""
LONGEST_NAME = 500
"""Letters of a metric's name."""


def metric_name(of: object) -> str:
    """The name of a metric.

    Raises:
        ValueError: A person cannot type it, or would not.
    """
    name = plain(str(of))
    if len(name) > LONGEST_NAME:
        raise ValueError(f"the name of a metric has {len(name)} letters, at most {LONGEST_NAME}")
    if not name.isprintable() or not name or name.startswith("$"):
        what = f"a metric cannot be named {name!r}: use letters, digits and marks such as _ or /"
        raise ValueError(what)
    return name


def number_of(name: str, value: Any) -> float:
    """A number of Python's, numpy's or torch's, as Python's; text is not one, even "0.5".

    Raises:
        ValueError: It is not a number; the error repeats the name.
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


def numbers_of(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The metrics of a report by their names. Raises ValueError as the functions above."""
    values = {}
    for name, value in metrics.items():
        values[metric_name(name)] = number_of(f"metric {name!r}", value)
    return values


class Stopwatch:
    """The seconds that a trial has trained in all attempts, without those in which it waits.

    Args:
        before_s: The seconds of earlier attempts. It runs from `go_on` to `pause`.
    """

    def __init__(self, before_s: float) -> None:
        self._before_s = before_s
        self._since: float | None = None

    @property
    def seconds(self) -> float:
        """The seconds until now."""
        if self._since is None:
            return self._before_s
        return self._before_s + time.perf_counter() - self._since

    def go_on(self) -> None:
        """Start, if it does not run."""
        if self._since is None:
            self._since = time.perf_counter()

    def pause(self) -> None:
        """Stop, until `go_on`."""
        self._before_s = self.seconds
        self._since = None
