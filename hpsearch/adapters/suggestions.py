"""The suggestions of an objective of Optuna, and the values that it is given for them.

Studies write values as JSON. Choices that JSON does not have, such as classes and tuples, are
written as text; the objective is given its own objects all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution


def refuse_name(name: object) -> None:
    """Refuse a name that no study file could have, with a `ValueError`."""
    if not isinstance(name, str) or not name.isprintable() or not name or name.startswith("$"):
        what = f"a parameter cannot be named {name!r}"
        raise ValueError(f"{what}: use letters, digits and marks such as _ or /")


def written(name: str, choices: Sequence[Any]) -> tuple[Any, ...]:
    """Choices as a study writes them.

    Raises:
        ValueError: Two of them are written alike, or one differently in each process.
    """
    found = tuple(each if _is_plain(each) else _text(name, each) for each in choices)
    different = {(type(each), each) for each in found}
    if len(different) < len(found):
        what = f"two choices of {name!r} are written alike: {', '.join(map(str, found))}"
        raise ValueError(f"{what}; give each a text of its own")
    return found


def _is_plain(choice: Any) -> bool:
    return choice is None or type(choice) in (bool, int, float, str)


def _text(name: str, choice: Any) -> str:
    """A choice by its name, or as Python writes it."""
    text = str(getattr(choice, "__qualname__", choice))
    if " at 0x" in text:  # where it lies in memory
        what = f"the choice {text} of {name!r} cannot be written down"
        raise ValueError(f"{what}; suggest a name for it, and look it up by that")
    return text


def fitting(name: str, value: Any, distribution: BaseDistribution) -> Any:
    """A value of the study, as its parameter has it: a number of the right kind, or the choice
    itself.

    Its range may be another one than the objective's: that of the study file counts.

    Raises:
        ValueError: It is of another kind, or not among the choices.
    """
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[place_of(name, value, distribution.choices)]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number:
        raise _unfit(name, value, "a number")
    if not isinstance(distribution, IntDistribution):
        return float(value)
    if value != int(value):
        raise _unfit(name, value, "a whole number")
    return int(value)


def place_of(name: str, value: Any, choices: Sequence[Any]) -> int:
    """The place of a value among choices, where true is not 1; a `ValueError` if there is none."""
    for place, choice in enumerate(choices):
        if choice == value and isinstance(choice, bool) is isinstance(value, bool):
            return place
    raise _unfit(name, value, f"one of {', '.join(map(str, choices))}")


def _unfit(name: str, value: Any, wanted: str) -> ValueError:
    what = f"{name} is {value!r} in this study, and the objective wants {wanted}"
    return ValueError(f"{what}; change {name} in the study file or the objective")
