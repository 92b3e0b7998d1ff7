"""Patterns that find reports in lines: what they read, and their mistakes."""

import threading

import pytest

from support.patience import PATIENCE_S
from trials.descriptions import report_pattern
from trials.descriptions.builtin import describe
from trials.descriptions.cells import PrintedNumbers
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
        ("{resource} {a}" + "(" * 400 + ")" * 400, "is nested too deeply"),
        ("{resource} {a}" + "x" * 1000, "is too long, or repeats its parts too often"),
        ("{resource} {a} ((x{1000}){0,1000}){1000,}", "repeats its parts too often"),
    ],
)
def test_a_pattern_that_cannot_be_right_is_a_mistake_in_the_study_file(report, said):
    task = {"kind": "command", "run": "train {x}", "report": report}
    problems = describe("command").problems_with(task)
    assert said in "; ".join(problem.what for problem in problems)


def test_metrics_that_no_pattern_names_are_not_reported():
    task = {"kind": "command", "run": "train", "report": "epoch {resource} acc {val/acc}"}
    assert describe("command").of_part(task).metrics == {"val/acc"}
    assert describe("command").of_part({"kind": "command", "run": "train"}).metrics is None


@pytest.mark.parametrize("text", ["-1.5e-3", "nan", "inf", ".5", "12", "+3."])
def test_numbers_are_read_as_programs_print_them(text):
    found = ReportPattern("loss={loss}").numbers_in(f"loss={text}% of 3")
    assert found["loss"] == pytest.approx(float(text), nan_ok=True)


@pytest.mark.parametrize(
    ("pattern", "line", "numbers"),
    [
        ("v{resource}.{acc}", "v1.25", {"resource": 1, "acc": 25}),
        ("ckpt-{resource}.pt {acc}", "ckpt-3.pt 1.", {"resource": 3, "acc": 1}),
        ("{resource}/9 {acc}%", "12/9 3.5%", {"resource": 12, "acc": 3.5}),
        ("epoch 0{resource}: {acc}", "epoch 07: -.5e-2", {"resource": 7, "acc": -0.005}),
        (r"(?<=h )0?{resource}(?= of).*acc {acc}", "h 07 of 9 acc 1", {"resource": 7, "acc": 1}),
        ("step {resource}e{acc}", "step 3e", {}),
    ],
)
def test_patterns_divide_what_a_program_prints_as_a_person_would(pattern, line, numbers):
    assert ReportPattern(pattern).numbers_in(line) == numbers


@pytest.mark.parametrize(
    ("pattern", "lines", "values"),
    [
        ("loss {loss}", ["loss 2,31", "loss 1,234"], [2.31, 1.234]),
        ("loss {loss}", ["loss 1,234.5", "loss 1,234"], [1234.5, 1234]),
        ("loss {loss}", ["loss 0.5", "loss 1,234"], [0.5, 1234]),
        ("loss {loss}", ["loss 0,5", "loss 1.234"], [0.5, 1234]),
        ("loss {loss}$", ["loss 0,83"], [0.83]),
        ("loss {loss}", ["loss 1.234,5", "loss 1.234.567,8"], [1234.5, 1234567.8]),
        (
            "loss {loss}",
            ["loss 1'234.5", "loss 1\u202f234,5", "loss 1_000"],
            [1234.5, 1234.5, 1000],
        ),
        ("loss {loss}", ["loss 1,5e-3", "loss 1e-3", "loss nan%"], [0.0015, 0.001, "nan"]),
        ("loss {loss}", ["loss 12ms", "loss 0ms", "loss 8.5ms"], [12, 0, 8.5]),
        ("acc {acc}", ["acc 3/10", "acc 9843/10000 (98%)"], [0.3, 0.9843]),
        ("acc {acc}/10", ["acc 3/10"], [3]),
        ("loss.*{loss}", ["loss 0.53", "loss: -1e-05"], [0.53, -1e-05]),
        ("{resource}: loss {loss}", ["1,000: loss 2", "2,000: loss 1"], [2, 1]),
        ("^{resource},{loss}", ["3,0.5", "4,12"], [0.5, 12]),
        (r"^{resource}\s*,\s*{loss}(?:,|$)", ["3,0.5", "4,12,7"], [0.5, 12]),
        ("{resource} of.*{loss}", ["3 of 100 0.5"], [0.5]),
    ],
)
def test_a_number_is_read_whole_by_the_programs_own_consistency(pattern, lines, values):
    found, printed = ReportPattern(pattern), PrintedNumbers()
    (name,) = set(found.names) - {"resource"}
    read = [found.numbers_in(line, printed)[name] for line in lines]
    assert read == pytest.approx([float(value) for value in values], nan_ok=True)


@pytest.mark.parametrize(
    ("pattern", "lines", "says"),
    [
        ("loss {loss}", ["loss 1,234"], "'1,234': is the comma a decimal point. print a decimal"),
        ("loss {loss}", ["loss 0,5", "loss 0.5", "loss 1,234"], "is the comma a decimal point"),
        ("loss {loss}", ["loss 3,12,7"], "'3,12,7', which is not one number; where the comma"),
        ("loss {loss}", ["loss 0.5,0.6"], "not one number"),
        ("loss {loss}", ["loss 1 234.5"], "may be two numbers; write the blank"),
        ("took {t}", ["took 900ms", "took 1.2s"], "t is '1.2s', and had ms before; print one"),
        ("acc {acc}", ["acc 81%", "acc 0.82"], "acc is '0.82', and had % before"),
    ],
)
def test_a_number_that_can_be_read_in_two_ways_is_refused(pattern, lines, says):
    found, printed = ReportPattern(pattern), PrintedNumbers()
    for line in lines[:-1]:
        found.numbers_in(line, printed)
    with pytest.raises(ValueError, match=says):
        found.numbers_in(lines[-1], printed)


@pytest.mark.parametrize("line", ["9" * 10_000, "epoch " + "9" * 10_000, "9." * 5_000])
@pytest.mark.parametrize(
    "pattern", ["{resource} {acc}", "epoch {resource}.*acc {acc}", r"epoch {resource}\s*.*?{acc}%"]
)
def test_a_long_run_of_digits_is_searched_at_once(pattern, line):
    found = ReportPattern(pattern)
    for _ in range(20):
        assert found.numbers_in(line) == {}


@pytest.mark.parametrize("pattern", ["{resource} {a} (x+x+)+y", "{resource} {a} (x|xx)+$"])
def test_a_search_that_would_never_end_is_ended_while_other_threads_go_on(pattern, monkeypatch):
    turns: list[int] = []
    ended = threading.Event()
    counting = threading.Thread(
        target=lambda: [turns.append(1) for _ in iter(lambda: ended.wait(0.001), True)]
    )
    counting.start()
    during, limit_s = 0, 0.1
    try:
        while during < 2 and limit_s < PATIENCE_S:  # a slow machine takes longer for two turns
            limit_s *= 2
            monkeypatch.setattr(report_pattern, "LIMIT_S", limit_s)
            before = len(turns)
            with pytest.raises(TimeoutError):
                ReportPattern(pattern).numbers_in("1 2 " + "x" * 5_000 + "zy")
            during = len(turns) - before
    finally:
        ended.set()
        counting.join()
    assert during > 1


def test_of_a_line_remains_what_a_terminal_shows():
    assert visible(b" 10%\r\x1b[1A\x1b[2K\x1b[32mdone\x1b[0m\r\n") == "done"
    assert visible(b"loss 12\b3 |\b/\n") == "loss 13 /"
