"""Readers of reports, by the form in which a program writes them: JSON, patterns, CSV.

Each has the method `report_in`, which is given one line after another, and says which report is
complete with it.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from trials.contract import ProgramFailed, Unit
from trials.descriptions.report_pattern import RESOURCE, ReportPattern, visible
from trials.tasks.function.reported import MOST_RESOURCE

LETTERS = 200
"""Of a line, in messages."""
FROM_0 = "+1"
"""Ends the name of a resource that is counted from 0."""


@dataclass(frozen=True, slots=True)
class ReportLine:
    """A report as a program prints it."""

    resource: float
    metrics: dict[str, float]


class LineReader(Protocol):
    """Finds reports in lines.

    Attributes:
        repeats: Whether lines may say again how far the trial has trained. Only the first one
            counts.
    """

    repeats: bool

    def report_in(self, line: bytes) -> ReportLine | None:
        """The report that is complete with a line; None if there is none.

        Raises:
            ProgramFailed: It is a report that cannot be right.
        """


class JsonLines:
    """Each report is a line with a JSON object. Values that are not numbers are left out.

    Args:
        resource: The key that says how far the trial has trained, with ``+1`` if it is counted from
            0. An object without it is not a report.
    """

    def __init__(self, resource: str) -> None:
        self.repeats = False
        self._key = resource.removesuffix(FROM_0)
        self._offset = float(resource.endswith(FROM_0))

    def report_in(self, line: bytes) -> ReportLine | None:
        text = visible(line).strip()
        if not (text.startswith("{") and text.endswith("}")):
            return None
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(found, dict) or self._key not in found:
            return None
        shown = text[:LETTERS]
        resource = _resource(found.pop(self._key), self._key, shown, self._offset)
        metrics = {}
        for name, value in found.items():
            if isinstance(value, int | float):
                metrics[_name(name, shown)] = _number(name, value, shown)
        return ReportLine(resource, metrics)


class PatternLines:
    """Each report is where all patterns have been found, in one line or in several.

    A report begins where the first pattern is found, so what was found before then is forgotten.

    Args:
        patterns: In the order in which the program prints what they find.
    """

    def __init__(self, patterns: Sequence[ReportPattern]) -> None:
        self.repeats = True
        self.is_matched = False
        """A pattern was found in the last line."""
        self._patterns = patterns
        self._names = {name for pattern in patterns for name in pattern.names}
        self._found: dict[str, float] = {}

    def report_in(self, line: bytes) -> ReportLine | None:
        text = visible(line)
        self.is_matched = False
        for pattern in self._patterns:
            numbers = pattern.numbers_in(text)
            if numbers and pattern is self._patterns[0]:
                self._found = {}
            self.is_matched = self.is_matched or bool(numbers)
            self._found |= numbers
        if not self.is_matched or self._names - self._found.keys():
            return None
        metrics, self._found = self._found, {}
        resource = metrics.pop(RESOURCE)
        return ReportLine(_resource(resource, RESOURCE, text[:LETTERS]), metrics)


class CsvRows:
    """Each report is a row of a table whose first row names the columns.

    Cells that are not numbers are left out, and so are rows without the study's objective.

    Args:
        resource: The column that says how far the trial has trained, with ``+1`` if it is counted
            from 0. ``resource`` stands for the unit of the budget, too: ``epoch`` or ``epochs``.
        unit: The unit of the budget.
        objective: The study's objective; None for a trial without a study.
    """

    def __init__(self, resource: str, unit: Unit, objective: str | None, delimiter: str) -> None:
        self.repeats = True
        key = resource.removesuffix(FROM_0)
        units = (unit.value, unit.value.removesuffix("s"))
        self._names = (key, *units) if key == RESOURCE else (key,)
        self._offset = float(resource.endswith(FROM_0))
        self._objective = objective
        self._delimiter = delimiter
        self._columns: list[str] = []
        self._key: str | None = None

    def report_in(self, line: bytes) -> ReportLine | None:
        text = visible(line).strip("\ufeff")
        row = next(csv.reader([text], delimiter=self._delimiter), [])
        cells = [cell.strip() for cell in row]
        if self._key is None or self._key in cells:
            self._begin(cells)
            return None
        numbers = {}
        for name, cell in zip(self._columns, cells, strict=False):
            number = _float(cell)
            if name and number is not None:
                numbers[name] = number
        if self._key not in numbers or self._objective not in (None, *numbers):
            return None
        shown = text[:LETTERS]
        resource = _resource(numbers.pop(self._key), self._key, shown, self._offset)
        return ReportLine(resource, {_name(name, shown): numbers[name] for name in numbers})

    def _begin(self, cells: list[str]) -> None:
        if not any(cells):
            return
        self._columns = cells
        self._key = next((name for name in self._names if name in cells), None)
        columns = ", ".join(cells)[:LETTERS]
        if self._key is None:
            what = f"the table has no column {' or '.join(self._names)}; it has {columns}"
            raise ProgramFailed(f"{what}: name the one that counts under task.resource")
        if self._objective not in (None, *cells):
            what = f"the table has no column {self._objective}; it has {columns}"
            raise ProgramFailed(f"{what}: name one of them as the objective")


def _float(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _resource(value: Any, key: str, shown: str, offset: float = 0.0) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number:
        raise ProgramFailed(f"the report {shown} has a {key} that is not a number")
    resource = _number(key, value, shown) + offset
    if not math.isfinite(resource) or not 0 < resource <= MOST_RESOURCE:
        what = f"the report {shown} has a {key} of {value}"
        hint = (
            f"; if it counts from 0, write {key}{FROM_0} in the study file" if not resource else ""
        )
        raise ProgramFailed(f"{what}: it must say how far the trial has trained, above 0{hint}")
    return resource


def _number(name: str, value: float, shown: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ProgramFailed(f"the report {shown} has a {name} too large for a float") from None


def _name(name: str, shown: str) -> str:
    if not name.isprintable() or not name or name.startswith("$"):
        what = f"the report {shown} has a metric that cannot be named {name!r}"
        raise ProgramFailed(f"{what}: use letters, digits and marks such as _ or /")
    return name
