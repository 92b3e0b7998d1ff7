"""The reports of a program as they come, in its output or in a file that it writes, and their
readers by form: JSON, patterns, CSV.

Readers of lines have the method `reports_in`, which gives the reports that a line completes, or
raises `ProgramFailed` for an impossible one. A row of a table may take several lines.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trials.contract import ProgramFailed
from trials.descriptions.cells import PrintedNumbers, number_in
from trials.descriptions.programs import Surroundings
from trials.descriptions.report_pattern import LIMIT_S, RESOURCE, ReportPattern, visible
from trials.running.reported import metric_name, number_of, resource_of, samples_in
from trials.tasks.command.output import Output
from trials.tasks.command.program import LineReader, Source

LONGEST_LINE = 1 << 20
"""Bytes. A longer line is not a report, and goes to the log in pieces."""
LETTERS = 200  # letters of a line that a message repeats
MOST_SLOW = 10  # lines that may take too long to be searched
CURSOR_UP, BAR = b"\x1b[A", b"%|"  # moves to the line above; a part of every bar of tqdm
FROM_0 = "+1"  # the end of the name of a resource that is counted from 0


class ReportStream:
    """The reports of one start of a program. Its other output goes to the log. `metric`: the
    study's objective; None for a trial without a study."""

    def __init__(
        self,
        patterns: Sequence[ReportPattern],
        around: Surroundings,
        metric: str | None,
        output: Output,
    ) -> None:
        self._patterns, self._output = patterns, output
        self._file, self._files = around.reports, around.files
        self._resource, self._metric = around.resource, metric
        file = self._file
        self._stamp: object = None
        """The state of the file when it was last read."""
        self._is_printed = self._file is None and self._files is None
        self._is_table = not patterns and file is not None and file.suffix == ".csv"
        self._reader = self._new_reader()
        self._printing: dict[Source, LineReader] = {"stdout": LineReader(), "stderr": LineReader()}
        self._searched: dict[Source, int] = {"stdout": 0, "stderr": 0}
        """Bytes of the rests in which reports were searched: a bar is drawn again in one line."""

    def _new_reader(self) -> JsonLines | PatternLines:
        if self._patterns:
            return PatternLines(self._patterns, self._output.note)
        return JsonLines(self._resource)

    def reports(
        self, pieces: Iterable[tuple[Source, bytes]], *, at_rest: bool = False
    ) -> Iterator[ReportLine]:
        """The reports that are complete with pieces of output, and those of changed files.
        `at_rest`: the program is suspended. Raises ProgramFailed if a report cannot be right, or a
        file cannot be read."""
        for source, piece in pieces:
            reader = self._printing[source]
            for line in reader.lines(piece):
                yield from self._printed(line + b"\n", source)
            yield from self._drawn(reader.rest, source)
            if len(reader.rest) > LONGEST_LINE:
                yield from self._printed(reader.rest, source)
                reader.rest = b""
        yield from self._in_file(ended=False)
        yield from self._in_files(at_rest=at_rest)

    def last_reports(self) -> Iterator[ReportLine]:
        """The reports in last lines, which have no line end."""
        for source, reader in self._printing.items():
            if reader.rest:
                yield from self._printed(reader.rest, source)
        if isinstance(self._reader, PatternLines):
            yield from self._reader.held()
        yield from self._in_file(ended=True)
        yield from self._in_files(at_rest=True)

    def _drawn(self, rest: bytes, source: Source) -> Iterator[ReportLine]:
        """The reports in the states of a bar whose line has no end yet."""
        begin, end = self._searched[source], rest.rfind(b"\r") + 1
        if end > begin and self._is_printed and isinstance(self._reader, PatternLines):
            self._searched[source] = end
            for state in rest[begin:end].split(b"\r"):
                yield from self._reader.reports_in(state, is_redrawn=True)

    def _printed(self, line: bytes, source: Source) -> Iterator[ReportLine]:
        has_patterns = bool(self._patterns)
        if has_patterns:
            self._output.write(line)  # before it is read: it may be refused
        is_read = self._is_printed and (source == "stdout" or has_patterns)
        begin, self._searched[source] = self._searched[source], 0
        reports = list(self._reader.reports_in(line[begin:])) if is_read else []
        yield from reports
        if not (reports or has_patterns):
            self._output.write(line)

    def _in_files(self, *, at_rest: bool) -> Iterator[ReportLine]:
        for numbers in () if self._files is None else self._files.reports(at_rest=at_rest):
            key = self._resource.removesuffix(FROM_0)
            yield _report(numbers, self._resource, f"at {key} {numbers[key]:g}")

    def _in_file(self, *, ended: bool) -> Iterator[ReportLine]:
        # All reports of a changed file: the program may write the whole file again.
        if self._file is None or not self._file.exists():
            return
        try:
            facts = self._file.stat()
            stamp = facts.st_ino, facts.st_size, facts.st_mtime_ns, ended
            if stamp == self._stamp:
                return
            self._stamp = stamp
            content = self._file.read_bytes()
        except OSError as error:
            raise ProgramFailed(f"reports cannot be read: {error}") from error
        if self._is_table:
            yield from CsvRows(self._resource, self._metric).reports_in(content, ended=ended)
            return
        reader = self._new_reader()
        lines = content.split(b"\n")
        for line in lines if ended else lines[:-1]:
            yield from reader.reports_in(line)


