"""What the live view says of a study as it runs."""

import io
import re
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from hpsearch.brain.reopening import reopen, train_in_full
from hpsearch.domain.facts import ErrorKind
from hpsearch.domain.lifecycle import State
from hpsearch.domain.numbers import in_unit, number
from hpsearch.views.live import LiveView, _budget, _line, _progress
from support.studies.small import Bowl, Simulation, spec_with
from support.studies.two_kinds import on_two_kinds


def watched(simulation: Simulation) -> str:
    """Everything a plain view prints of a study, from its first tick to its end."""
    view = LiveView(str)
    view._console = Console(file=io.StringIO(), width=80)
    while not simulation.study.finished:
        simulation.tick()
        view.watch(simulation.study, simulation.written[-1], simulation.executor.now)
    simulation.study.close(simulation.executor.now)
    view.watch(simulation.study, simulation.history.drain(), simulation.executor.now)
    output = view._console.file
    assert isinstance(output, io.StringIO)
    return output.getvalue()


def test_every_trial_that_comes_to_rest_has_a_line_of_its_own():
    lines = watched(Simulation(spec_with(), curves=Bowl(diverges=0.5))).splitlines()
    told = [line for line in lines if line.startswith("trial ")]
    assert any("paused at 1 epoch: loss " in line for line in told)
    assert any("complete at 9 epochs: loss " in line for line in told)
    assert any("failed" in line and "(diverged: the loss is not finite" in line for line in told)
    assert {line.split()[1] for line in told} == {str(n) for n in range(9)}


def test_a_complete_trial_whose_code_failed_after_its_last_report_says_so():
    simulation = Simulation(spec_with())
    simulation.run()
    trials = simulation.history.trials
    trial = next(trial for trial in trials if trial.state is State.COMPLETE)
    trial.attempts[-1].note = "ValueError: no test rows"
    told = _line(simulation.study, trial, is_known=True)
    assert told.endswith(" (after its last report: ValueError: no test rows)")


def test_a_value_that_was_shown_on_the_way_says_where_and_what_came_last():
    simulation = Simulation(spec_with())
    simulation.run()
    trial = next(each for each in simulation.history.trials if each.state is State.COMPLETE)
    first = min(trial.reports)
    trial.value = trial.reports[first].value
    last = number(trial.reports[max(trial.reports)].value)
    told = _line(simulation.study, trial, is_known=True)
    assert f"loss {number(trial.value)} at {in_unit(first, 'epochs')}, last {last}" in told


def test_the_start_of_a_long_error_is_told_on_one_line():
    simulation = Simulation(spec_with())
    simulation.run()
    trial = simulation.history.trials[0]
    trial.state, trial.error_kind = State.FAILED, ErrorKind.OUT_OF_MEMORY
    trial.error_text = "OutOfMemoryError: Tried to allocate 60 GiB.\n" + "Of the allocated " * 50
    told = _line(simulation.study, trial, is_known=True)
    assert "(out_of_memory: OutOfMemoryError: Tried to allocate 60 GiB. Of the allocated" in told
    assert told.endswith(" ...)")
    assert len(told) < 300


def test_the_standing_names_states_best_budget_pace_and_time_to_go_with_money_as_money():
    standing = [
        line
        for line in watched(Simulation(spec_with(), start=1000.0)).splitlines()
        if line.startswith("plain: ")
    ]
    assert "too early to tell" in standing[0]
    assert re.search(r"; about .* left$", standing[-1])
    assert "of 9; best loss 0." in standing[-1]
    assert max(map(len, standing)) < 120
    prices = {"A100": 3.0, "T4": 1.0}
    simulation = on_two_kinds({"cost": 0.5, "cost_per_gpu_hour": prices})
    simulation.run()
    paid = sum(trial.cost or 0.0 for trial in simulation.history.trials)
    assert f", cost {number(paid)} of 0.5" in _budget(simulation.study, 0.0)


def test_the_best_is_what_is_expected_to_be():
    simulation = Simulation(spec_with(budget={"trials": 2, "per_trial": {"epochs": 9}}))
    simulation.run()
    lucky, good = simulation.history.trials
    lucky.value, lucky.expected, lucky.expected_deviation = 0.1, 0.9, 0.0
    good.value, good.expected, good.expected_deviation = 0.5, 0.6, 0.1
    assert "; best loss 0.5 (trial 1); " in _progress(simulation.study, 1.0, 0.0, 0)


def test_the_parameters_of_a_trial_are_told_once_and_what_ends_with_the_study_in_one_line():
    simulation = Simulation(spec_with(budget={"trials": 30, "per_trial": {"epochs": 9}}))
    lines = watched(simulation).splitlines()
    told = [line for line in lines if line.startswith("trial ")]
    with_params = [line.split()[1] for line in told if "=" in line]
    assert sorted(with_params) == sorted({line.split()[1] for line in told})
    left = sum(trial.left_as is not None for trial in simulation.history.trials)
    assert left > 1
    told = f"{left} paused trials not trained further: others looked better"
    assert lines.count(told) == 1
    assert not any(" pruned at " in line for line in told)


def test_a_resumed_study_tells_only_what_ends_from_then_on():
    spec = spec_with()
    done = Simulation(spec).run().history
    number = next(trial.number for trial in done.trials if trial.state is State.PRUNED)
    train_in_full(done, number, has_checkpoint=True)
    reopen(done)
    for trial in done.trials:
        done.touch(trial)
    lines = watched(Simulation(spec, done, start=1000.0)).splitlines()
    assert [line for line in lines if line.startswith("trial ")] == [
        line for line in lines if line.startswith(f"trial {number} complete at 9 epochs: ")
    ]
    assert not any("not trained further" in line for line in lines)


class Deaf(Bowl):
    """Losses that depend on no parameter."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        return {"loss": 1 / (7 + resource)}


def test_parameters_without_effect_are_said_once_while_the_study_runs():
    lines = watched(Simulation(spec_with(), curves=Deaf()))
    assert lines.count("PARAMETERS WITHOUT EFFECT: ") == 1
    assert "have all reported loss 0." in lines
    assert lines.index("WITHOUT EFFECT") < lines.rindex(" complete at ")
    assert "WITHOUT EFFECT" not in watched(Simulation(spec_with()))
