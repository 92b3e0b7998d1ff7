"""Readers of reports, by their form: JSON, patterns, CSV.

Each has the method `report_in`, which gives the report that a line completes, or raises
`ProgramFailed` for an impossible one.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from trials.contract import ProgramFailed
from trials.descriptions.report_pattern import LIMIT_S, RESOURCE, ReportPattern, visible
from trials.running.reported import MOST_RESOURCE, metric_name, number_of

LETTERS = 200
"""Letters of a line that a message repeats."""
MOST_SLOW = 10
"""Lines that may take too long to be searched."""
FROM_0 = "+1"
"""The end of the name of a resource that is counted from 0."""


@dataclass(frozen=True, slots=True)
class ReportLine:
    """A report as a program prints it."""

    resource: float
    metrics: dict[str, float]


class JsonLines:
    """Each report is a line with a JSON object. Values that are not numbers are left out.

    Args:
        resource: The key of the resource, with ``+1`` if it is counted from 0. An object without it
            is not a report.
    """

    def __init__(self, resource: str) -> None:
        self._resource = resource

    def report_in(self, line: bytes) -> ReportLine | None:
        text = visible(line).strip()
        if not (text.startswith("{") and text.endswith("}")):
            return None
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return None
        key = self._resource.removesuffix(FROM_0)
        if key not in found:
            return None
        values = {name: value for name, value in found.items() if isinstance(value, int | float)}
        return _report({**values, key: found[key]}, self._resource, text)


class PatternLines:
    """Each report is complete where all patterns have been found, in one line or in several.

    The first pattern begins a new report.

    Args:
        patterns: In the order of the program's lines.
        note: Takes remarks on lines that could not be searched.
    """

    def __init__(self, patterns: Sequence[ReportPattern], note: Callable[[str], None]) -> None:
        self._patterns = patterns
        self._note = note
        self._slow = 0
        self._names = {name for pattern in patterns for name in pattern.names}
        self._found: dict[str, float] = {}

    def report_in(self, line: bytes) -> ReportLine | None:
        text = visible(line)
        is_matched = False
        for pattern in self._patterns:
            numbers = self._numbers_in(text, pattern)
            if numbers and pattern is self._patterns[0]:
                self._found = {}
            is_matched = is_matched or bool(numbers)
            self._found |= numbers
        if not is_matched or self._names - self._found.keys():
            return None
        found, self._found = self._found, {}
        return _report(found, RESOURCE, text)

    def _numbers_in(self, text: str, pattern: ReportPattern) -> dict[str, float]:
        try:
            return pattern.numbers_in(text)
        except TimeoutError:
            self._slow += 1
            what = f"task.report: {pattern.text!r} was not found within {LIMIT_S:g} s"
            line = f"in the line {text[:LETTERS]}"
            if self._slow == MOST_SLOW:
                hint = "make it more exact, with fewer parts such as .*, or print shorter lines"
                raise ProgramFailed(f"{what} {line}, and so in {MOST_SLOW} lines: {hint}") from None
            self._note(f"{what} {line}, which is left out")
            return {}


class CsvRows:
    """Each report is a row of a table whose first row names the columns.

    Cells that are not numbers are left out, and so are rows without the study's objective.

    Args:
        resource: The column of the resource, with ``+1`` if it is counted from 0.
        objective: The study's objective; None for a trial without a study.
    """

    def __init__(self, resource: str, objective: str | None) -> None:
        self._resource = resource
        self._needed = [resource.removesuffix(FROM_0)]
        if objective is not None:
            self._needed.append(objective)
        self._columns: list[str] = []

    def report_in(self, line: bytes) -> ReportLine | None:
        text = visible(line).strip("\ufeff")
        cells = [cell.strip() for cell in next(csv.reader([text]), [])]
        if not self._columns:
            self._begin(cells)
            return None
        numbers = {}
        for name, cell in zip(self._columns, cells, strict=False):
            with suppress(ValueError):
                numbers[name] = float(cell)
        if not numbers.keys() >= set(self._needed):
            return None
        return _report(numbers, self._resource, text)

    def _begin(self, columns: list[str]) -> None:
        for needed in self._needed:
            if columns and needed not in columns:
                what = f"the table has no column {needed}; it has {', '.join(columns)[:LETTERS]}"
                hint = "name the one that counts under task.resource, and the objective's"
                raise ProgramFailed(f"{what}: {hint}")
        self._columns = columns


def _report(found: Mapping[str, Any], resource: str, line: str) -> ReportLine:
    key = resource.removesuffix(FROM_0)
    try:
        metrics = {metric_name(name): number_of(name, value) for name, value in found.items()}
    except ValueError as error:
        raise ProgramFailed(f"the report {line[:LETTERS]} is wrong: {error}") from None
    reached = metrics.pop(key) + float(resource.endswith(FROM_0))
    if not 0 < reached <= MOST_RESOURCE or isinstance(found[key], bool):
        what = f"the report {line[:LETTERS]} has a {key} of {found[key]}"
        hint = f"; if it counts from 0, write {key}{FROM_0} in the study file"
        must = "it must say how far the trial has trained, above 0"
        raise ProgramFailed(f"{what}: {must}{'' if reached else hint}")
    return ReportLine(reached, metrics)
