"""The metrics of a study while it runs, which a Prometheus reads from inside its driver."""

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from hpsearch.brain.study import Study
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.errors import UserError
from hpsearch.running.driver.loop import Driver, TickTimes
from hpsearch.running.study_run.watching import Watch

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


GAUGES = {
    "trials": ("Trials by state.", "state"),
    "slots": ("Slots that are ready.",),
    "slots_busy": ("Slots with a trial.",),
    "gpu_seconds_spent": ("GPU-seconds of ended attempts.",),
    "gpu_seconds_budget": ("The limit on GPU-seconds, if any.",),
    "cost_spent": ("The price of the GPU-seconds spent, if stated.",),
    "best_value": (
        "The best value that a trial has reported so far, on its way or at its end.",
        "objective",
    ),
}
"""The text of each gauge, and its label beside `study`."""
DURATIONS = {
    "decision": "The time to decide on the events of a tick.",
    "commit": "The time to write that to the database.",
}


class StudyMetrics(Watch):
    """The metrics of a study, each with the label `study`; `url` is where they are read."""

    def __init__(self, study: str) -> None:
        self.url = ""
        self._took = TickTimes()
        self.registry = registry = CollectorRegistry()
        self._study = study
        self._best: dict[str, float] | None = None
        """By objective, the best value of a trial so far; None before the first tick."""
        self._gauges: dict[str, Gauge] = {}
        for name, (text, *labels) in GAUGES.items():
            name_, labels_ = f"hpsearch_{name}", ["study", *labels]
            self._gauges[name] = Gauge(name_, text, labels_, registry=registry)
        text = "Reports of trials since this driver began."
        self._reports = Counter("hpsearch_reports", text, ["study"], registry=registry)
        self._durations: dict[str, Histogram] = {}
        for name, text in DURATIONS.items():
            name_ = f"hpsearch_{name}_seconds"
            made = Histogram(name_, text, ["study"], registry=registry, buckets=BUCKETS_S)
            self._durations[name] = made

    def begins(self, driver: Driver) -> None:
        self._took = driver.took

    def watch(self, study: Study, changes: Changes, now: float) -> None:
        for state in State:
            self._set("trials", study.history.states[state], state.value)
        self._reports.labels(self._study).inc(len(changes.reports))
        if changes:
            self._durations["decision"].labels(self._study).observe(self._took.decision_s)
            self._durations["commit"].labels(self._study).observe(self._took.commit_s)
        self._set("slots", len(study.slots))
        self._set("slots_busy", len(study.running))
        ledger = study.spending.ledger
        self._set("gpu_seconds_spent", ledger.spent)
        if ledger.budget.gpu_hours is not None:
            self._set("gpu_seconds_budget", ledger.budget.gpu_hours * 3600)
        if ledger.budget.cost_per_gpu_hour is not None:
            self._set("cost_spent", ledger.paid)
        trials = changes.trials
        if self._best is None:  # the study may be resumed
            self._best, trials = {}, study.history.trials
        for trial in trials:
            self._take_in(study, trial, self._best)

    def _set(self, gauge: str, value: float, *labels: str) -> None:
        self._gauges[gauge].labels(self._study, *labels).set(value)

    def _take_in(self, study: Study, trial: Trial, best: dict[str, float]) -> None:
        """Take in the values of a trial, if it keeps the limits."""
        if trial.state is State.FAILED or trial.violation:
            return
        values = [trial.value] if trial.values is None else trial.values
        for objective, value in zip(study.spec.objectives, values, strict=False):
            if value is None or not math.isfinite(value):
                continue
            metric = objective.metric
            better = min if objective.sign > 0 else max
            best[metric] = better(best.get(metric, value), value)
            self._set("best_value", best[metric], metric)


@contextmanager
def serving(study: str, where: str) -> Iterator[StudyMetrics]:
    """Serve the metrics of a study at ``PORT`` of this machine alone, or at ``HOST:PORT``, while
    the block lasts; port 0 takes a free one. Raises UserError if that cannot be listened on."""
    host, _, port = where.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    hint = "give a port from 0 to 65535, or HOST:PORT with an address of this machine"
    metrics = StudyMetrics(study)
    try:
        if not (port.isascii() and port.isdecimal()) or len(port) > 5:
            raise ValueError("its port is not a number")
        server, thread = start_http_server(int(port), host, metrics.registry)
    except (OSError, OverflowError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UserError(f"--metrics {where[:80]}: {why}", hint) from None
    shown = f"[{host}]" if ":" in host else host
    metrics.url = f"http://{shown}:{server.server_port}/metrics"
    print(f"metrics at {metrics.url}", file=sys.stderr, flush=True)  # noqa: T201 - for people
    try:
        yield metrics
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
