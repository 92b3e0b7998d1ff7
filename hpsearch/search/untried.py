"""The configurations of a search space that a study has tried, and those that it has not.

A configuration is that of its active parameters: numbers are the same on the same place of their
grid, or else to full precision. It is tried from the moment that a trial has it, whatever becomes
of the trial; only one whose workers were lost gives its configuration a second chance. Repeats do
not count.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from hpsearch.domain.facts import ErrorKind
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.study_file.expressions.meaning import Expression
from hpsearch.study_file.parameters import Parameter
from hpsearch.study_file.space import Space, draws, is_active, most_draws, ordered

MOST = 100_000  # the most configurations of a space that are listed; a larger one is never used up
MOST_SLICES, AT_ONCE = 100, 20
"""The most slices in which they are listed, one for each trial of the study, and the most of them
at once, which take some seconds: a driver must not lose its lease."""
DRAWS = 100  # the most points that are drawn of a space that cannot be listed

Places: TypeAlias = tuple[Any, ...]
"""A configuration: by parameter, parents first, the place of its value; None if inactive."""


class Untried:
    """The tried and untried configurations of one study; a trial is read again when it changes."""

    def __init__(self, space: Space, requires: Sequence[Expression], history: History) -> None:
        self._space = {name: space[name] for name in ordered(space)}
        self._requires = requires
        self._history = history
        self._clock = 0
        self._counted = bytearray()  # by trial, 1 if its configuration is counted
        self._counts: Counter[Places] = Counter()  # the number of trials of each configuration
        self._lost: set[Places] = set()  # those whose only trial lost its workers
        always = [each.size for each in space.values() if not each.when]
        self._fewest = 1 if requires else math.prod(always)
        """Configurations that there are at least, without those that conditions add."""
        is_finite = all(math.isfinite(each.size) for each in space.values())
        self._has_end = is_finite and self._fewest <= MOST
        self._listing = _listed(self._space, requires)
        self._slice = most_draws(space, requires) if requires else MOST
        """The number of beginnings of configurations that a slice looks at."""
        self._slices = 0  # the number of slices of the listing that were looked at
        self._listed: list[Places] = []  # the configurations that have been listed so far
        self._is_listed = False  # true if these are all

    def refresh(self) -> None:
        """Read what has changed, before a new trial has parameters and would count itself."""
        self._clock, changed = self._history.shown_since(self._clock)
        for number in changed:
            self._read(self._history.trials[number])

    def was_tried(self, params: Mapping[str, Any]) -> bool:
        """True if a configuration was tried at the last `refresh`, whatever is inactive."""
        places = self._places_of(params)
        return places is not None and self._is_tried(places)

    @property
    def exhausted(self) -> bool:
        """True if no configuration is left, as far as the space has been listed by now."""
        if not self._has_end:
            return False
        self.refresh()
        tried = len(self._counts) - len(self._lost)
        if tried < self._fewest:
            return False
        self._list(1 + len(self._history.trials))
        return self._is_listed and tried >= len(self._listed)

    def anywhere(self, seed: int) -> dict[str, Any] | None:
        """One of the untried configurations, all with equal chances: of a space that is not listed,
        the first of a few random ones that is untried, or else one that a longer listing finds, or
        else the last random one. None if there is none."""
        self._list(1 + len(self._history.trials))
        if self._is_listed:
            return self._listed_at_random(seed) or self._drawn(seed)
        drawn = self._drawn(seed)
        if drawn is not None and not self.was_tried(drawn):
            return drawn
        self._list(self._slices + AT_ONCE)
        return self._listed_at_random(seed) or drawn

    def _listed_at_random(self, seed: int) -> dict[str, Any] | None:
        for index in np.random.default_rng(seed).permutation(len(self._listed)):
            places = self._listed[index]
            if not self._is_tried(places):
                return self._params_at(places)
        return None

    def _drawn(self, seed: int) -> dict[str, Any] | None:
        params = None
        for params in islice(draws(self._space, self._requires, seed), DRAWS):
            if not self.was_tried(params):
                break
        return params

    def _list(self, slices: int) -> None:
        if not self._has_end or self._is_listed or len(self._listed) > MOST:
            return
        until = min(slices, self._slices + AT_ONCE, MOST_SLICES)
        while self._slices < until:
            self._slices += 1
            looks = list(islice(self._listing, self._slice))
            self._listed += [places for places in looks if places is not None]
            if len(self._listed) > MOST:
                return
            if len(looks) < self._slice:
                self._listed.sort()
                self._is_listed = True
                return

    def _read(self, trial: Trial) -> None:
        number = trial.number
        places = self._places_of(trial.params) if trial.role.of_search else None
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
        active: dict[str, Any] = {}
        places: list[Any] = []
        for name, parameter in self._space.items():
            if not is_active(parameter, active):
                places.append(None)
                continue
            if name not in params or parameter.problem_with(params[name]) is not None:
                return None
            active[name] = params[name]
            places.append(parameter.index_of(params[name]))
        return tuple(places)

    def _params_at(self, places: Places) -> dict[str, Any]:
        pairs = zip(self._space.items(), places, strict=True)
        return {name: each.value_at(place) for (name, each), place in pairs if place is not None}


def _listed(space: Space, requires: Sequence[Expression]) -> Iterator[Places | None]:
    """All configurations that keep the requirements, and None for each other beginning of one that
    is looked at. A requirement is tested as soon as all of its parameters have values; those of
    short requirements come first."""
    by_length = sorted(requires, key=lambda requirement: len(requirement.names))
    first = [name for each in by_length for name in each.names if name in space]
    names = ordered({name: space[name] for name in [*first, *space]})
    to_test = defaultdict(list)
    for requirement in requires:
        if space.keys() >= set(requirement.names):
            last = max(map(names.index, requirement.names), default=0)
            to_test[names[last]].append(requirement)
    params: dict[str, Any] = {}
    places: dict[str, int | None] = {}
    waiting = [iter(_places(space[names[0]], params))]
    while waiting:
        name = names[len(waiting) - 1]
        params.pop(name, None)
        try:
            place = places[name] = next(waiting[-1])
        except StopIteration:
            waiting.pop()
            continue
        if place is not None:
            params[name] = space[name].value_at(place)
        if not all(_holds(each, params) for each in to_test[name]):
            yield None
        elif len(waiting) == len(names):
            yield tuple(places[each] for each in space)
        else:
            yield None
            following = names[len(waiting)]
            waiting.append(iter(_places(space[following], params)))


def _places(parameter: Parameter, params: Mapping[str, Any]) -> Sequence[int | None]:
    return range(int(parameter.size)) if is_active(parameter, params) else (None,)


def _holds(requirement: Expression, params: Mapping[str, Any]) -> bool:
    is_active = all(name in params for name in requirement.names)
    return not is_active or requirement.holds(params)


def _is_lost(trial: Trial) -> bool:
    return trial.state is State.FAILED and trial.error_kind is ErrorKind.LOST
