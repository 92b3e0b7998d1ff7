"""Changes of code under test: the brain is asked, and told how its runs end."""

import copy
from typing import Any

from hpsearch.brain.study import Study
from hpsearch.domain import events as ev
from hpsearch.domain.facts import CodeVerdict, ErrorKind, RequestKind, Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Request
from support.studies.small import brain, budget_of, search_by, spec_with

LIMITS = {"size": {"max": 10}}
SPEC = spec_with(search=search_by(), budget=budget_of(1), enqueue=[{"x": 0.3}], constraints=LIMITS)
BETTER, WORSE, BROKEN, LARGE = "better", "worse", "broken", "large"
GAINS = {(): 0.0, (BETTER,): 0.5, (WORSE,): -0.5, (BETTER, WORSE): 0.0, (LARGE,): 0.5}


def ask(study: Study, patch: str, why: str = "a thought") -> Request:
    content = {"why": why, "commit": "c0", "patch": patch, "harness": {"measure.py": "1f"}}
    request = Request(0, RequestKind.REVISE, content, "agent", 0.0)
    study.on_request(request, 0.0)
    return request


def report_of(launch: ev.Launch) -> ev.Event:
    patches = () if launch.code is None else launch.code.patches
    if BROKEN in patches:
        return ev.Failed(launch.trial, launch.attempt, ErrorKind.ERROR, "no such name")
    noise = launch.seed % 97 / 1000 + (launch.trial % 7) / 100
    metrics = {"loss": 1 + noise - GAINS[patches], "size": 50.0 if LARGE in patches else 5.0}
    return ev.Reported(launch.trial, launch.attempt, 9.0, metrics)


def begun(history: History | None = None, *patches: str) -> tuple[Study, list[ev.Command]]:
    """A study with two slots that is asked to test some patches before its first tick."""
    study = brain(SPEC, history)
    study.begin(0.0)
    for patch in patches:
        ask(study, patch)
    for n in range(2):
        study.on_event(ev.SlotUp(f"s{n}", "node", "cpu", 1.0), 0.0)
    return study, study.on_tick(0.0)


def searched() -> History:
    """A study whose only trial of the search is complete."""
    study, commands = begun()
    run(study, commands)
    study.close(1.0)
    return study.history


def run(study: Study, commands: list[ev.Command], most: int = 1000) -> list[ev.Launch]:
    """Let what is launched end at once, at most so many runs; returns it all."""
    launched: list[ev.Launch] = []
    while commands and len(launched) < most:
        command = commands.pop(0)
        if not isinstance(command, ev.Launch):
            continue
        launched.append(command)
        told = report_of(command)
        commands += study.on_event(told, 1.0)
        if isinstance(told, ev.Reported):
            commands += study.on_event(ev.Finished(command.trial, command.attempt), 1.0)
        commands += study.on_tick(1.0)
    return launched


def verdicts(study: Study) -> list[CodeVerdict]:
    return [each.verdict for each in study.history.revisions]


def test_changes_are_tested_in_pairs_on_one_seed_and_a_kept_one_is_the_base_of_the_next():
    study, commands = begun()
    ask(study, BETTER)  # no trial is complete yet
    assert not study.history.revisions
    first, *_ = commands
    study.on_event(report_of(first), 0.5)
    study.on_event(ev.Finished(first.trial, first.attempt), 0.5)
    ask(study, BETTER)
    ask(study, WORSE)
    launched = run(study, study.on_tick(1.0))
    assert verdicts(study) == [CodeVerdict.KEEP, CodeVerdict.DISCARD]
    assert {each.code.commit for each in launched} == {"c0"}
    tried = [each.code.patches for each in launched]
    assert set(tried) == {(BETTER,), (), (BETTER, WORSE)}
    assert tried.index((BETTER, WORSE)) > len(tried) - 1 - tried[::-1].index(())
    seeds = [
        {each.seed for each in pair} for pair in zip(launched[::2], launched[1::2], strict=True)
    ]
    assert all(len(pair) == 1 for pair in seeds)
    assert len(set(map(min, seeds))) == len(seeds)
    assert {each.params["x"] for each in launched} == {0.3}
    assert study.history.revisions[0].reason.startswith("better by 0.")
    assert study.finished


def test_runs_of_changed_code_are_no_trials_of_the_search_and_no_repeats_of_a_trial():
    study, commands = begun(searched(), BETTER)
    run(study, commands)
    runs = study.history.trials[1:]
    assert {(each.role, each.repeats) for each in runs} == {(Role.REVISION, None)}
    assert study.history.revisions[0].pairs * 2 == len(runs)
    forecast = study._context.searcher._forecast
    assert forecast is not None
    assert [forecast.reader.read(run) for run in runs] == [None] * len(runs)


def test_a_change_that_fails_is_discarded_with_its_error_and_ends_no_study():
    study, commands = begun(searched(), *[BROKEN] * 5)
    run(study, commands)
    assert verdicts(study) == [CodeVerdict.DISCARD] * 5
    assert study.history.revisions[4].reason.endswith("failed: no such name")
    assert study.reason == "all 1 trials have ended"


def test_a_change_that_exceeds_the_studys_limits_is_discarded_however_good_it_is():
    study, commands = begun(searched(), LARGE)
    run(study, commands)
    assert verdicts(study) == [CodeVerdict.DISCARD]
    assert study.history.revisions[0].reason.endswith("exceeds the study's limits")


def test_a_driver_that_takes_over_goes_on_with_the_pairs_that_are_there():
    study, commands = begun(searched(), BETTER)
    before = run(study, commands, most=5)
    left: History = copy.deepcopy(study.history)
    study, commands = begun(left)
    after = run(study, commands)
    assert verdicts(study) == [CodeVerdict.KEEP]
    complete = [each for each in study.history.trials if each.state is State.COMPLETE]
    assert len(complete) == len(study.history.trials)
    sides = [each.revision_run for each in study.history.trials[1:]]
    assert len(set(sides)) == len(sides)
    assert len(before) + len(after) >= len(sides)


def test_a_request_that_cannot_be_read_is_refused_and_changes_nothing():
    study = brain(SPEC, searched())
    study.begin(0.0)
    content: dict[str, Any] = {"why": "", "commit": "c0", "patch": "p"}
    request = Request(0, RequestKind.REVISE, content, "agent", 0.0)
    study.on_request(request, 0.0)
    assert request.refused is not None
    assert not study.history.revisions
