"""Commands that another one measures, and changed code that runs apart from that."""

import subprocess
from pathlib import Path

import pytest

from support.files.changed_code import TASK, ChangedCode
from support.running.command_runs import reports_of
from trials import tasks
from trials.contract import Budget, Code, Problem, ProgramFailed, Setup, TaskError, Unit
from trials.descriptions.command import COMMAND
from trials.tasks.command.checkout import digests
from trials.tasks.command.run import CommandRun

NAMES = ["measure.py", "data/valid"]


@pytest.fixture
def code(tmp_path):
    return ChangedCode(tmp_path / "code")


@pytest.fixture
def start(code, tmp_path):
    """Starts the command of the folder, on request as changed code; all are closed in the end."""
    runs = []

    def begin(*patches: str, is_changed: bool = False, **changes: str):
        made = None
        if is_changed or patches:
            commit = code.git("rev-parse", "HEAD").strip()
            made = Code(commit, patches, digests(code.folder, NAMES))
        setup = Setup(
            {"x": 0.5},
            5,
            Budget(Unit.EPOCHS, 3.0, (3.0,)),
            tmp_path / "study" / "trial",
            log=tmp_path / "log",
            code=made,
        )
        runs.append(tasks.load({**TASK, **changes}, code.folder).start(setup, None))
        return runs[-1]

    yield begin
    for each in runs:
        while not each.close():
            pass


def loss_of(run: CommandRun) -> float:
    (report,) = reports_of(run)
    return report.metrics["loss"]


def log_of(tmp_path: Path) -> str:
    return (tmp_path / "log").read_text()


def test_its_one_report_is_what_measure_prints_of_its_folder(start, tmp_path):
    (report,) = reports_of(start())
    assert report.resource == 3.0
    assert set(report.metrics) == {"loss"}
    assert 'measured: {"loss":' in log_of(tmp_path)


def test_its_own_reports_are_log(start, code, tmp_path):
    code.change("import json", 'print(\'{"resource": 3, "loss": 0}\')\nimport json')
    assert loss_of(start()) > 0
    assert '{"resource": 3, "loss": 0}' in log_of(tmp_path)


def test_changed_code_runs_as_the_patch_has_it_and_the_folder_stays_as_it_is(start, code):
    patch = code.patch("guess = sum", "guess = 5 + 0 * sum")
    unchanged = loss_of(start(is_changed=True))
    assert unchanged == loss_of(start())
    assert loss_of(start(patch)) > unchanged + 5
    assert code.git("status", "--porcelain") == ""


def has_namespaces() -> bool:
    return subprocess.run(["unshare", "-rm", "true"], check=False).returncode == 0


@pytest.mark.skipif(not has_namespaces(), reason="this system has no user namespaces")
def test_changed_code_finds_the_harness_empty_and_cannot_write_into_the_folder(
    start, code, tmp_path
):
    reads = f"print(len(open({str(code.folder)!r} + '/data/va' + 'lid').read()), 'letters')\n"
    history = f"print(os.listdir({str(code.folder / '.git')!r}), 'of git')\n"
    writes = f"""
try:
    open({str(code.folder)!r} + '/new.py', 'w')
except OSError as error:
    print(error.strerror)
"""
    ends = "os.system('umount -a 2> /dev/null')\n"
    patch = code.patch("random.seed(seed)", ends + reads + history + writes + "random.seed(seed)")
    assert len(reports_of(start(patch))) == 1
    said = log_of(tmp_path)
    assert "0 letters" in said
    assert "[] of git" in said
    assert "Read-only file system" in said


def test_a_link_out_of_its_folder_is_not_measured(start, code):
    link = f"os.symlink({str(code.folder / 'measure.py')!r}, folder + '/guess.json')\nsys.exit()\n"
    with pytest.raises(ProgramFailed, match=r"guess\.json in its folder is a link to outside"):
        reports_of(start(code.patch("random.seed(seed)", link)))


def test_a_harness_that_has_changed_measures_no_changed_code(start, code):
    run = start(is_changed=True)
    (code.folder / "data" / "valid").write_text("0\n")
    with pytest.raises(ProgramFailed, match=r"data/valid of the harness has changed"):
        reports_of(run)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise SystemExit('no guess')", r"its measure ended with exit code 1: no guess"),
        ("print('0.5')", r"its measure printed no line such as"),
    ],
)
def test_a_measure_without_a_metric_fails_its_trial(start, code, text, said):
    (code.folder / "measure.py").write_text(text)
    with pytest.raises(ProgramFailed, match=said):
        reports_of(start())


@pytest.mark.parametrize(
    ("changes", "where", "what"),
    [
        ({"report": "{resource} {loss}"}, "task.report", "is not used beside measure"),
        ({"measure": "m.py"}, "task.measure", "does not use {folder}"),
        ({"measure": "m.py {folder} {x}"}, "task.measure", "has no {x}"),
        ({"harness": ["../data"]}, "task.harness", "inside the folder of the study file"),
        ({"measure": None}, "task.harness", "is what measure needs"),
    ],
)
def test_mistakes_around_measure_are_named(changes, where, what):
    task = {key: value for key, value in {**TASK, **changes}.items() if value is not None}
    (problem,) = COMMAND.problems_with(task)
    assert isinstance(problem, Problem)
    assert (problem.where, what in problem.what) == (where, True)


def test_a_harness_that_is_not_there_is_named(code):
    with pytest.raises(TaskError, match="there is no data/gone"):
        tasks.load({**TASK, "harness": ["data/gone"]}, code.folder)
