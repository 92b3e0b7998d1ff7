"""`hpsearch show`: trials side by side, and findings about the health of one."""

from __future__ import annotations

import json

from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from trials.contract import Finding, Severity


def test_what_differs_and_what_both_came_to(run, flowers):
    said = run("show", flowers, "0", "2")
    assert said.code == 0
    assert "parameters that differ" in said.out
    rows = {line.split()[0]: line.split()[1:] for line in said.out.splitlines() if line.strip()}
    assert rows["lr"] == ["0.1", "0.01"]
    assert rows["value"] == ["0.7", "0.9"]
    assert rows["3"] == ["0.7", "0.9"]  # at the same resource


def test_trials_with_the_same_parameters(run, flowers):
    assert "the same parameters" in run("show", flowers, "4", "5").out


def test_three_trials_of_the_only_study_as_json(run, flowers):
    found = json.loads(run("show", "0", "1", "2", "--format", "json").out)
    assert found["differing"]["opt"] == ["adamw", "lion", "lion"]
    assert found["values"] == {"0": [0.7], "1": [None], "2": [0.9]}


def test_what_cannot_be_compared_is_refused(run, flowers):
    for words in (("0", "0"), (flowers, "0", "0"), (flowers, "0", "x")):
        said = run("show", *words)
        assert said.code == 2, words
        assert "hpsearch show NAME 7 12" in said.err
    said = run("show", flowers, "0", "1", "--watch")
    assert said.code == 2
    assert "--watch follows a log" in said.err
    said = run("show", flowers, "0", "99")
    assert said.code == 2
    assert "has no trial 99" in said.err


SPIKES = Finding("gradient_spikes", "the gradient norm was 55 around step 41", Severity.WARNING)


def test_findings_are_shown_with_their_evidence(run, save):
    ill = Trial(0, State.COMPLETE, {"lr": 0.1}, value=0.5, findings=[SPIKES])
    save("garden", [ill, Trial(1, State.COMPLETE, {"lr": 0.1}, value=0.5)])
    said = run("show", "garden", "0")
    assert said.code == 0
    for word in ("health", *SPIKES.as_plain().values()):
        assert word in said.out
    assert json.loads(run("show", "garden", "0", "--format", "json").out)["findings"] == [
        SPIKES.as_plain()
    ]


def test_a_healthy_trial_shows_no_findings(run, save):
    save("garden", [Trial(0, State.COMPLETE, {"lr": 0.1}, value=0.5)])
    assert "health" not in run("show", "garden", "0").out
    assert json.loads(run("show", "garden", "0", "--format", "json").out)["findings"] == []