@dataclass(frozen=True, slots=True)
class ReportLine:
    resource: float
    metrics: dict[str, float]
    samples: list[float] | None = None


class JsonLines:
    """Each report is a line with a JSON object. Values that are not numbers are left out.
    `resource`: the key of the resource, with ``+1`` if it is counted from 0. An object without it
    is not a report."""

    def __init__(self, resource: str) -> None:
        self._resource = resource

    def reports_in(self, line: bytes) -> Iterator[ReportLine]:
        text = visible(line).strip()
        if not (text.startswith("{") and text.endswith("}")):
            return
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return
        key = self._resource.removesuffix(FROM_0)
        if key not in found:
            return
        values = {name: value for name, value in found.items() if isinstance(value, int | float)}
        report = _report({**values, key: found[key]}, self._resource, text)
        try:
            yield replace(report, samples=samples_in(found))
        except ValueError as error:
            raise ProgramFailed(f"the report {text[:LETTERS]} is wrong: {error}") from None


class PatternLines:
    """Each report is complete where all patterns have been found, in one line or in several.

    The first pattern begins a new report. Of a line that is drawn again and again, such as a
    progress bar, the last state with a resource is the report. Such a report is held until another
    resource is found, or the line ends. `patterns`: in the order of the program's lines."""

    def __init__(self, patterns: Sequence[ReportPattern], note: Callable[[str], None]) -> None:
        self._patterns = patterns
        self._note = note
        self._slow = 0
        self._names = {name for pattern in patterns for name in pattern.names}
        self._found: dict[str, float] = {}
        self._held: ReportLine | None = None
        self._printed = PrintedNumbers()
        self._has_bars_below = False
        """Lines of several bars end before the last state of a bar: the cursor moves up again."""

    def reports_in(self, line: bytes, *, is_redrawn: bool = False) -> Iterator[ReportLine]:
        self._has_bars_below = self._has_bars_below or CURSOR_UP in line
        *states, last = line.rstrip(b"\n").split(b"\r")
        for state in states:
            yield from self._reports_in(state, is_redrawn=True)
        may_follow = is_redrawn or (self._has_bars_below and BAR in last)
        yield from self._reports_in(last, is_redrawn=may_follow)
        if not (is_redrawn or self._has_bars_below or visible(last)):
            yield from self.held()

    def held(self) -> Iterator[ReportLine]:
        """The report that is held, if any: nothing of it follows."""
        if self._held is not None:
            report, self._held, self._found = self._held, None, {}
            yield report

    def _reports_in(self, state: bytes, *, is_redrawn: bool) -> Iterator[ReportLine]:
        text = visible(state)
        is_matched = False
        for pattern in self._patterns:
            numbers = self._numbers_in(text, pattern)
            if numbers and pattern is self._patterns[0]:
                if self._held is not None and numbers.get(RESOURCE) != self._held.resource:
                    yield from self.held()
                self._found = {}
            is_matched = is_matched or bool(numbers)
            self._found |= numbers
        if not is_matched or self._names - self._found.keys():
            return
        report = _report(self._found, RESOURCE, text)
        if self._held is not None and self._held.resource != report.resource:
            yield from self.held()
        if is_redrawn:
            self._held = report
            return
        self._held, self._found = None, {}
        yield report

    def _numbers_in(self, text: str, pattern: ReportPattern) -> dict[str, float]:
        try:
            return pattern.numbers_in(text, self._printed)
        except ValueError as error:
            where = f"in the line {text.strip()[:LETTERS]}"
            raise ProgramFailed(f"task.report: {pattern.text!r}: {error}; {where}") from None
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
    `resource`: the column of the resource, with ``+1`` if it is counted from 0. `objective`: the
    study's objective; None for a trial without a study."""

    def __init__(self, resource: str, objective: str | None) -> None:
        self._resource = resource
        self._needed = [resource.removesuffix(FROM_0)]
        if objective is not None:
            self._needed.append(objective)
        self._columns: list[str] = []
        self._printed = PrintedNumbers()
        self._mark = ","

    def reports_in(self, content: bytes, *, ended: bool) -> Iterator[ReportLine]:
        """The reports in the rows of a file that are whole. Unless it has ended, more may follow.
        Raises ProgramFailed for an impossible report, or a quote that is never closed."""
        text = content.decode("utf-8-sig", errors="replace")
        header = text.partition("\n")[0]
        self._mark = next((mark for mark in ",;\t" if mark in header), ",")
        whole = text if ended else text[: text.rfind("\n") + 1]
        for cells in _rows(whole, self._mark, ended=ended):
            yield from self._report_in([cell.strip() for cell in cells])

    def _report_in(self, cells: list[str]) -> Iterator[ReportLine]:
        if not self._columns:
            self._begin(cells)
            return
        row = dict(zip(self._columns, cells, strict=False))
        numbers = {}
        for name, cell in row.items():
            number = number_in(cell)
            if number is not None:
                numbers[name] = float(number)
        counter = self._needed[0]
        printed = {n: c for n, c in row.items() if n in self._needed or self._mark != ","}
        try:
            numbers |= self._printed.values_of(printed, counter)
        except ValueError as error:
            raise ProgramFailed(f"the row {self._mark.join(cells)[:LETTERS]}: {error}") from None
        if numbers.keys() >= set(self._needed):
            yield _report(numbers, self._resource, self._mark.join(cells))

    def _begin(self, columns: list[str]) -> None:
        for needed in self._needed:
            if columns and needed not in columns:
                what = f"the table has no column {needed}; it has {', '.join(columns)[:LETTERS]}"
                hint = "name the one that counts under task.resource, and the objective's"
                raise ProgramFailed(f"{what}: {hint}")
        self._columns = columns


