"""Reports in event files, as TensorBoard's own package writes them.

`.ci/run` installs it beside the trackers'.
"""

import sys
from pathlib import Path
from typing import Any

import pytest

from contract.test_trackers import need
from hpsearch.cli.init import write_from_command
from hpsearch.cli.options import StudyOptions
from hpsearch.plugins.tensorboard import event_files
from hpsearch.plugins.tensorboard.event_files import EVENT_FILES, EventReader
from hpsearch.study_file.reading import load
from support.running.command_runs import first_of, log_of, reports_of
from trials import tasks
from trials.contract import Budget, Goal, ProgramFailed, Setup, TaskError, Unit
from trials.tasks.command.run import CommandRun

pytestmark = pytest.mark.filterwarnings("ignore")  # those of TensorBoard's package


@pytest.fixture(autouse=True)
def installed() -> None:
    need("tensorboard")


def write(folder: Path, *events: tuple[int, dict[str, float]]) -> None:
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder)) as writer:
        writer.add_text("note", "a text", 0)
        for step, metrics in events:
            for tag, value in metrics.items():
                writer.add_scalar(tag, value, step)


def read(folder: Path, folders: str, *metrics: str, resource: str = "step") -> list[dict[str, Any]]:
    return list(EventReader(folder, folders, resource, metrics).reports(at_rest=True))


def test_a_step_with_the_objective_is_a_report_with_the_newest_of_the_others(tmp_path):
    write(tmp_path / "runs" / "a", (1, {"loss": 3}), (2, {"acc": 0.5}), (3, {"loss": 1}))
    assert read(tmp_path, "runs/*", "acc") == [{"step": 2, "loss": 3, "acc": 0.5}]
    assert [row["step"] for row in read(tmp_path, "runs/**")] == [1, 2, 3], "without a study"
    assert read(tmp_path, "runs/*", "acc", "gone") == []
    assert read(tmp_path, ".", "runs/a/acc") == [{"step": 2, "runs/a/loss": 3, "runs/a/acc": 0.5}]


