"""The checkpoints that a study keeps: of running trials, and of the best ended and waiting ones.

A trial that failed, was pruned for good, repeated another one, or ended and was surpassed by `BEST`
others does not need its checkpoint any more. Only the best of the trials at rungs may wait there;
the others are pruned. So the space that a study takes is bounded. Trials are in the order of
`hpsearch.search.ranking.selection`. Where the study file limits the space (`checkpoints.max_gb`),
weights of trials that ended go first, and then trials that wait, the worst first. Running trials
and the best one keep theirs. Where a record names no checkpoint, the driver removes the files.
"""

from collections.abc import Iterable
from itertools import islice

from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.search.ranking.in_order import InOrder
from hpsearch.search.ranking.pareto import foremost, pareto_front
from hpsearch.search.ranking.selection import counts, place_of, rank
from hpsearch.study_file.models import GB, StudySpec

BEST = 10
"""The number of ended trials that keep their checkpoint; more where more are to be confirmed."""
FRONT = 50  # the same with several objectives: the Pareto front first, then the front of the rest
WAITING = 100  # the most trials that may wait at rungs


class Retention:
    """Chooses the checkpoints of one study that may go."""

    def __init__(self, spec: StudySpec, history: History) -> None:
        self._history = history
        self._sign = spec.objective.sign
        self._directions = [objective.direction for objective in spec.objectives]
        self._several = len(self._directions) > 1
        confirm = spec.search.confirm
        self._best = BEST if confirm is None else max(BEST, confirm.top)
        self._max_gb = spec.checkpoints.max_gb
        self._clock = 0
        self._stored: set[int] = set()  # the trials that run or have a checkpoint
        self._ranked = InOrder(
            history, lambda trial: self._rank_key(trial) if counts(trial) else None
        )

    def drop(self) -> list[tuple[Trial, str]]:
        """Take from the records every checkpoint that is not kept. Returns their trials, each with
        the reason, which is empty if it has no use for them."""
        self._clock, changed = self._history.changed_since(self._clock)
        if not changed:
            return []
        trials = self._history.trials
        for number in changed:
            self._note(trials[number])
        stored = [trials[number] for number in sorted(self._stored)]
        dropped = [(trial, "") for trial in self._useless(stored)]
        dropped += [(trial, f"{WAITING} better ones wait") for trial in self._surplus(stored)]
        left = _without(stored, [trial for trial, _ in dropped])
        dropped += self._over_limit(left)
        for trial, _ in dropped:
            trial.checkpoint = trial.checkpoint_resource = None
            trial.best_checkpoint = None
            trial.checkpoint_bytes = None
            self._history.touch(trial)
        return dropped

    def _note(self, trial: Trial) -> None:
        if trial.checkpoint or trial.state is State.RUNNING:
            self._stored.add(trial.number)
        else:
            self._stored.discard(trial.number)

    def _useless(self, stored: list[Trial]) -> list[Trial]:
        ended = [each for each in stored if each.state.terminal and each.left_as is None]
        candidates = [trial for trial in ended if _may_be_best(trial)]
        if not self._several:
            kept = self._ordered(candidates)[: self._best]
        elif len(candidates) > FRONT:
            kept = foremost(candidates, self._directions, FRONT)
        else:
            kept = candidates
        return _without(ended, kept)

    def _surplus(self, stored: list[Trial]) -> list[Trial]:
        waiting = [trial for trial in stored if trial.state is State.PAUSED]
        return self._ordered(waiting)[WAITING:] if len(waiting) > WAITING else []

    def _over_limit(self, stored: list[Trial]) -> list[tuple[Trial, str]]:
        if self._max_gb is None:
            return []
        most = self._max_gb * GB
        used = used_bytes(stored)
        dropped: list[tuple[Trial, str]] = []
        if used <= most:
            return dropped
        for trial in self._least_needed(stored):
            if used <= most:
                break
            taken = trial.checkpoint_bytes
            if taken:
                why = f"checkpoints take {in_gb(used)}, checkpoints.max_gb is {self._max_gb:g}"
                dropped.append((trial, why))
                used -= taken
        return dropped

    def _least_needed(self, stored: list[Trial]) -> list[Trial]:
        best = self._best_of_all()
        rests = [each for each in stored if each.state is State.PAUSED or each.state.terminal]
        droppable = [trial for trial in rests if trial.number not in best]
        worst_first = self._ordered(droppable)[::-1]
        return sorted(worst_first, key=waits)

    def _best_of_all(self) -> set[int]:
        trials = self._history.trials
        if self._several:
            candidates = [trial for trial in trials if _may_be_best(trial)]
            return {each.trial.number for each in pareto_front(candidates, self._directions)}
        repeats = [trials[number] for number in self._history.repeats]
        numbers = {trial.repeats for trial in repeats}
        # All others rank in this order, so that no further one can be the best.
        numbers.update(islice((each for each in self._ranked if each not in numbers), 1))
        candidates = [trials[number] for number in numbers if number is not None]
        best = rank([*candidates, *repeats], self._directions[0])[:1]
        return {each.trial.number for each in best}

    def _ordered(self, trials: list[Trial]) -> list[Trial]:
        if self._several:
            return foremost(trials, self._directions, len(trials))

        return sorted(trials, key=self._rank_key)

    def _rank_key(self, trial: Trial) -> tuple[float, ...]:
        return (trial.violation, trial.value is None, *place_of(trial, self._sign))


def in_gb(amount: float) -> str:
    """Bytes as people compare them with `max_gb`."""
    gigabytes = amount / GB
    return f"{gigabytes:.0f} GB" if gigabytes >= 100 else f"{gigabytes:.3g} GB"


def waits(trial: Trial) -> bool:
    """True if it may go on from its checkpoint: it waits, or did when its study ended."""
    return trial.state is State.PAUSED or (trial.state.terminal and trial.left_as is not None)


def used_bytes(trials: Iterable[Trial]) -> int:
    """The space of their checkpoints; each running one may take as much as the largest."""
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
    numbers = {other.number for other in others}
    return [trial for trial in trials if trial.number not in numbers]


def _may_be_best(trial: Trial) -> bool:
    return trial.state is not State.FAILED and trial.role.of_search
