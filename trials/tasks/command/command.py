"""A command as a study file states it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trials.descriptions.command_line import CommandLine
from trials.descriptions.report_pattern import ReportPattern


@dataclass(frozen=True)
class Command:
    """A command.

    Args:
        base: The folder that it runs in.
        reports: The file of the attempt's folder with the reports; None for standard output.
        patterns: What finds reports in lines; empty if they are lines of JSON, or rows of CSV.
        resource: The key of a report that says how far the trial has trained.
        grace_s: Seconds that the program may take to end once it is asked to.
        ends_early: Whether it may end before its budget.
        resumes: Whether it continues from what it has written into its folder.
    """

    line: CommandLine
    base: Path
    reports: str | None
    patterns: tuple[ReportPattern, ...]
    resource: str
    grace_s: float
    ends_early: bool
    resumes: bool
