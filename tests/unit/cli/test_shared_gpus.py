"""How many trials share a GPU, in all places where a study is looked at."""

import json

import pytest

from hpsearch.domain.facts import SHARING
from hpsearch.domain.lifecycle import State
from unit.conftest import SPEC, _trial

FOUND = {
    "H100 <b>": {"trials": 4, "most": 7, "is_final": True},
    "T4": {"trials": 1, "most": 16, "is_final": False},
}
PRICED = SPEC.replace("gpu_hours: 1", "gpu_hours: 1, cost_per_gpu_hour: 2")
SAID = (
    "4 trials on each H100 <b>; 1 trial on each T4 so far; an hour of a trial costs 0.5 on H100 "
    "<b>; an hour of a trial costs 2 on T4"
)


@pytest.fixture
def shared(save) -> str:
    trials = [_trial(number, State.COMPLETE, {"lr": 0.1}, 0.5 + number / 10) for number in (0, 1)]
    spec = PRICED + "resources: {gpu: share}\n"
    save("shared", trials, spec, system_attrs={SHARING: FOUND})
    return "shared"


@pytest.mark.parametrize("command", [["status"], ["report"]])
def test_it_is_said_with_the_price_of_a_trial(command, shared, run):
    name, *options = command
    said = run(name, shared, *options)
    assert said.code == 0, said.err
    text = " ".join(said.out.replace("\\", "").replace("&lt;", "<").replace("&gt;", ">").split())
    assert SAID in text


def test_programs_get_what_was_found(shared, run):
    assert json.loads(run("status", shared, "--format", "json").out)["sharing"] == FOUND


def test_where_gpus_are_not_shared_nothing_is_said(flowers, run):
    assert "trials on each" not in run("status", flowers).out
    assert json.loads(run("status", flowers, "--format", "json").out)["sharing"] == {}
