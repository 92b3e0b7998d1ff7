"""Programs that are written for a library, which another package brings."""

import sys
from importlib.metadata import EntryPoint

import pytest

from support.running.command_runs import reports_of
from trials.contract import Problem, ProgramFailed, TaskError
from trials.descriptions import programs
from trials.descriptions.command import COMMAND
from trials.descriptions.command_line import CommandLine
from trials.descriptions.programs import Surroundings

SCRIPT = """
import theirs
with open(os.environ["REPORTS"], "w") as file:
    print(json.dumps({"round": 1, "loss": theirs.VALUE}), file=file)
print(json.dumps({"resource": 2, "loss": 9}))
"""


class Theirs:
    """Programs that find a module `theirs` with the value of `x`, and write into a file."""

    def line(self, text):
        return CommandLine(text.replace("PYTHON", sys.executable))

    def problems(self, task, names):
        return [Problem("task.config", f"{name} is reserved") for name in names if name == "y"]

    def surround(self, start):
        (start.home / "theirs.py").write_text(f"VALUE = {start.values['x']}")
        return Surroundings(
            words=self.line(start.task["run"]).filled(start.values),
            resource="round",
            reports=start.home / "reports",
            path=(start.home,),
            variables={"REPORTS": str(start.home / "reports")},
            summary=lambda: self.summary(start),
        )

    def summary(self, start):
        if start.task.get("config") == {"bad": True}:
            raise ProgramFailed("it has no result")
        return {"loss": 0.5}, "a summary was read"


THEIRS = Theirs()


@pytest.fixture
def library(monkeypatch):
    """Libraries that are installed: one that works, and one that cannot be imported."""
    group = programs.GROUP
    found = [
        EntryPoint("theirs", f"{__name__}:THEIRS", group),
        EntryPoint("gone", "gone_from_here:it", group),
    ]
    monkeypatch.setattr(programs, "entry_points", lambda group: found)
    programs._loaded.cache_clear()
    yield "theirs"
    programs._loaded.cache_clear()


def test_a_program_finds_what_its_library_gives_it_and_its_summary_is_the_end(
    library, start, python, tmp_path
):
    run = start(python(SCRIPT).replace(sys.executable, "PYTHON"), params={"x": 7}, library=library)
    assert [(each.resource, each.metrics) for each in reports_of(run)] == [
        (1.0, {"loss": 7.0}),
        (3.0, {"loss": 0.5}),
    ]
    assert run.finished == "budget used"
    log = (tmp_path / "logs" / "1.log").read_text()
    assert '{"resource": 2, "loss": 9}\n' in log
    assert "a summary was read" in log


def test_a_program_without_the_result_that_its_library_needs_fails(library, start, python):
    run = start(python(SCRIPT), params={"x": 7}, library=library, config={"bad": True})
    with pytest.raises(ProgramFailed, match="it has no result"):
        reports_of(run)


def test_all_parameters_reach_a_program_of_a_library(library):
    task = {"kind": "command", "run": "a {b}", "library": library}
    assert COMMAND.problems_with_names(task, {"b": 1}, {"x": True}) == []
    problems = COMMAND.problems_with_names(task, {}, {"y": True})
    assert [each.where for each in problems] == ["task.run", "task.config"]


@pytest.mark.parametrize(
    ("changes", "where", "what"),
    [
        ({"library": "theires"}, "task.library", "did you mean theirs?"),
        ({"library": "gone"}, "task.library", "gone does not work: ModuleNotFoundError"),
        ({"library": "theirs", "report": "{resource} {loss}"}, "task.report", "takes the reports"),
        ({"config": {}}, "task.config", "add library"),
    ],
)
def test_a_mistake_with_a_library_is_named(library, changes, where, what):
    (problem,) = COMMAND.problems_with({"kind": "command", "run": "a", **changes})
    assert problem.where == where
    assert what in problem.what
    if where == "task.library":
        with pytest.raises(TaskError):
            programs.programs_of(changes)
