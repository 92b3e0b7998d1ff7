"""What is said beforehand of the time that a study takes."""

from __future__ import annotations

from typing import Any

import pytest

from hpsearch.views.forecast.plan import _limits, sentence
from support.studies.small import spec_with


@pytest.mark.parametrize(
    ("prices", "most", "rate"),
    [(2.5, "1 h", "2.5"), ({"A100": 2.5, "T4": 0.5}, "5 h", "A100=2.5 T4=0.5")],
)
def test_a_limit_on_money_lasts_as_long_as_the_cheapest_gpus(
    prices: Any, most: str, rate: str
) -> None:
    budget = {"cost": 5, "cost_per_gpu_hour": prices, "per_trial": {"epochs": 9}}
    spec = spec_with(budget=budget)
    said = f"the study will take at most {most} on 2 workers: its budget ends it"
    assert sentence(spec, {}, 2) == said
    assert _limits(spec) == {"cost": f"at most 5, at {rate} per GPU hour"}
