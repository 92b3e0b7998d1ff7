"""`hpsearch show` tells a trial's health."""

from __future__ import annotations

import json

from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from trials.contract import Finding, Severity

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
