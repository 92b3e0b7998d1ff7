"""The benchmark of warm starts: what its earlier studies tell, and how gains are counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hpsearch.domain.facts import EarlierStudy, EarlierTrial


@pytest.fixture
def warm_start(bench: Any) -> Any:
    return bench("warm_start")


TOLD = EarlierStudy("before", [EarlierTrial({"x": n}, n / 4) for n in range(20)])


def test_unrelated_studies_have_the_same_configurations_and_standings(warm_start: Any) -> None:
    rng = np.random.default_rng(0)
    same = warm_start._changed(TOLD, "all", rng)
    scrambled = warm_start._changed(TOLD, "scrambled", rng)
    backwards = warm_start._changed(TOLD, "reversed", rng)
    assert same == TOLD
    assert [trial.params["x"] for trial in backwards.trials] == list(range(19, -1, -1))
    found = [trial.params["x"] for trial in scrambled.trials]
    assert found != sorted(found)
    assert sorted(found) == list(range(20))
    for each in (scrambled, backwards):
        assert [trial.standing for trial in each.trials] == [n / 4 for n in range(20)]


def test_a_gain_is_over_the_cold_study_of_the_same_task_and_seed(warm_start: Any) -> None:
    results = {}
    for seed, cold in enumerate((0.5, 0.9)):
        for case, regret in (("cold", cold), ("all", cold - 0.2)):
            study = warm_start.Study("recorded", "images", seed, case)
            marks = len(warm_start.MARKS)
            results[study] = {"regret": [regret] * marks, "decision_ms": 3.0}
    cold, told = warm_start.rows_of(results, ["cold", "all"])
    assert cold["10%"] == pytest.approx(0.7)
    assert told["gain_10%"] == pytest.approx(0.2)
    assert told["error_10%"] == pytest.approx(0.0)
    assert any("helps at 10%" in verdict for verdict in warm_start.verdicts([told]))


@pytest.mark.thorough
def test_a_study_learns_nothing_of_its_own_task(warm_start: Any) -> None:
    terms = warm_start.Terms(None, None, trials=2, workers=2, sources=3)
    names = [task.name for task in warm_start._tasks(terms, "recorded")]
    sources = {}
    for name in names:
        sources["recorded", name, 0] = warm_start.finished(("recorded", name, 0), terms)
    for case, most in (("cold", 0), ("one", 1), ("all", 3)):
        told = warm_start.told(terms, warm_start.Study("recorded", "images", 0, case), sources)
        assert "images" not in [each.name for each in told]
        assert len(told) <= most
        assert all(set(trial.params) for each in told for trial in each.trials)
