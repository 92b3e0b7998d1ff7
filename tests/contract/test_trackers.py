"""What every experiment tracker must have of a study, by the trackers' real packages.

They are not among the packages of the other tests. `.ci/run` installs them in an environment of
their own, and sets HPSEARCH_TESTS_REQUIRE_TRACKERS.
"""

import json
import os
import resource
import struct
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.plugins.mlflow.options import MlflowOptions
from hpsearch.plugins.tensorboard.options import TensorboardOptions
from hpsearch.running.tracking.senders import Senders, install, missing
from hpsearch.store.store import Store
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.trackers import TRACKERS, NamedTracker
from support.studies.tracked import Notebook, finish, points_of, recorded, tracked
from support.studies.tracked import send as send_to_notebook
from trials.checkpoints.folders import trial_folder

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the trackers' packages

REQUIRED = "HPSEARCH_TESTS_REQUIRE_TRACKERS"


@dataclass
class Found:
    """What a tracker has of a trial.

    Args:
        steps: Of the points of the loss, in order, each as often as it is there.
        losses: Their values.
        params: As texts.
        state: The trial's.
        value: The trial's; None if it has none.
        checkpoint: The place of its checkpoint; None if it has none.
    """

    steps: list[int]
    losses: list[float]
    params: dict[str, str]
    state: str
    value: float | None
    checkpoint: str | None = None


def in_mlflow(folder: Path, history: History) -> dict[int, Found]:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{folder}/mlflow.db")
    experiment = client.get_experiment_by_name("demo")
    (study,) = client.search_runs([experiment.experiment_id], "tags.`hpsearch.best_trial` != ''")
    assert study.data.tags["hpsearch.state"] == "finished"
    assert study.info.status == "FINISHED"
    nested = f"tags.`mlflow.parentRunId` = '{study.info.run_id}'"
    found = {}
    for run in client.search_runs([experiment.experiment_id], nested):
        tags, values = run.data.tags, run.data.metrics
        number = int(tags["hpsearch.trial"])
        assert number not in found, "a trial has one run"
        points = client.get_metric_history(run.info.run_id, "loss")
        wanted = {"complete": "FINISHED", "pruned": "KILLED", "failed": "FAILED"}
        assert run.info.status == wanted[tags["hpsearch.state"]]
        found[number] = Found(
            [point.step for point in points],
            [point.value for point in points],
            run.data.params,
            tags["hpsearch.state"],
            values.get("hpsearch.value"),
            tags.get("hpsearch.checkpoint"),
        )
    return found


def in_tensorboard(folder: Path, history: History) -> dict[int, Found]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    (study,) = (folder / "runs").iterdir()
    found = {}
    for trial in history.trials:
        events = EventAccumulator(str(study / trial_folder(trial.number)))
        events.Reload()
        scalars = events.Tags()["scalars"]
        points = events.Scalars("loss") if "loss" in scalars else []
        values = events.Scalars("hpsearch/value") if "hpsearch/value" in scalars else []
        hparams = events.PluginTagToContent("hparams")["_hparams_/session_start_info"]
        start = HParamsPluginData.FromString(hparams).session_start_info
        (table,) = events.Tensors("trial/text_summary")[-1].tensor_proto.string_val
        rows = [line.strip("| ").split(" | ") for line in table.decode().splitlines()[2:]]
        facts = {row[0]: row[1] for row in rows if len(row) == 2}
        found[trial.number] = Found(
            [point.step for point in points],
            [point.value for point in points],
            {name: str(value.number_value) for name, value in start.hparams.items()},
            facts["state"],
            values[-1].value if values else None,
            facts.get("checkpoint"),
        )
    return found


def in_wandb(folder: Path, history: History) -> dict[int, Found]:
    found = {}
    for file in folder.glob("wandb/offline-run-*/run-*.wandb"):
        number = file.stem.rpartition("-")[2]
        if number == "study":
            continue
        assert int(number) not in found, "a trial has one run"
        rows: list[dict[str, Any]] = []
        config: dict[str, Any] = {}
        summary: dict[str, Any] = {}
        for record in wandb_records(file):
            rows += [read(record.history.item)] if record.history.item else []
            config |= read(record.run.config.update) | read(record.config.update)
            summary |= read(record.summary.update)
        points = [row for row in rows if "loss" in row]
        found[int(number)] = Found(
            [row["_step"] for row in points],
            [row["loss"] for row in points],
            {"x": str(config["x"])},
            summary["hpsearch/state"],
            summary.get("hpsearch/value"),
            summary.get("hpsearch/checkpoint"),
        )
    return found


