"""Which checkpoints a study keeps: those of running trials, and of the best ended and waiting ones.

A trial that can no longer come back does not need its checkpoint any more: one that failed, was
pruned for good, repeated another one, or ended and was surpassed by `BEST` others. Only the best of
the trials at rungs may wait there; the others are pruned. What a study holds on disk is therefore
bounded, however many trials it tries. Which ones are best, `hpsearch.ranking.selection` says: those
of which most is expected in full, where that is known.

Where the study file limits that (`checkpoints.max_gb`), what is least likely to be needed goes
first: weights of trials that ended, the worst first, and then trials that wait, the worst first.
What runs is never dropped, nor the best; every trial that runs is counted with what the largest of
them takes.

A checkpoint that another trial is to begin with stays until that one has saved a checkpoint of its
own, or has ended (`Retention.lent`).

Where a record names no checkpoint, the files of its trial may go; the driver removes them
(`hpsearch.driver.sweeping`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hpsearch.domain.facts import Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.ranking.pareto import foremost, pareto_front
from hpsearch.ranking.selection import place_of, rank
from hpsearch.study_file.models import GB, StudySpec

BEST = 10
"""How many trials that ended keep their checkpoint; more where more are to be confirmed."""

FRONT = 50
"""The same with several objectives: the Pareto front first, then what it alone beats, and so on."""

WAITING = 100
"""How many trials may wait at rungs."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A trial whose checkpoints are no longer kept.

    Args:
        trial: The trial; one that waited is to be pruned.
        why: For people; empty if the trial has no use for them.
        for_room: Whether they would have been kept, had there been more room.
    """

    trial: Trial
    why: str = ""
    for_room: bool = False


class Retention:
    """Decides which checkpoints of one study may go.

    Args:
        spec: The study.
        history: Its records.
    """

    def __init__(self, spec: StudySpec, history: History) -> None:
        self._history = history
        self._sign = spec.objective.sign
        self._directions = [objective.direction for objective in spec.objectives]
        self._several = len(self._directions) > 1
        confirm = spec.search.confirm
        self._best = BEST
        if confirm is not None:
            self._best = max(BEST, confirm.top)
        max_gb = spec.checkpoints.max_gb
        self._most_bytes = None if max_gb is None else max_gb * GB
        self._holding: set[int] = set()
        """The trials that hold a checkpoint, or run and will."""
        self._borrowers: set[int] = set()
        """The trials that need a checkpoint of another one."""
        self._clock = 0

    @property
    def lent(self) -> set[int]:
        """The trials whose checkpoints others need, as of the last call of `drop`."""
        return lent_by(self._history.trials[number] for number in self._borrowers)

    def drop(self) -> list[Dropped]:
        """Take from the records every checkpoint that is not kept.

        Looks at what has changed since the last call, and at what holds a checkpoint, which is
        bounded: it is called at every tick.

        Returns:
            The trials whose checkpoints were taken from the records now.
        """
        if not self._follow_changes():
            return []
        trials = self._history.trials
        held = [trials[number] for number in sorted(self._holding)]
        lent = self.lent
        own = [trial for trial in held if trial.number not in lent]
        dropped = [*self._useless(own), *self._surplus(own)]
        going = [each.trial for each in dropped]
        dropped += self._over_limit(_without(held, going), lent)
        for each in dropped:
            trial = each.trial
            trial.checkpoint = None
            trial.best_checkpoint = None
            trial.checkpoint_bytes = None
            self._history.touch(trial)
        return dropped

    def _follow_changes(self) -> bool:
        """Note which trials hold a checkpoint now.

        False if none has changed since the last call.
        """
        history = self._history
        self._clock, changed = history.changed_since(self._clock)
        for number in changed:
            trial = history.trials[number]
            runs = trial.state is State.RUNNING
            if runs or trial.checkpoint is not None:
                self._holding.add(number)
            else:
                self._holding.discard(number)
            if trial.borrows is not None:
                self._borrowers.add(number)
            else:
                self._borrowers.discard(number)
        return bool(changed)

    def _useless(self, held: list[Trial]) -> list[Dropped]:
        """Those that have ended for good, and will not be asked for."""
        candidates = []
        useless = []
        for trial in held:
            if not trial.state.terminal or trial.left_as is not None:
                continue
            if _may_be_best(trial):
                candidates.append(trial)
            else:
                useless.append(trial)
        useless += self._surpassed(candidates)
        return [Dropped(trial) for trial in useless]

    def _surpassed(self, over: list[Trial]) -> list[Trial]:
        """The ended trials that are surpassed by too many others to be kept."""
        if not self._several:
            ordered = self._ordered(over)
            return ordered[self._best :]
        if len(over) <= FRONT:
            return []
        return _without(over, foremost(over, self._directions, FRONT))

    def _surplus(self, held: list[Trial]) -> list[Dropped]:
        """The trials that wait at a rung with too many better ones before them."""
        why = f"{WAITING} better ones wait"
        waiting = self._ordered(trial for trial in held if trial.state is State.PAUSED)
        return [Dropped(trial, why) for trial in waiting[WAITING:]]

    def _over_limit(self, held: list[Trial], lent: set[int]) -> list[Dropped]:
        """The trials that make room for the others, if all of them together take too much.

        Args:
            held: All that hold a checkpoint.
            lent: The numbers of those whose checkpoint another trial needs.
        """
        most = self._most_bytes
        if most is None:
            return []
        used = used_bytes(held)
        if used <= most:
            return []
        limit = f"checkpoints.max_gb is {most / GB:g}"
        dropped = []
        for trial in self._least_needed(held):
            if used <= most:
                break
            taken = trial.checkpoint_bytes
            if not taken or trial.number in lent:
                continue
            why = f"checkpoints take {in_gb(used)}, {limit}"
            dropped.append(Dropped(trial, why, for_room=True))
            used -= taken
        return dropped

    def _least_needed(self, held: list[Trial]) -> list[Trial]:
        """The checkpoints that may be dropped if space runs out, in the order in which they go."""
        best = self._best_of_all()
        droppable = []
        for trial in held:
            state = trial.state
            rests = state is State.PAUSED or state.terminal
            if rests and trial.number not in best:
                droppable.append(trial)
        worst_first = self._ordered(droppable)
        worst_first.reverse()
        return sorted(worst_first, key=waits)

    def _best_of_all(self) -> set[int]:
        """The number of the best trial; of several objectives, those of the Pareto front."""
        history = self._history
        if self._several:
            candidates = [trial for trial in history.trials if _may_be_best(trial)]
            first = pareto_front(candidates, history.study.directions)
        else:
            ranking = rank(history.trials, self._directions[0])
            first = ranking[:1]
        return {ranked.trial.number for ranked in first}

    def _ordered(self, trials: Iterable[Trial]) -> list[Trial]:
        """Best first, by what the search knows of them (`hpsearch.ranking.selection`); those
        without a value last."""

        def place(trial: Trial) -> tuple[float, ...]:
            return (trial.violation, trial.value is None, *place_of(trial, self._sign))

        return sorted(trials, key=place)


def in_gb(amount: float) -> str:
    """Bytes as people compare them with `max_gb`."""
    gigabytes = amount / GB
    if amount >= 100 * GB:
        return f"{gigabytes:.0f} GB"
    return f"{gigabytes:.3g} GB"


def waits(trial: Trial) -> bool:
    """True if a trial may come back from its checkpoint.

    It waits at a rung, or its study ended while it did.
    """
    state = trial.state
    if state is State.PAUSED:
        return True
    return state.terminal and trial.left_as is not None


def lent_by(trials: Iterable[Trial]) -> set[int]:
    """The numbers of the trials whose checkpoints some of these need."""
    sources = (trial.borrows for trial in trials)
    return {number for number in sources if number is not None}


def used_bytes(trials: Iterable[Trial]) -> int:
    """The space that the checkpoints of trials take.

    One that runs may take as much as the largest of those that do.
    """
    resting = running = largest = 0
    for trial in trials:
        taken = trial.checkpoint_bytes or 0
        if trial.state is State.RUNNING:
            running += 1
            largest = max(largest, taken)
        else:
            resting += taken
    return resting + running * largest


def _without(trials: Iterable[Trial], others: Iterable[Trial]) -> list[Trial]:
    """The trials that are not among the others."""
    numbers = {other.number for other in others}
    return [trial for trial in trials if trial.number not in numbers]


def _may_be_best(trial: Trial) -> bool:
    return trial.state is not State.FAILED and trial.role is not Role.CONFIRM
