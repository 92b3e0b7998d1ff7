"""Causes of a difference between a trial and its repetition."""

from __future__ import annotations

from hpsearch.domain.records import Environment
from hpsearch.reproduction.causes import causes
from support.studies.small import spec_with
from trials.running.arithmetic import Arithmetic


def test_causes_are_named_the_most_likely_first() -> None:
    spec = spec_with()
    packages = {"hpsearch": "0.1", "python": "3.11.1", "torch": "2.0"}
    before = Environment(1.0, "abc", packages, "CPU", "f" * 64)
    now = Environment(2.0, "abd", {**packages, "python": "3.12.1"}, "CPU", "e" * 64)
    computed = Arithmetic(2, device="one", versions={"numpy": "1", "torch": "2.0"})
    computes = Arithmetic(1, device="two", versions={"numpy": "2", "torch": "2.1"})
    found = causes(spec, (before, now), (computed, computes))
    begins = ["the module", "the code is of git", "device two", "threads 1", "torch", "numpy"]
    assert [phrase.startswith(begin) for phrase, begin in zip(found, begins, strict=False)] == (
        [True] * len(begins)
    )
    assert found[-1] == "python 3.12.1 instead of 3.11.1"
    assert causes(spec, (None, now), (None, computes)) == []
