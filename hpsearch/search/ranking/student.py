"""Student's t distribution for whole degrees of freedom, by its finite sums.

scipy has both functions, but takes longer to import than a reading takes to run.

Source: Abramowitz and Stegun, *Handbook of Mathematical Functions* (1964), 26.7.3 and 26.7.4.
"""

import math

HALVINGS = 64  # halvings of an interval after which its ends are the same number, or neighbours


def below(freedom: int, t: float) -> float:
    """The probability of a value below `t`."""
    angle = math.atan(t / math.sqrt(freedom))
    squared = math.cos(angle) ** 2
    is_odd = freedom % 2 == 1
    term = math.cos(angle) if is_odd else 1.0
    total = 0.0
    for step in range(3 if is_odd else 2, freedom + 1, 2):
        total += term
        term *= squared * (step - 1) / step
    within = math.sin(angle) * total
    if is_odd:
        within = (angle + within) * 2 / math.pi
    return (1 + within) / 2


def quantile(freedom: int, probability: float) -> float:
    """The value that a value is below with a probability between 0.5 and 1."""
    low, high = 0.0, 1.0
    while below(freedom, high) < probability:
        low, high = high, 2 * high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if below(freedom, middle) < probability:
            low = middle
        else:
            high = middle
    return high
