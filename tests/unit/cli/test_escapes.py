"""What users, trials and workers wrote is shown as text: it neither steers a terminal nor is taken
for markup."""

import io
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from hpsearch.cli.output import _Formatter as Formatter
from hpsearch.cli.output import note, show
from hpsearch.domain.facts import ErrorKind
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Attempt, Outcome, ReportRecord, Trial
from hpsearch.views.live import LiveView
from hpsearch.views.terminal.tables import table
from support.studies.small import Bowl, Simulation, spec_with

Run = Callable[..., Any]
Save = Callable[..., None]

EVIL = "a\x1b[35mb\x9b35mc\x07\x7f[/d]"
NAME = EVIL.replace("/", "")
"""A study's: no database may hold a slash there."""
SHOWN = r"a\x1b[35mb\x9b35mc\x07\x7f[/d]"
STEERING = ("\x1b[35m", "\x9b", "\x07", "\x7f")

COMMANDS = [
    *(["ls"], ["status"], ["best", "--top", "2"], ["trials"], ["show", "0"]),
    *(
        [name, "--format", form]
        for name in ("ls", "status", "best", "trials")
        for form in ("json", "yaml")
    ),
]


def evil_trials() -> list[Trial]:
    failed = Trial(
        0,
        State.FAILED,
        {EVIL: EVIL},
        error_kind=ErrorKind.ERROR,
        error_text=EVIL,
        resource=1.0,
        gpu_seconds=1.0,
    )
    done = Trial(
        1, State.COMPLETE, {EVIL: EVIL}, value=0.5, resource=1.0, gpu_seconds=1.0, checkpoint=EVIL
    )
    for trial, outcome in ((failed, Outcome.FAILED), (done, Outcome.COMPLETE)):
        trial.attempts = [
            Attempt(
                trial.number,
                1,
                EVIL,
                1.0,
                node=EVIL,
                device=EVIL,
                ended=2.0,
                outcome=outcome,
                gpu_seconds=1.0,
            )
        ]
        trial.attempts[0].note = EVIL
        trial.reports = {
            1.0: ReportRecord(trial.number, 1.0, 0.5, {"accuracy": 0.5, EVIL: 1.0}, 1, 1, 1.0, 1.0)
        }
    return [failed, done]


@pytest.mark.parametrize(
    "width", ["", "60", "300"], ids=["piped", "narrow terminal", "wide terminal"]
)
def test_control_characters_are_printed_as_escapes_wherever_they_stand(
    run, save, monkeypatch, width
):
    save(NAME, evil_trials())
    if width:
        monkeypatch.setenv("TTY_COMPATIBLE", "1")
        monkeypatch.setenv("COLUMNS", width)
    for command in COMMANDS:
        said = run(*command)
        assert said.code == 0, (command, said.err)
        assert not any(code in said.out + said.err for code in STEERING), command
        names = (SHOWN, SHOWN.replace("/", ""))
        is_cut = width == "60" or "--format" in command
        assert is_cut or any(name in said.out for name in names), command


def test_json_with_escapes_says_what_there_is(run, save):
    save("s", evil_trials())
    assert json.loads(run("trials", "--format", "json").out)[0]["params"] == {EVIL: EVIL}


def test_a_name_in_a_message_steers_nothing(run, flowers):
    said = run("status", EVIL)
    assert said.code == 2
    assert SHOWN in said.err


def test_lines_beside_tables_and_logs_steer_nothing(capsys):
    show(table([EVIL], [], None), EVIL)
    note(Formatter("%(message)s").format(logging.LogRecord("hpsearch", 30, "", 0, EVIL, (), None)))
    said = capsys.readouterr()
    assert said.out.splitlines() == [SHOWN, SHOWN]
    assert said.err == SHOWN + "\n"


def test_the_live_view_steers_nothing():
    simulation = Simulation(spec_with(), curves=Bowl(diverges=0.5))
    view = LiveView(str)
    view._console = Console(file=(said := io.StringIO()), width=300)
    while not simulation.study.finished:
        simulation.tick()
        for trial in simulation.written[-1].trials:
            trial.error_text = trial.error_text and EVIL
        view.watch(simulation.study, simulation.written[-1], simulation.executor.now)
    assert SHOWN in said.getvalue()
    assert not any(code in said.getvalue() for code in STEERING)
