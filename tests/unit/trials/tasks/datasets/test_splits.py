"""The folds of data: their shares of every class, and groups that stay together."""

from collections import Counter

import numpy as np
import pytest

from trials.tasks.datasets.splits import in_fold


def folds_of(strata, groups, folds, seed=0):
    return [in_fold(number, folds, strata, groups, seed) for number in range(folds)]


def test_each_row_is_in_one_fold_and_each_fold_has_its_share_of_every_class():
    strata = ["a"] * 53 + ["b"] * 31 + ["c"] * 7
    folds = folds_of(strata, None, 5)
    assert (sum(map(np.array, (fold.astype(int) for fold in folds))) == 1).all()
    assert {int(fold.sum()) for fold in folds} <= {17, 18, 19, 20}
    for name, (fewest, most) in {"a": (10, 11), "b": (6, 7), "c": (1, 2)}.items():
        shares = [sum(fold[np.array(strata) == name]) for fold in folds]
        assert fewest <= min(shares) <= max(shares) <= most


def test_the_folds_are_the_same_for_every_trial_and_others_with_another_seed():
    first, again, other = (folds_of(["a"] * 40, None, 4, seed) for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_no_group_is_on_both_sides_of_a_fold_and_the_classes_keep_their_shares():
    generator = np.random.default_rng(0)
    groups = [f"patient {number}" for number in generator.integers(0, 40, 300)]
    strata = ["ill" if int(group[8:]) % 4 == 0 else "well" for group in groups]
    for fold in folds_of(strata, groups, 5):
        validated = {group for group, is_in in zip(groups, fold, strict=True) if is_in}
        trained = {group for group, is_in in zip(groups, fold, strict=True) if not is_in}
        assert not validated & trained
        counts = Counter(name for name, is_in in zip(strata, fold, strict=True) if is_in)
        whole = Counter(strata)
        assert counts["ill"] / whole["ill"] == pytest.approx(0.2, abs=0.1)
        assert counts["well"] / whole["well"] == pytest.approx(0.2, abs=0.05)


def test_what_alone_has_a_class_is_always_trained_on():
    strata = [*["a"] * 10, "alone", *["b"] * 6]
    groups = [*map(str, range(10)), "10", *["one"] * 6]
    for fold in folds_of(strata, None, 3):
        assert not fold[10]
    for fold in folds_of(strata, groups, 3):
        assert not fold[10:].any()
