"""MLflow: a run for the study, and nested in it one for each trial.

Runs are found again by their tags, `hpsearch.study` (the study's uid) and `hpsearch.trial`. Of a
point that is sent twice, MLflow's databases keep one.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlflow.entities import Metric, Param, Run, RunTag
from mlflow.tracking import MlflowClient

from hpsearch.domain.lifecycle import State
from hpsearch.domain.plugins.news import StudyNews, Tracker, TrialNews, named
from hpsearch.domain.records import StudyState
from hpsearch.plugins.mlflow.options import MlflowOptions
from trials.settings import as_scalar

STUDY_TAG, TRIAL_TAG = "hpsearch.study", "hpsearch.trial"
MOST_TAGS, MOST_METRICS = 90, 500
"""Tags or parameters, and metrics in one request; MLflow takes 100 and 1000."""
RETRIES = "2"
"""Of a request. With MLflow's own 7 a server that is not there is reported after four minutes."""
LONGEST_VALUE = 5000  # characters of a tag or parameter that every version of MLflow takes
_SQLITE = "sqlite:///"
_NOT_ALLOWED = re.compile(r"[^\w\-. /]")
_STATUS = {
    State.QUEUED: "SCHEDULED",
    State.RUNNING: "RUNNING",
    State.PAUSED: "SCHEDULED",
    State.COMPLETE: "FINISHED",
    State.PRUNED: "KILLED",
    State.FAILED: "FAILED",
}
_STUDY_STATUS = {
    StudyState.RUNNING: "RUNNING",
    StudyState.INTERRUPTED: "SCHEDULED",
    StudyState.FINISHED: "FINISHED",
    StudyState.FAILED: "FAILED",
}


class MlflowTracker(Tracker):
    """A tracking server or database of MLflow; without a name of either, one in `base`."""

    def __init__(self, options: MlflowOptions, base: Path) -> None:
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", RETRIES)
        uri = options.uri or os.environ.get("MLFLOW_TRACKING_URI") or f"{_SQLITE}mlflow.db"
        path = uri.removeprefix(_SQLITE)
        if path != uri:
            uri = f"{_SQLITE}{base / path}"
        elif not re.match(r"[a-z-]+:|databricks$", path):
            uri = str(base / path)
        self._client = MlflowClient(tracking_uri=uri)
        self._experiment = options.experiment
        self._runs: dict[str, str] | None = None
        """The ids of runs, by the number of the trial; that of the study under an empty text. None
        while it is not known which there are."""
        self._experiment_id: str | None = None

    @property
    def target(self) -> str:
        return f"{self._client.tracking_uri} {self._experiment or ''}"

    def send_study(self, study: StudyNews) -> None:
        record = study.record
        if self._experiment_id is None:
            self._experiment_id = self._experiment_of(study)
        run = self._run(study)
        at = record.ended or record.created
        metrics = _numbers(study.facts, ("gpu_seconds", "best_value"), at, study.done)
        tags = {
            **named(study.facts, "."),
            **{f"best.{name}": value for name, value in study.best_params.items()},
            "mlflow.note.content": f"```yaml\n{record.spec.strip()}\n```",
        }
        self._send(run, metrics, tags)
        self._set_status(run, _STUDY_STATUS[record.state], record.ended)

    def send_trial(self, study: StudyNews, news: TrialNews) -> None:
        trial = news.trial
        run = self._run(study, news)
        metrics = [
            Metric(_key(name), value, _milliseconds(point.at), point.step)
            for point in news.points
            for name, value in point.metrics.items()
        ]
        at = trial.ended or trial.started or study.record.created
        metrics += _numbers(news.facts, ("value", "gpu_seconds", "resource"), at, news.step)
        params = [Param(_key(name), _short(value)) for name, value in trial.params.items()]
        self._send(run, metrics, named(news.facts, "."), params)
        self._set_status(run, _STATUS[trial.state], trial.ended)

    def _experiment_of(self, study: StudyNews) -> str:
        name = self._experiment or study.record.name
        found = self._client.get_experiment_by_name(name)
        return str(found.experiment_id if found else self._client.create_experiment(name))

    def _runs_of(self, study: StudyNews) -> dict[str, str]:
        wanted = f"tags.`{STUDY_TAG}` = '{study.uid}'"
        runs: dict[str, str] = {}
        token = None
        while True:
            page = self._client.search_runs([self._experiment_id], wanted, page_token=token)
            run: Run
            for run in page:
                runs[run.data.tags.get(TRIAL_TAG, "")] = run.info.run_id
            token = page.token
            if not token:
                return runs

    def _run(self, study: StudyNews, news: TrialNews | None = None) -> str:
        """The id of a trial's run, or of the study's, which is created if it is not there."""
        key, name, began = "", study.record.name, study.record.created
        nested = {}
        if news is not None:
            key, name, began = news.run, f"{name} {news.run}", news.trial.started or began
            nested = {TRIAL_TAG: key, "mlflow.parentRunId": self._run(study)}
        tags = {"mlflow.runName": name, STUDY_TAG: study.uid, **nested}
        runs = self._runs_of(study) if self._runs is None else self._runs
        if key not in runs:
            self._runs = None  # if this fails, the run may be there all the same
            run = self._client.create_run(
                self._experiment_id, start_time=_milliseconds(began), tags=tags, run_name=name
            )
            runs[key] = run.info.run_id
        self._runs = runs
        return runs[key]

    def _send(
        self,
        run: str,
        metrics: Sequence[Metric],
        tags: Mapping[str, Any],
        params: Sequence[Param] = (),
    ) -> None:
        texts = [RunTag(_key(name), _short(value)) for name, value in tags.items()]
        self._client.log_batch(run, tags=texts[:MOST_TAGS], params=params[:MOST_TAGS])
        for begin in range(0, len(metrics), MOST_METRICS):
            self._client.log_batch(run, metrics=metrics[begin : begin + MOST_METRICS])

    def _set_status(self, run: str, status: str, ended: float | None) -> None:
        if ended is not None and status not in ("RUNNING", "SCHEDULED"):
            self._client.set_terminated(run, status, _milliseconds(ended))
        else:
            self._client.update_run(run, status)


def _numbers(facts: Mapping[str, Any], names: Sequence[str], at: float, step: int) -> list[Metric]:
    known = named(facts, ".", *names).items()
    return [Metric(name, float(value), _milliseconds(at), step) for name, value in known]


def _key(name: str) -> str:
    return _NOT_ALLOWED.sub("_", name)[:250]


def _short(value: Any) -> str:
    text = "null" if value is None else str(as_scalar(value))
    return text[:LONGEST_VALUE]


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
