"""How much is tried: everything, or in a quick round (`--quick`) a share of it."""

quick = False
"""Set by conftest.py before it imports the tests."""

CASES = 2
"""In a quick round, the most cases of one test with many parameters, unless a mark says more."""


def examples(most: int) -> int:
    """How many random examples a property is tried with, of `most`."""
    return max(10, most // 5) if quick else most
