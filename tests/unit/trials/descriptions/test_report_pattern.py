"""Patterns that find reports in lines: what they read, and their mistakes."""

from __future__ import annotations

from typing import Any

import pytest

from trials.descriptions.builtin import describe
from trials.descriptions.report_pattern import ReportPattern, visible


@pytest.mark.parametrize(
    ("report", "said"),
    [
        ("epoch ({resource} acc {accuracy}", "is not a regular expression: missing )"),
        ("acc {accuracy}", "does not say how far the trial has trained; write {resource}"),
        ("epoch {resource}", "names no metric"),
        (["epoch {resource}", 3], "must be a list of texts, and has 3"),
        (["epoch {resource} acc {a}", "done"], "has a text without a name in braces"),
        ("{resource} {a} {a}", "has {a} twice"),
        ([], "must be a list of at least 1"),
    ],
)
def test_a_pattern_that_cannot_be_right_is_a_mistake_in_the_study_file(
    report: Any, said: str
) -> None:
    task = {"kind": "command", "run": "train {x}", "report": report}
    problems = describe("command").problems_with(task)
    assert said in "; ".join(problem.what for problem in problems)


def test_metrics_that_no_pattern_names_are_not_reported() -> None:
    task = {"kind": "command", "run": "train", "report": "epoch {resource} acc {val/acc}"}
    assert describe("command").of_part(task).metrics == {"val/acc"}
    assert describe("command").of_part({"kind": "command", "run": "train"}).metrics is None


@pytest.mark.parametrize("text", ["-1.5e-3", "nan", "inf", ".5", "12", "+3."])
def test_numbers_are_read_as_programs_print_them(text: str) -> None:
    found = ReportPattern("loss={loss}").numbers_in(f"loss={text}% of 3")
    assert found["loss"] == pytest.approx(float(text), nan_ok=True)


def test_of_a_line_remains_what_a_terminal_shows() -> None:
    assert visible(b" 10%\r\x1b[1A\x1b[2K\x1b[32mdone\x1b[0m\r\n") == "done"
