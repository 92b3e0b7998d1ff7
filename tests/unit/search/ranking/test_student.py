"""Student's t distribution, against scipy's."""

import pytest
from scipy.special import stdtr, stdtrit

from hpsearch.search.ranking import student


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 8, 31, 200])
def test_it_is_scipys(freedom: int) -> None:
    for t in (-30.0, -1.7, -0.1, 0.0, 0.4, 2.0, 80.0):
        assert student.below(freedom, t) == pytest.approx(stdtr(freedom, t), abs=1e-13)
    for probability in (0.5, 0.6, 0.95, 0.999):
        wanted = stdtrit(freedom, probability)
        assert student.quantile(freedom, probability) == pytest.approx(wanted, rel=1e-10, abs=1e-12)
