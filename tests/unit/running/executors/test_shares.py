"""Studies on one cluster have slots in proportion to their priorities."""

from dataclasses import replace

from hpsearch.running.executors.shares import ClusterPart, fair

ONE = ClusterPart("GPU", 1.0, 1.0, holds=0)


def test_slots_are_shared_by_priorities_and_what_one_study_cannot_use_goes_to_the_others():
    assert fair([ONE, ONE, ONE], 6.0) == [2, 2, 2]
    assert fair([ONE, replace(ONE, priority=3.0)], 8.0) == [2, 6]
    few = replace(ONE, wants=1)
    assert fair([few, ONE, replace(ONE, priority=2.0)], 7.0) == [1, 2, 4]
    assert fair([ONE, ONE, ONE], 2.0) == [1, 1, 1]


def test_shares_are_of_gpus_whatever_slots_take():
    quarter = ClusterPart("GPU", 0.25, 1.0, holds=0)
    assert fair([ONE, quarter], 4.0) == [2, 8]