def test_a_tag_may_say_how_far_the_trial_is_and_only_what_rises_is_a_report(tmp_path):
    write(tmp_path, *((10 * n, {"epoch": n // 2, "acc": n}) for n in range(6)))
    rows = read(tmp_path, ".", "acc", resource="epoch")
    assert [(row["epoch"], row["acc"]) for row in rows] == [(0, 0), (1, 2), (2, 4)]


def test_folders_of_one_run_keep_their_names_apart_and_doubt_about_the_objective_is_an_error(
    tmp_path,
):
    for part, loss in (("train", 0.25), ("validation", 0.5)):
        write(tmp_path / "logs" / part, (1, {"epoch_loss": loss}))
    (row,) = read(tmp_path, "logs", "validation/epoch_loss")
    assert row == {"step": 1, "train/epoch_loss": 0.25, "validation/epoch_loss": 0.5}
    assert read(tmp_path, "logs/validation", "epoch_loss") == [{"step": 1, "epoch_loss": 0.5}]
    with pytest.raises(ProgramFailed, match="epoch_loss is in logs/train and in logs/validation"):
        read(tmp_path, "logs/**", "epoch_loss")


def test_events_are_read_as_they_come_and_a_step_waits_for_its_rest(tmp_path, monkeypatch):
    monkeypatch.setattr(event_files, "LOOK_S", 0.0)
    write(tmp_path / "whole", (1, {"acc": 0.5}), (2, {"acc": 0.75}))
    (whole,) = (tmp_path / "whole").iterdir()
    content = whole.read_bytes()
    (tmp_path / "runs").mkdir()
    grown = tmp_path / "runs" / whole.name
    grown.write_bytes(content[:-9])
    reader = EventReader(tmp_path, "runs", "step", ["acc"])
    assert list(reader.reports(at_rest=False)) == [], "more of the step may follow"
    assert [row["step"] for row in reader.reports(at_rest=False)] == [1]
    assert list(reader.reports(at_rest=True)) == [], "the second event is torn"
    grown.write_bytes(content)
    assert [row["acc"] for row in reader.reports(at_rest=True)] == [0.75]


def test_what_there_is_in_place_of_a_report_is_told(tmp_path):
    reader = EventReader(tmp_path, "runs/*", "step", ["acc"])
    assert list(reader.reports(at_rest=True)) == []
    assert "there is no event file in {folder}/runs/*" in reader.seen()
    write(tmp_path / "runs" / "a", (1, {"val/acc": 1, "loss": 1}))
    assert list(reader.reports(at_rest=True)) == []
    assert reader.seen() == "no event has acc with step; the tags are loss, val/acc"


PROGRAM = """
import os, sys, time
from torch.utils.tensorboard import SummaryWriter

first, last, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
writer = SummaryWriter(folder + "/runs/now")
held = open(folder + "/events.out.tfevents.held", "w")  # as some libraries do
if first == 1:
    open(folder + "/state", "w").close()
for epoch in range(first, last + 1):
    writer.add_scalar("val/acc", epoch / 8, epoch)
    if epoch != 3:
        writer.flush()
    while epoch == 2 and not os.path.exists(folder + "/go"):
        time.sleep(0.01)
"""


@pytest.fixture
def start(tmp_path: Path) -> Any:
    """Starts an attempt that writes the events of some epochs; all are closed in the end."""
    (tmp_path / "train.py").write_text(PROGRAM)
    runs: list[CommandRun] = []

    def begin(
        epochs: str,
        resume_from: Path | str | None = None,
        report: str = "runs/**",
        attempt: int = 1,
    ) -> CommandRun:
        line = f"{sys.executable} train.py {epochs} {{folder}}"
        stated = {"kind": "command", "run": line, "report": {"tensorboard": report}}
        setup = Setup(
            {}, 5, Budget(Unit.EPOCHS, 4.0, (4.0,)), tmp_path / "trial", resume_from,
            goal=Goal("val/acc", maximize=True), attempt=attempt,
            log=tmp_path / "logs" / f"{attempt}.log",
        )  # fmt: skip
        made = tasks.load(stated, tmp_path).start(setup, None)
        assert isinstance(made, CommandRun)
        runs.append(made)
        return made

    yield begin
    for each in runs:
        while not each.close():
            pass


def test_a_program_is_followed_while_it_trains_and_goes_on_with_its_own_events(start, tmp_path):
    first = start("1 4")
    assert first_of(first).resource == 1
    assert first_of(first).metrics == {"val/acc": 0.25}, "it waits after its second epoch"
    saved = first.save()
    assert saved is not None, "event files that are held open do not stand in its way"
    first.close()
    again = start("2 4", saved, attempt=2)
    (again._folder.path / "go").touch()
    found = [(each.resource, each.metrics["val/acc"]) for each in reports_of(again)]
    assert found == [(3, 0.375), (4, 0.5)], "those of the first attempt are not told again"
    assert "at 2 is of a part that was reported before" in log_of(tmp_path, 2)
    assert not [each for each in again.findings() if each.kind == "began_again"]


def test_a_program_without_its_files_fails_with_what_is_missing(start):
    with pytest.raises(ProgramFailed, match=r"no event file in \{folder\}/logs; let the"):
        reports_of(start("3 4", report="logs"))


def test_init_finds_event_files_where_nothing_that_is_printed_is_a_report(tmp_path):
    (tmp_path / "train.py").write_text(
        "import sys\nfrom torch.utils.tensorboard import SummaryWriter\n"
        "writer = SummaryWriter(sys.argv[6] + '/runs/May01')\n"
        "for n in range(3):\n"
        "    writer.add_scalar('train/loss', 1.0, n)\n"
        "    writer.add_scalar('val/acc', 0.5, n)\n"
        "writer.close()\n"
    )
    line = f"{sys.executable} train.py --lr 0.1 --epochs 3 --out runs"
    write_from_command(tmp_path / "study.yaml", line, StudyOptions())
    spec = load(tmp_path / "study.yaml")
    assert spec.task["report"] == {"tensorboard": "runs/*"}
    assert spec.task["resource"] == "step+1"
    assert spec.objective.metric == "val/acc"


def test_files_that_cannot_be_read_here_are_an_error_with_what_to_install(start, monkeypatch):
    monkeypatch.setattr(event_files, "find_spec", lambda name: None)
    assert EVENT_FILES.fault() is not None
    with pytest.raises(TaskError, match=r"task\.report: .* not installed here; pip install tens"):
        start("1 4")
