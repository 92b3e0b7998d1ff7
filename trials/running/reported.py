"""The parts of a report, made plain: names, Python's numbers, and the time of training."""

import itertools
import json
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from trials.contract import SAMPLES, Note
from trials.foreign import code_of, plain

LETTERS = 100  # letters of a value that a message repeats
LONGEST_NAME = 500  # letters of a metric's name
MOST_SAMPLES = 500
LENGTHS = frozenset(
    (
        *("epochs", "num_epochs", "n_epochs", "max_epochs", "num_train_epochs", "n_estimators"),
        *("num_boost_round", "num_iterations", "n_iter", "max_iter", "max_steps"),
        "total_timesteps",
    )
)
"""Names under which programs say how long they train."""
MOST_RESOURCE = 2.0**53
"""The largest resource: above it a float cannot tell a number from the next one."""


def metric_name(of: object) -> str:
    """The name of a metric. Raises ValueError if a person cannot type it, or would not."""
    name = plain(str(of))
    if len(name) > LONGEST_NAME:
        raise ValueError(f"the name of a metric has {len(name)} letters, at most {LONGEST_NAME}")
    if not name.isprintable() or not name or name.startswith("$"):
        what = f"a metric cannot be named {name!r}: use letters, digits and marks such as _ or /"
        raise ValueError(what)
    return name


def number_of(name: str, value: Any) -> float:
    """The one number that a value of any library is: Python's own, a Decimal or a Fraction, a
    scalar, or an array or tensor of one element on any device. True is 1, and NaN is a number.

    Text is not one, even "0.5", nor is a time, a complex number, or what stands for a missing
    value, such as None, `pandas.NA` and `numpy.ma.masked`. Raises ValueError if it is not a number;
    the error repeats the name."""
    # Any error that the value's own methods raise says that it is not a number.
    try:
        scalar = scalar_of(value)
        number = float(scalar) if _is_numeric(scalar) else None
        is_larger = number is not None and math.isinf(number) and scalar not in (number, -number)
    except OverflowError:
        number, is_larger = math.inf, True
    except Exception:  # noqa: BLE001
        number, is_larger = None, False
    if is_larger:
        raise ValueError(f"{name} is too large for a float")
    if number is None:
        raise ValueError(f"{name} must be a number, not {_shown(value)}")
    return number


def resource_of(value: Any) -> float:
    """The resource of a report. Raises ValueError if it is not a finite number, is true or false,
    or is larger than a float can count."""
    number = number_of("resource", value)
    if isinstance(scalar_of(value), bool):
        raise ValueError(f"resource must be a number, not {_shown(value)}")
    must = "it must say how far the trial has trained"
    if not math.isfinite(number):
        raise ValueError(f"resource {number} is not finite: {must}")
    if number > MOST_RESOURCE:
        raise ValueError(f"resource {number:g} is above 2**53, the largest: {must}")
    return number


def scalar_of(value: Any) -> Any:
    """The one element of an array or scalar as Python's, None if masked; others as they are."""
    if not callable(getattr(value, "item", None)):
        return value
    import numpy as np  # here: few training functions that need no numpy are slowed down by it

    kind = getattr(getattr(value, "dtype", None), "kind", None)
    is_absent = np.ma.is_masked(value) or kind in ("m", "M")  # whose items may be whole numbers
    return None if is_absent else value.item()


def _is_numeric(value: Any) -> bool:
    """True if it says itself how it is a number: float() also reads text and bytes."""
    kind = type(value)
    is_text = isinstance(value, str | bytes | bytearray)
    return not is_text and (hasattr(kind, "__float__") or hasattr(kind, "__index__"))


def _shown(value: Any) -> str:
    return code_of(value, LETTERS)


def samples_in(metrics: Mapping[str, Any]) -> list[float] | None:
    """The results by sample among metrics, a list under `SAMPLES`; None without any. Raises
    ValueError if one is not a number."""
    found: Any = metrics.get(SAMPLES) if isinstance(metrics, Mapping) else None
    if not hasattr(found, "__len__") or isinstance(found, str) or getattr(found, "ndim", 1) == 0:
        return None
    return [number_of(SAMPLES, result) for result in found]


def note_of_samples(results: Sequence[float]) -> Note:
    """A note of the results by sample: the mean of each of at most `MOST_SAMPLES` blocks."""
    blocks = min(len(results), MOST_SAMPLES)
    ends = [len(results) * block // blocks for block in range(blocks + 1)]
    means = [math.fsum(results[a:b]) / (b - a) for a, b in itertools.pairwise(ends)]
    return Note(kept={SAMPLES: {"count": len(results), "means": means}})


def numbers_of(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The metrics of a report by their names. Raises ValueError as the functions above."""
    if not hasattr(metrics, "items"):
        example = '{"loss": 0.5}'
        raise ValueError(f"metrics must be named, such as {example}, not {_shown(metrics)}")
    values = {}
    for name, value in metrics.items():
        if name == SAMPLES and samples_in(metrics) is not None:
            continue
        values[metric_name(name)] = number_of(f"metric {name!r}", value)
    return values


def numbers_among(values: Mapping[str, Any]) -> dict[str, float]:
    """The metrics among values that a program measures; what is not a number is left out."""
    found = {}
    for name, value in values.items():
        with suppress(ValueError):
            found[metric_name(name)] = number_of(name, value)
    return found


def plain_note(note: Note) -> Note:
    """A note as it can be kept. Raises ValueError if a part of it is not what `Note` says."""
    attributes, kept = _in_json(note.attributes), _in_json(note.kept)
    return Note(attributes, numbers_of(note.constraints), numbers_of(note.metrics), kept)


def _in_json(values: Mapping[str, Any]) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(json.dumps(dict(values), default=_scalar))
    except (TypeError, ValueError, RecursionError):
        what = f"a note's attributes must be values that JSON has, not {_shown(values)}"
        raise ValueError(what) from None
    return found


def _scalar(value: Any) -> Any:
    scalar = scalar_of(value)
    if scalar is value:
        raise TypeError
    return scalar


class Stopwatch:
    """The seconds that a trial has trained in all attempts, without those in which it waits.
    `before_s`: the seconds of earlier attempts. It runs from `go_on` to `pause`."""

    def __init__(self, before_s: float) -> None:
        self._before_s = before_s
        self._since: float | None = None

    @property
    def seconds(self) -> float:
        if self._since is None:
            return self._before_s
        return self._before_s + time.perf_counter() - self._since

    def go_on(self) -> None:
        if self._since is None:
            self._since = time.perf_counter()

    def pause(self) -> None:
        self._before_s = self.seconds
        self._since = None
