"""Each check finds what was built to show it, and nothing in a healthy run."""

import re
from dataclasses import replace

import pytest

from trials.contract import Severity
from trials.loop.telemetry import findings as diagnose
from trials.loop.telemetry.history import Losses, RunHistory


def falling(count, start=2.0, end=0.4):
    """A loss that falls, with the noise of batches."""
    return tuple(
        start * (end / start) ** (i / (count - 1)) * (1.1 if i % 3 else 0.9) for i in range(count)
    )


def reports(losses, train=None):
    train = train or [loss * 0.9 for loss in losses]
    return tuple(
        Losses(10 * (i + 1), *values) for i, values in enumerate(zip(train, losses, strict=True))
    )


HEALTHY = RunHistory(
    losses=falling(100),
    reports=reports([1.5, 1.1, 0.8, 0.6, 0.5, 0.45]),
)


def names(records):
    return [finding.name for finding in diagnose.diagnose(records)]


def test_a_healthy_run_and_one_without_records_have_no_findings():
    assert diagnose.diagnose(HEALTHY) == ()
    assert diagnose.diagnose(RunHistory()) == ()


SICK = {
    "divergence": (
        {"losses": (*falling(80), *[1.5] * 20)},
        r"rose from 0\.4\d+ around step \d+ to 1\.5 at the end",
    ),
    "overfitting": (
        {"reports": reports([1.0, 0.8, 0.9, 1.1, 1.3], train=[1.0, 0.7, 0.5, 0.3, 0.1])},
        r"since step 20 the validation loss rose from 0\.8 to 1\.3 "
        r"while the training loss fell from 0\.7 to 0\.1",
    ),
    "plateau": (
        {"reports": reports([1.0, 0.8, 0.8, 0.799, 0.8, 0.8])},
        r"was 0\.8 by step 20, and 0\.799 at best after",
    ),
}


@pytest.mark.parametrize("name", SICK)
def test_each_illness_is_found_with_its_evidence_and_nothing_else(name):
    changes, evidence = SICK[name]
    (finding,) = diagnose.diagnose(replace(HEALTHY, **changes))
    assert finding.name == name
    assert re.search(evidence, finding.evidence), finding.evidence


def test_every_check_is_tested_and_gives_its_finding_its_own_name():
    assert {check.__name__ for check in diagnose.CHECKS} == set(SICK)


WELL = {
    "one hard batch at the end": {"losses": (*falling(99), 1.5)},
    "a loss near zero with one hard batch": {"losses": (*falling(80, end=0.001), *[0.002] * 20)},
    "validation that falls more slowly than training": {
        "reports": reports([1.0, 0.9, 0.85, 0.83, 0.8], train=[1.0, 0.5, 0.3, 0.2, 0.1])
    },
    "too few steps to say": {"losses": (1.0, 9.0)},
}


@pytest.mark.parametrize("case", WELL)
def test_what_only_looks_ill_is_not_found(case):
    assert names(replace(HEALTHY, **WELL[case])) == []


def test_losses_that_are_no_numbers_are_divergence_wherever_they_are_seen():
    (trained,) = diagnose.diagnose(replace(HEALTHY, losses=(1.0, 0.9, float("nan"))))
    assert (trained.name, trained.severity) == ("divergence", Severity.CRITICAL)
    assert trained.evidence == "the training loss became nan at step 3"
    blind = RunHistory(reports=reports([1.0, float("inf")]))
    assert "validation loss became inf at step 20" in diagnose.diagnose(blind)[0].evidence


def test_the_most_severe_finding_comes_first():
    flat = reports([1.0, 0.8, 0.8, 0.799, 0.8, 0.8])
    sick = replace(HEALTHY, reports=flat, losses=(*falling(80), *[1.5] * 20))
    assert names(sick) == ["divergence", "plateau"]


def test_steps_are_counted_in_merged_points_too():
    (finding,) = diagnose.diagnose(replace(HEALTHY, every=8, losses=(1.0, 0.9, float("nan"))))
    assert finding.evidence == "the training loss became nan at step 17"
