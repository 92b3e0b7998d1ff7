"""The metrics of a study while it runs, which a Prometheus reads from inside its driver."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from hpsearch.brain.study import Study
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.driver.loop import Driver, Took
from hpsearch.errors import UserError

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
LOOPBACK = "127.0.0.1"


class StudyMetrics:
    """Watches a study from inside its driver, between ticks. Each metric has the label `study`;
    `url` is where they are read."""

    def __init__(self, study: str) -> None:
        self.url = ""
        self.registry = CollectorRegistry()
        self._took: Took | None = None
        self._best: dict[str, float] | None = None
        """By objective, the best value of a trial so far; None before the first tick."""

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"hpsearch_{name}", text, ("study", *labels), registry=self.registry)

        def duration(name: str, text: str) -> Histogram:
            name = f"hpsearch_{name}_seconds"
            made = Histogram(name, text, ["study"], registry=self.registry, buckets=BUCKETS_S)
            return made.labels(study)

        trials = gauge("trials", "Trials by state.", "state")
        self._trials = {state: trials.labels(study, state.value) for state in State}
        reports = "Reports of trials since this driver began."
        counter = Counter("hpsearch_reports", reports, ["study"], registry=self.registry)
        self._reports = counter.labels(study)
        self._decision = duration("decision", "The time to decide on the events of a tick.")
        self._commit = duration("commit", "The time to write what was decided to the database.")
        self._slots = gauge("slots", "Slots that are ready.").labels(study)
        self._busy = gauge("slots_busy", "Slots with a trial.").labels(study)
        self._spent = gauge("gpu_seconds_spent", "GPU-seconds of ended attempts.").labels(study)
        self._budget = gauge("gpu_seconds_budget", "The limit on GPU-seconds, if there is one.")
        self._cost = gauge("cost_spent", "The price of the GPU-seconds spent, if it is known.")
        self._value = gauge("best_value", "The best value of a trial so far.", "objective")
        self._study = study

    def follow(self, driver: Driver) -> None:
        """Observe the durations of a driver that is about to start."""
        self._took = driver.took

    def watch(self, study: Study, changes: Changes, now: float) -> None:
        """Take in the commit of a tick."""
        for state, trials in self._trials.items():
            trials.set(study.history.states[state])
        self._reports.inc(len(changes.reports))
        if changes and self._took is not None:
            self._decision.observe(self._took.decision_s)
            self._commit.observe(self._took.commit_s)
        self._slots.set(len(study.slots))
        self._busy.set(len(study.live))
        ledger = study.spending.ledger
        self._spent.set(ledger.spent)
        if ledger.limit is not None:
            self._budget.labels(self._study).set(ledger.limit)
        cost = ledger.cost_of(ledger.spent)
        if cost is not None:
            self._cost.labels(self._study).set(cost)
        if self._best is None:  # it may be resumed
            self._best = {}
            self._note_best(study, study.history.trials)
        else:
            self._note_best(study, changes.trials)

    def _note_best(self, study: Study, trials: list[Trial]) -> None:
        """Take in the values of trials that keep the limits."""
        assert self._best is not None
        for trial in trials:
            if trial.state is State.FAILED or trial.violation:
                continue
            values = [trial.value] if trial.values is None else trial.values
            for objective, value in zip(study.spec.objectives, values, strict=False):
                if value is None or not math.isfinite(value):
                    continue
                best = self._best.get(objective.metric, value)
                better = min if objective.sign > 0 else max
                self._best[objective.metric] = better(best, value)
        for metric, value in self._best.items():
            self._value.labels(self._study, metric).set(value)


@contextmanager
def serving(study: str, where: str) -> Iterator[StudyMetrics]:
    """Serve the metrics of a study at ``PORT`` of this machine alone, or at ``HOST:PORT``, while
    the block lasts; port 0 takes a free one. Raises UserError if that cannot be listened on."""
    host, _, port = where.rpartition(":")
    host = host.strip("[]") or LOOPBACK
    hint = "give a port from 0 to 65535, or HOST:PORT with an address of this machine"
    if not (port.isascii() and port.isdecimal() and len(port) < 6 and int(port) < 2**16):
        raise UserError(f"--metrics {where[:80]}: this is not a port", hint)
    metrics = StudyMetrics(study)
    try:
        server, thread = start_http_server(int(port), host, metrics.registry)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UserError(f"--metrics {where[:80]}: cannot listen there: {why}", hint) from None
    shown = f"[{host}]" if ":" in host else host
    metrics.url = f"http://{shown}:{server.server_port}/metrics"
    try:
        yield metrics
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
