"""The reports of a program as they come: in its output, or in a file that it writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from trials.contract import ProgramFailed
from trials.descriptions.report_pattern import ReportPattern
from trials.tasks.command.output import Output
from trials.tasks.command.program import Source
from trials.tasks.command.readers import CsvRows, JsonLines, PatternLines, ReportLine

LONGEST_LINE = 1 << 20
"""Bytes. A longer line is not a report, and goes to the log in pieces."""


class ReportStream:
    """The reports of one start of a program. Its other output goes to the log.

    Args:
        patterns, resource: As in `run.Command`.
        file: The file with the reports; None for standard output.
        metric: The study's objective; None for a trial without a study.
        output: The log.
    """

    def __init__(
        self,
        patterns: Sequence[ReportPattern],
        file: Path | None,
        resource: str,
        metric: str | None,
        output: Output,
    ) -> None:
        self._patterns, self._file, self._output = patterns, file, output
        self._resource, self._metric = resource, metric
        self._stamp: object = None
        """The state of the file when it was last read."""
        self._is_table = not patterns and file is not None and file.suffix == ".csv"
        self._reader = self._new_reader()
        self._rests: dict[Source, bytes] = {"stdout": b"", "stderr": b""}

    def _new_reader(self) -> JsonLines | PatternLines:
        if self._patterns:
            return PatternLines(self._patterns, self._output.note)
        return JsonLines(self._resource)

    def reports(self, pieces: Iterable[tuple[Source, bytes]]) -> Iterator[ReportLine]:
        """The reports that are complete with pieces of output, and those of a changed file.

        Raises:
            ProgramFailed: A report cannot be right, or the file cannot be read.
        """
        for source, piece in pieces:
            *lines, rest = (self._rests[source] + piece).split(b"\n")
            for line in lines:
                yield from self._printed(line + b"\n", source)
            self._rests[source] = rest
            if len(rest) > LONGEST_LINE:
                yield from self._printed(rest, source)
                self._rests[source] = b""
        yield from self._in_file(ended=False)

    def last_reports(self) -> Iterator[ReportLine]:
        """The reports in last lines, which have no line end."""
        for source, rest in self._rests.items():
            if rest:
                yield from self._printed(rest, source)
        yield from self._in_file(ended=True)

    def _printed(self, line: bytes, source: Source) -> Iterator[ReportLine]:
        has_patterns = bool(self._patterns)
        if has_patterns:
            self._output.write(line)  # before it is read: it may be refused
        is_read = self._file is None and (source == "stdout" or has_patterns)
        report = self._reader.report_in(line) if is_read else None
        if report is not None:
            yield report
        elif not has_patterns:
            self._output.write(line)

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
            report = reader.report_in(line)
            if report is not None:
                yield report
