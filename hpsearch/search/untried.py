"""The configurations of a search space that a study has tried, and those that it has not.

A configuration is that of its active parameters: numbers are the same on the same place of their
grid, or else to full precision. It is tried from the moment that a trial has it, whatever becomes
of the trial; only one whose workers were lost gives its configuration a second chance. Repeats do
not count.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from hpsearch.domain.facts import ErrorKind, Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.study_file.expressions.meaning import Expression
from hpsearch.study_file.space import Space, broken, draws, is_active, ordered

MOST = 100_000
"""The most configurations of a space that are listed; a larger one is never used up."""
MOST_LOOKS = 1_000_000
"""The most beginnings of configurations that are looked at to list them."""
DRAWS = 100
"""The most points that are drawn of a space that cannot be listed."""

Places: TypeAlias = tuple[Any, ...]
"""A configuration: by parameter, parents first, the place of its value; None if inactive."""


class Untried:
    """The tried and untried configurations of one study; a trial is read again when it changes."""

    def __init__(self, space: Space, requires: Sequence[Expression], history: History) -> None:
        self._space = {name: space[name] for name in ordered(space)}
        self._requires = requires
        self._history = history
        self._clock = 0
        self._counted = bytearray()
        """By trial, 1 if its configuration is counted."""
        self._counts: Counter[Places] = Counter()
        """The number of trials of each configuration."""
        self._lost: set[Places] = set()
        """Those whose only trial lost its workers."""
        always = [each.size for each in space.values() if not each.when]
        self._fewest = 1 if requires else math.prod(always)
        """Configurations that there are at least, without those that conditions add."""
        is_finite = all(math.isfinite(each.size) for each in space.values())
        self._has_end = is_finite and self._fewest <= MOST

    def refresh(self) -> None:
        """Read the trials that have changed; before a new one has parameters, so that it does not
        count itself."""
        self._clock, changed = self._history.changed_since(self._clock)
        for number in changed:
            self._read(self._history.trials[number])

    def knows(self, params: Mapping[str, Any]) -> bool:
        """True if a configuration was tried at the last `refresh`; inactive parameters do not
        count."""
        places = self._places_of(params)
        return places is not None and self._is_tried(places)

    @property
    def exhausted(self) -> bool:
        """True if no configuration is left."""
        if not self._has_end:
            return False
        self.refresh()
        tried = len(self._counts) - len(self._lost)
        if tried < self._fewest or self._all is None:
            return False
        return tried >= len(self._all)

    def anywhere(self, seed: int) -> dict[str, Any] | None:
        """One of the untried configurations, all with equal chances: of a space that is too large
        to be listed, the first of a few random ones that is untried, or else the last one. None if
        no random one keeps the requirements."""
        if self._all is not None:
            order = np.random.default_rng(seed).permutation(len(self._all))
            for index in order:
                if not self._is_tried(self._all[index]):
                    return self._params_at(self._all[index])
        params = None
        for params in islice(draws(self._space, self._requires, seed), DRAWS):
            if not self.knows(params):
                break
        return params

    def _read(self, trial: Trial) -> None:
        number = trial.number
        places = None if trial.role is Role.CONFIRM else self._places_of(trial.params)
        if places is None or not trial.params:
            return
        self._counted.extend(bytes(max(0, number + 1 - len(self._counted))))
        self._counts[places] += not self._counted[number]
        self._counted[number] = True
        if _is_lost(trial) and self._counts[places] == 1:
            self._lost.add(places)
        else:
            self._lost.discard(places)

    def _is_tried(self, places: Places) -> bool:
        return places in self._counts and places not in self._lost

    def _places_of(self, params: Mapping[str, Any]) -> Places | None:
        """The places of the active parameters; None for a configuration outside the space."""
        active: dict[str, Any] = {}
        places: list[Any] = []
        for name, parameter in self._space.items():
            if not is_active(parameter, active):
                places.append(None)
                continue
            if name not in params or parameter.problem_with(params[name]) is not None:
                return None
            active[name] = params[name]
            places.append(parameter.place_of(params[name]))
        return tuple(places)

    def _params_at(self, places: Places) -> dict[str, Any]:
        pairs = zip(self._space.items(), places, strict=True)
        return {name: each.value_at(place) for (name, each), place in pairs if place is not None}

    @cached_property
    def _all(self) -> list[Places] | None:
        """All configurations; None if they are too many to be listed."""
        found: list[Places] = []
        waiting: list[tuple[Places, dict[str, Any]]] = [((), {})] if self._has_end else []
        for _ in range(MOST_LOOKS):
            if not waiting:
                return found if self._has_end else None
            places, params = waiting.pop()
            if broken(self._requires, params) is not None:
                continue
            if len(places) == len(self._space):
                found.append(places)
            else:
                waiting += reversed(self._next(places, params))
            if len(found) > MOST:
                break
        return None

    def _next(self, places: Places, params: dict[str, Any]) -> list[tuple[Places, dict[str, Any]]]:
        """All beginnings of configurations with one more parameter."""
        name = list(self._space)[len(places)]
        parameter = self._space[name]
        if not is_active(parameter, params):
            return [((*places, None), params)]
        values = range(int(min(parameter.size, MOST_LOOKS)))
        return [((*places, at), {**params, name: parameter.value_at(at)}) for at in values]


def _is_lost(trial: Trial) -> bool:
    """True if a trial failed because its workers died."""
    return trial.state is State.FAILED and trial.error_kind is ErrorKind.LOST
