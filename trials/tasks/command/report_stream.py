"""The reports of a program as they come: in its output, or in a file that it writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from trials.contract import Setup
from trials.tasks.command.command import Command
from trials.tasks.command.output import Output
from trials.tasks.command.program import Source
from trials.tasks.command.readers import CsvRows, JsonLines, LineReader, PatternLines, ReportLine
from trials.tasks.command.report_lines import Lines, ReportFile

DELIMITERS = {".csv": ",", ".tsv": "\t"}
"""The delimiters of tables, by the end of the file's name."""


class ReportStream:
    """The reports of one start of a program. Its other output goes to the log.

    Args:
        setup: The unit of the budget, and the objective.
        folder: The folder that the program writes into.
        output: The log.
    """

    def __init__(self, command: Command, setup: Setup, folder: Path, output: Output) -> None:
        self._patterns = command.patterns
        self._output = output
        self._lines: dict[Source, Lines] = {"stdout": Lines(), "stderr": Lines()}
        self._file = None if command.reports is None else ReportFile(folder / command.reports)
        self._reader = self._reader_of(command, setup)

    def _reader_of(self, command: Command, setup: Setup) -> LineReader:
        delimiter = DELIMITERS.get(PurePosixPath(command.reports or "").suffix)
        if command.patterns:
            return PatternLines(command.patterns)
        if delimiter is None:
            return JsonLines(command.resource)
        metric = None if setup.goal is None else setup.goal.metric
        rows = CsvRows(command.resource, setup.budget.unit, metric, delimiter)
        if self._file is not None and self._file.first_line:
            rows.report_in(self._file.first_line)
        return rows

    @property
    def is_reread(self) -> bool:
        """The file was written anew, so that its reports may have been read before."""
        return self._file is not None and self._file.is_reread

    @property
    def repeats(self) -> bool:
        """A report may say again how far the trial has trained."""
        return self._reader.repeats or self.is_reread

    def taken(self, pieces: Iterable[tuple[Source, bytes]]) -> Iterator[Iterable[ReportLine]]:
        """The reports that are complete with pieces of output, and the new ones of the file, in
        portions.

        Raises:
            ProgramFailed: A report cannot be right, or the file cannot be read.
        """
        for source, piece in pieces:
            yield self._reports_in(self._lines[source].taken(piece), source)
        if self._file is not None:
            for lines in self._file.new_lines():
                yield self._reports_in(lines, "file")

    def rest(self) -> Iterator[Iterable[ReportLine]]:
        """The reports in last lines, whose ends never came, in portions."""
        for source, lines in self._lines.items():
            yield self._reports_in(lines.rest(), source)
        if self._file is not None:
            yield self._reports_in(self._file.rest(), "file")

    def _reports_in(self, lines: list[bytes], source: str) -> Iterator[ReportLine]:
        has_patterns = bool(self._patterns)
        printed = source == "stdout" or (source == "stderr" and has_patterns)
        is_read = source == "file" if self._file is not None else printed
        for line in lines:
            if source != "file" and has_patterns:
                self._output.write(line)  # before it is read: it may be refused
            report = self._reader.report_in(line) if is_read else None
            if source != "file" and not has_patterns and report is None:
                self._output.write(line)
            if report is not None:
                yield report
