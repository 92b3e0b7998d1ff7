"""Studies to ask, for tests: what to search, and a training that takes no time."""

from typing import Any

from hpsearch.asking.study import AskedStudy
from hpsearch.asking.trial import AskedTrial
from support.studies.small import Bowl

SPEC: dict[str, Any] = {
    "study": "asked",
    "seed": 1,
    "space": {"x": {"type": "float", "low": 0.0, "high": 1.0}},
    "objective": {"metric": "loss", "direction": "minimize"},
    "budget": {"trials": 6, "per_trial": {"epochs": 9}},
    "search": {"sampler": "random"},
}
CURVES = Bowl()


def spec_with(**changes: Any) -> dict[str, Any]:
    """The study file with some sections replaced."""
    return {**SPEC, **changes}


def asked(study: AskedStudy) -> AskedTrial:
    """A trial that a study hands out."""
    trial = study.ask()
    assert trial is not None
    return trial


def train(trial: AskedTrial, most: int = 1_000) -> bool:
    """Train a trial until it does not go on, or has reported so often; whether it would go on."""
    for epoch in range(trial.resource, trial.budget)[:most]:
        loss = CURVES.measure(trial.params, trial.seed, epoch + 1)
        if not trial.report(epoch + 1, loss, checkpoint=f"{trial.number}/{epoch + 1}"):
            return False
    return True


def work(study: AskedStudy) -> int:
    """Train everything that a study hands out; how many attempts that were."""
    attempts = 0
    while (trial := study.ask()) is not None:
        attempts += 1
        train(trial)
        study.tell(trial)
    return attempts