def in_trackio(folder: Path, history: History) -> dict[int, Found]:
    from trackio.sqlite_storage import SQLiteStorage

    found = {}
    for run in SQLiteStorage.get_run_records("hpsearch"):
        key = run["name"].split()[-1]
        config = SQLiteStorage.get_run_config("hpsearch", run["name"]) or {}
        if key == "study":
            assert config["hpsearch/state"] == "finished"
            continue
        assert int(key) not in found, "a trial has one run"
        rows = SQLiteStorage.get_logs("hpsearch", run["name"])
        points = [row for row in rows if "loss" in row]
        found[int(key)] = Found(
            [row["step"] for row in points],
            [row["loss"] for row in points],
            {"x": str(config["x"])},
            config["hpsearch/state"],
            config.get("hpsearch/value"),
            config.get("hpsearch/checkpoint"),
        )
    return found


def read(items: Any) -> dict[str, Any]:
    """Items of wandb's, by their names."""
    return {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}


def wandb_records(file: Path) -> Iterator[Any]:
    """The records of a run of wandb's: a log in LevelDB's format, of Protobuf messages."""
    from wandb.proto.wandb_internal_pb2 import Record

    content, at, whole = file.read_bytes(), 7, b""
    while at + 7 <= len(content):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        _, size, kind = struct.unpack("<IHB", content[at : at + 7])
        whole += content[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or the last part
            yield Record.FromString(whole)
            whole = b""


OPTIONS: dict[str, dict[str, str]] = {
    "mlflow": {"uri": "sqlite:///mlflow.db", "experiment": "demo"},
    "wandb": {"project": "demo", "mode": "offline"},
    "tensorboard": {},
    "trackio": {},
}
READERS: dict[str, Callable[[Path, History], dict[int, Found]]] = {
    "mlflow": in_mlflow,
    "wandb": in_wandb,
    "tensorboard": in_tensorboard,
    "trackio": in_trackio,
}


@dataclass
class Sent:
    """A study that was interrupted, sent, resumed, and sent again, twice.

    Args:
        folder: Where its study file would be, and the trackers' files are.
        history: The study.
        spec: Its file.
        places: Where the senders said it went.
    """

    folder: Path
    history: History
    spec: StudySpec
    places: list[str]


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Sent:
    folder = tmp_path_factory.mktemp("tracked")
    os.environ["TRACKIO_DIR"] = str(folder / "trackio")  # which is read once, at its import
    here = [NamedTracker.model_validate({kind: OPTIONS[kind]}) for kind in TRACKERS]
    trackers = [tracker for tracker in here if tracker.kind not in missing(here)]
    url = f"sqlite:///{folder}/study.db"
    spec = tracked(url, base=folder)
    send(url, spec, folder, trackers)
    finish(url, spec)
    send(url, spec, folder, trackers)
    places = send(url, spec, folder, trackers)
    return Sent(folder, recorded(url, spec), spec, places)


def send(url: str, spec: StudySpec, folder: Path, trackers: list[NamedTracker]) -> list[str]:
    """Send all that is new, as when a driver ends."""
    with closing(Store.open(url)) as store:
        senders = Senders(store, spec.study, str(folder / "home"), trackers, 120.0)
        senders.begin()
        return senders.end()


def need(kind: str) -> None:
    """Skip a test whose tracker is not installed, unless it must be."""
    if kind not in missing([NamedTracker.model_validate({kind: {}})]):
        return
    why = f"{kind} is not installed: {install([kind])}"
    if os.environ.get(REQUIRED):
        pytest.fail(why)
    pytest.skip(why)


@pytest.mark.parametrize("kind", TRACKERS)
def test_a_tracker_has_every_trial_with_each_point_once(kind, request):
    need(kind)
    sent: Sent = request.getfixturevalue("sent")
    assert any(place.startswith(f"{kind}: ") for place in sent.places)
    found = READERS[kind](sent.folder, sent.history)
    points = points_of(sent.history)
    assert sorted(found) == sorted(points)
    for trial in sent.history.trials:
        of_trial = found[trial.number]
        assert of_trial.steps == points[trial.number], f"trial {trial.number}"
        reported = [trial.reports[at].metrics["loss"] for at in sorted(trial.reports)]
        assert of_trial.losses == pytest.approx(reported)
        assert float(of_trial.params["x"]) == pytest.approx(trial.params["x"])
        assert of_trial.state == trial.state.value
        assert of_trial.value == pytest.approx(trial.value) or trial.value is None
        assert of_trial.checkpoint == (trial.best_checkpoint or trial.checkpoint)
    states = {trial.state for trial in sent.history.trials}
    assert states == {State.COMPLETE, State.PRUNED, State.FAILED}, "all are tried"


def test_wandb_without_a_key_is_told_of(tmp_path, monkeypatch, caplog):
    need("wandb")
    for name in ("WANDB_API_KEY", "WANDB_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    url = f"sqlite:///{tmp_path}/study.db"
    spec = tracked(url, base=tmp_path)
    online = NamedTracker.model_validate({"wandb": {"mode": "online"}})
    assert send(url, spec, tmp_path, [online]) == []
    (line,) = [each.getMessage() for each in caplog.records if each.name == "hpsearch"]
    assert "No API key configured" in line


def test_a_run_whose_answer_is_lost_is_not_created_twice(sqlite_url, tmp_path, monkeypatch):
    need("mlflow")
    from mlflow.tracking import MlflowClient

    from hpsearch.plugins.mlflow.tracker import MlflowTracker

    spec, notebook = tracked(sqlite_url), Notebook()
    send_to_notebook(sqlite_url, spec, tmp_path, notebook)
    (study, *_), (trial, *_) = notebook.studies, notebook.trials
    options = MlflowOptions(uri="sqlite:///mlflow.db", experiment="demo")
    tracker = MlflowTracker(options, tmp_path)
    create = MlflowClient.create_run

    def lose(client: MlflowClient, *args: Any, **named: Any) -> None:
        create(client, *args, **named)
        raise ConnectionError("no answer")

    for send_news in (lambda: tracker.send_study(study), lambda: tracker.send_trial(study, trial)):
        monkeypatch.setattr(MlflowClient, "create_run", lose)
        with pytest.raises(ConnectionError):
            send_news()
        monkeypatch.setattr(MlflowClient, "create_run", create)
        send_news()
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
    runs = client.search_runs([client.get_experiment_by_name("demo").experiment_id])
    assert len(runs) == 2, "of the study and of the trial"


def test_what_a_full_disk_has_no_room_for_is_sent_again_and_read(sqlite_url, tmp_path):
    need("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from hpsearch.plugins.tensorboard.tracker import TensorboardTracker

    spec, notebook = tracked(sqlite_url), Notebook()
    send_to_notebook(sqlite_url, spec, tmp_path, notebook)
    study = notebook.studies[0]
    trial = next(trial for trial in notebook.trials if trial.points)
    tracker = TensorboardTracker(TensorboardOptions(), tmp_path)
    with files_up_to(150), pytest.raises(OSError, match="too large"):
        tracker.send_trial(study, trial)
    tracker.send_trial(study, trial)
    tracker.close()
    folder = tmp_path / "runs" / study.label / trial_folder(trial.trial.number)
    assert len(list(folder.iterdir())) == 2, "one ends in half an event"
    events = EventAccumulator(str(folder))
    events.Reload()
    assert [point.step for point in events.Scalars("loss")] == [p.step for p in trial.points]


@contextmanager
def files_up_to(size_bytes: int) -> Iterator[None]:
    """Writing fails beyond this size of a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_the_versions_are_those_that_the_extras_allow():
    from packaging.requirements import Requirement

    for kind in TRACKERS:
        need(kind)
    for text in metadata.requires("hpsearch") or ():
        requirement = Requirement(text)
        if any(f'extra == "{kind}"' in text for kind in TRACKERS):
            assert metadata.version(requirement.name) in requirement.specifier