class _Lines:
    """The lines of a text, and whether they have been used up."""

    def __init__(self, text: str) -> None:
        self._lines = io.StringIO(text, newline="")
        self.used_up = False

    def __iter__(self) -> Iterator[str]:
        yield from self._lines
        self.used_up = True


def _rows(text: str, mark: str, *, ended: bool) -> list[list[str]]:
    """The rows of a table that are whole: those that end before another line is asked for."""
    lines = _Lines(text)
    rows = []
    longest = csv.field_size_limit(max(len(text), csv.field_size_limit()))
    try:
        for row in csv.reader(lines, delimiter=mark, skipinitialspace=True):
            if not lines.used_up:
                rows.append(row)
            elif ended:
                hint = "close it, and write one inside of a cell twice"
                raise ProgramFailed(f"row {len(rows) + 1} has a quote that is never closed: {hint}")
    except csv.Error as error:
        raise ProgramFailed(f"the table cannot be read: {error}") from None
    finally:
        csv.field_size_limit(longest)
    return rows


def _report(found: Mapping[str, Any], resource: str, line: str) -> ReportLine:
    key = resource.removesuffix(FROM_0)
    try:
        metrics = {metric_name(name): number_of(name, value) for name, value in found.items()}
        reached = metrics.pop(key) + float(resource.endswith(FROM_0))
        resource_of(found[key])
        resource_of(reached)
    except ValueError as error:
        raise ProgramFailed(f"the report {line[:LETTERS]} is wrong: {error}") from None
    if reached <= 0:
        what = f"the report {line[:LETTERS]} has a {key} of {found[key]}"
        hint = f"; if it counts from 0, write {key}{FROM_0} in the study file"
        must = "it must say how far the trial has trained, above 0"
        raise ProgramFailed(f"{what}: {must}{'' if reached else hint}")
    return ReportLine(reached, metrics)
