"""The metrics of a study as it runs, and where they are served."""

import math
import socket
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hpsearch.domain.lifecycle import State
from hpsearch.errors import UserError
from hpsearch.plugins.prometheus.metrics import StudyMetrics, serving
from support.studies.small import Bowl, Simulation, spec_with

Sample = tuple[str, tuple[str, ...]]


def read(url: str) -> dict[Sample, float]:
    """All samples, by their names and the values of their labels but `study`."""
    with urllib.request.urlopen(url) as answer:
        text = answer.read().decode()
    samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = dict(sample.labels)
            assert labels.pop("study") == "plain"
            samples[sample.name, tuple(labels.values())] = sample.value
    return samples


def watched(metrics: StudyMetrics, simulation: Simulation) -> None:
    """A study, watched from its first tick to its end."""
    while not simulation.study.finished:
        simulation.tick()
        metrics.watch(simulation.study, simulation.written[-1], simulation.executor.now)


def test_metrics_say_what_the_history_and_the_ledger_hold():
    budget = {"trials": 9, "gpu_hours": 2, "cost_per_gpu_hour": 3, "per_trial": {"epochs": 9}}
    simulation = Simulation(spec_with(budget=budget), curves=Bowl(diverges=0.5))
    with serving("plain", "0") as metrics:
        watched(metrics, simulation)
        samples = read(metrics.url)
    trials = simulation.history.trials
    for state in State:
        count = sum(trial.state is state for trial in trials)
        assert samples["hpsearch_trials", (state.value,)] == count
    assert samples["hpsearch_trials", ("failed",)] > 0
    reports = sum(len(changes.reports) for changes in simulation.written)
    assert samples["hpsearch_reports_total", ()] == reports > 9
    spent = sum(attempt.gpu_seconds for trial in trials for attempt in trial.attempts)
    assert samples["hpsearch_gpu_seconds_spent", ()] == pytest.approx(spent)
    assert samples["hpsearch_gpu_seconds_budget", ()] == 7200
    assert samples["hpsearch_cost_spent", ()] == pytest.approx(spent / 1200)
    values = [trial.value for trial in trials if trial.state is not State.FAILED]
    shown = [value for value in values if value is not None and math.isfinite(value)]
    assert samples["hpsearch_best_value", ("loss",)] == min(shown)
    assert samples["hpsearch_slots", ()] == len(simulation.study.slots)
    assert samples["hpsearch_slots_busy", ()] == 0


def test_what_a_study_does_not_have_is_not_among_its_metrics():
    with serving("plain", "0") as metrics:
        watched(metrics, Simulation(spec_with()))
        names = {name for name, _ in read(metrics.url)}
    assert "hpsearch_gpu_seconds_spent" in names
    assert not names & {"hpsearch_gpu_seconds_budget", "hpsearch_cost_spent"}


def test_metrics_of_a_study_that_is_resumed_know_its_best_trial():
    simulation = Simulation(spec_with())
    simulation.run()
    with serving("plain", "localhost:0") as metrics:
        metrics.watch(simulation.study, simulation.history.drain(), simulation.executor.now)
        samples = read(metrics.url)
    best = min(trial.value for trial in simulation.history.trials if trial.value is not None)
    assert samples["hpsearch_best_value", ("loss",)] == best
    assert samples["hpsearch_reports_total", ()] == 0


def test_a_port_is_free_again_when_the_study_has_ended():
    with serving("plain", "0") as metrics:
        port = metrics.url.rpartition(":")[2].removesuffix("/metrics")
    with serving("plain", port) as again:
        assert again.url == metrics.url


@pytest.mark.parametrize(
    "where", ["", "x", "-1", "65536", "9" * 5000, "٣٤", "1.2.3.4:x", "256.0.0.1:0", "a" * 99 + ":0"]
)
def test_what_is_no_port_is_refused(where):
    with pytest.raises(UserError, match="--metrics"), serving("plain", where):
        pass


def test_a_port_that_is_in_use_is_refused():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match="already in use"), serving("plain", str(port)):
            pass
