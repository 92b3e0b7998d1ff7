"""Which paused trial goes on: by the quota of its rung, by its chance, and by the study's phase.

**Quota.** Of the `n` trials that were judged at a rung, `floor(n * fraction)` go on:

    fraction = 1 - (1 - 1/eta) * clamp((r - POOR) / (GOOD - POOR), 0, 1)

`r` is the rank correlation of the values there with those at the next rung (`Rungs.fraction`).
Where half of the trials still show one value, it is half of 1 and the part of better ones, or 1
where none is better. As long as fewer have gone on, the next one is that of which most is expected
at the full budget.

**Chance.** A trial that is not in the quota may go on while its probability to turn out best is at
least `MAY_WIN`, at least `IDLE` where time alone is limited, so that its slot would idle, or at
least `HOPELESS` where it would be stopped for good: to beat the leader by the forecast, or all that
have ended by how well its rung has told of ends (`ends`), whichever is greater.

**Pause.** A trial that pauses at a rung and goes on later needs another start: its worker begins an
attempt, the program starts, imports and reads its data. It trains again what its checkpoint does
not keep, which is all of it where nothing is kept, or where nothing is read back. One that runs on
trains up to the next rung, perhaps for nothing. So a pause pays where

    start + (resource - kept) * pace <= WORTH * (next rung - resource) * pace

**Phase.** At a report (`after_report`), a trial in the quota goes on. Any other pauses if that
pays, but goes on at once where no new trial is to come and it is the likeliest to win. Where a
pause does not pay, it goes on by its chance, or is stopped for good.

A free slot (`next`) takes the first in the quota, of the highest rung, while the study is
searching; where no new trial can be trained in full, also the likeliest to win. Afterwards it takes
that one alone. `brain.agenda` asks for trials that the budget allows.
"""

from collections.abc import Callable, Sequence
from statistics import median

from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.paces import WORTH, own_pace
from hpsearch.domain.phase import Phase
from hpsearch.domain.records import Trial
from hpsearch.search.curve_model.forecast import Forecast, Outlook
from hpsearch.search.ends import ChancesByEnds
from hpsearch.search.fronts import FrontRung
from hpsearch.search.proposals import LOSSES
from hpsearch.search.ranking.in_order import RoughOrder
from hpsearch.search.rungs import Judgement, Rung, Rungs, Verdict
from hpsearch.study_file.levels import rung_levels
from hpsearch.study_file.methods import ETA
from hpsearch.study_file.models import StudySpec

MAY_WIN, IDLE, HOPELESS = 0.15, 0.02, 0.07
"""The least probability of turning out best with which a paused trial goes on, the same on a slot
that would idle, and that with which a trial is not stopped for good."""
MOST_COMPARED = 64  # the most paused trials that are compared; `RoughOrder` chooses them
LEADERS = 16  # the leading trials of which the leader is chosen
LATEST = 16  # the latest trials whose starts count
BEGAN_AGAIN = "began_again"
"""The name of the finding on an attempt that began from nothing though its trial was further."""
GOES_ON = "a pause would cost more than it saves, and it may still become the best"

Test = Callable[[Trial], bool]
Promoted = tuple[Trial, Judgement]


def _always(trial: Trial) -> bool:
    return True


class Promotion:
    """Decides which paused trials of one study go on.

    Attributes:
        rungs: The rungs, at which nobody has arrived yet.
    """

    def __init__(
        self, spec: StudySpec, history: History, forecast: Forecast | None, rough: RoughOrder
    ) -> None:
        self._history, self._forecast, self._rough = history, forecast, rough
        self._total = spec.budget.per_trial.total
        self._several = len(spec.objectives) > 1
        arguments = spec.search.pruner.arguments
        self.rungs = Rungs(
            rung_levels(spec),
            self._total,
            arguments.get("eta", ETA),
            None if self._several else self._most_promising_first,
            FrontRung if self._several else Rung,
            history.study.warm_start,
        )
        self._by_ends: ChancesByEnds | None = None
        if not self._several:
            losses = [name for name in LOSSES[0] if name != spec.objective.metric]
            self._by_ends = ChancesByEnds(self.rungs, history, self._total, losses)
        self._pauses = arguments.get("pause", "auto")  # True, False, or auto to find it out
        self._looked_at = 0  # the clock of the history, when findings were last looked at
        self._has_begun_again = False

    # ------------------------------------------------------------------------------------ the phase

    def after_report(self, trial: Trial, judgement: Judgement, phase: Phase) -> Judgement:
        """The judgement of a trial that is not in the quota of the rung at which it arrived."""
        rungs = self.rungs
        index = rungs.waits_at(trial.number)
        following = rungs.level_after(index, trial.resource)
        if self._pause_pays(trial, self._total if following is None else following):
            likeliest = None
            if phase in (Phase.FINISHING, Phase.CONFIRMING):
                likeliest = self.likeliest_to_win()
            if likeliest is None or likeliest[0] is not trial:
                return judgement
            rungs.promote(trial.number)
            return likeliest[1]
        rung = rungs.rungs[index]
        if trial.number in rung.able and self._may_win(trial, rung):
            rungs.promote(trial.number)
            return Judgement(Verdict.CONTINUE, GOES_ON)
        rungs.stop(trial.number)
        return Judgement(Verdict.STOP, judgement.why, judgement.against)

    def next(
        self,
        phase: Phase,
        can_complete: Test,
        can_continue: Test,
        *,
        new_completes: bool,
        least: float = MAY_WIN,
    ) -> Promoted | None:
        """The paused trial that goes on next.

        Args:
            can_complete: True of a trial that can be trained in full, or of any while none can.
            can_continue: True of a trial that can be trained up to its next rung.
            new_completes: A new trial can be trained in full.
            least: The chance of one that is not in the quota.
        """
        if phase is not Phase.SEARCHING:
            return self.likeliest_to_win(can_complete, least)
        found = self.in_quota(can_complete)
        if found is not None or new_completes:
            return found
        likeliest = self.likeliest_to_win(can_complete, least)
        return likeliest or self.likeliest_to_win(can_continue, least)

    # ------------------------------------------------------------------------------------ the quota

    def in_quota(self, may_go_on: Test = _always) -> Promoted | None:
        """The trial that its rung lets go on, of those that may."""
        trials = self._history.trials
        found = self.rungs.promotion(lambda number: may_go_on(trials[number]))
        return None if found is None else (trials[found[0]], found[1])

    def _most_promising_first(self, numbers: Sequence[int]) -> list[int] | None:
        outlook = self._outlook()
        if outlook is None or not all(number in outlook.known for number in numbers):
            return None
        some = self._rough.first(MOST_COMPARED, numbers)
        means, _ = outlook.in_full(some)
        mean_of = dict(zip(some, means.tolist(), strict=True))

        def rank_key(number: int) -> tuple[bool, float, int]:
            is_outside = self._history.trials[number].violation > 0
            return is_outside, mean_of[number], number

        return sorted(some, key=rank_key)

    # ----------------------------------------------------------------------------------- the chance

    def likeliest_to_win(
        self, may_go_on: Test = _always, least: float = MAY_WIN
    ) -> Promoted | None:
        """The likeliest winner of the paused trials that may go on, if it is likely enough."""
        trials = self._history.trials
        waiting = [trials[number] for number in self.rungs.waiting()]
        chances = self.chances(waiting)
        if not chances:
            able = [trial for trial in waiting if may_go_on(trial)]
            return self._ahead(able) if able else None
        for number in sorted(chances, key=lambda n: -chances[n]):
            if chances[number] < least:
                return None
            if may_go_on(trials[number]):
                why = f"could still become the best: probability {chances[number]:.2f}"
                return trials[number], Judgement(Verdict.CONTINUE, why)
        return None

    def chances(self, waiting: Sequence[Trial]) -> dict[int, float]:
        """By number, the probability that a trial which waits at a rung turns out the best. Of the
        first few; nothing where nothing is expected of any."""
        outlook = self._outlook() if waiting else None
        if outlook is None:
            return {}
        numbers = self._rough.first(MOST_COMPARED, [trial.number for trial in waiting])
        leader = outlook.leader(self._rough.leaders(LEADERS, outlook.known))
        chances = outlook.chances(numbers, leader)
        found = dict(zip(numbers, chances.tolist(), strict=True))
        return found if self._by_ends is None else self._by_ends.raised(found)

    def _outlook(self) -> Outlook | None:
        return None if self._forecast is None else self._forecast.outlook()

    def _may_win(self, trial: Trial, rung: Rung) -> bool:
        """True if a trial that is not among the best at its rung is not hopeless, either."""
        chances = self.chances([trial])
        if chances:
            return chances[trial.number] >= HOPELESS
        return rung.judged < self.rungs.eta

    def _ahead(self, waiting: list[Trial]) -> Promoted | None:
        """The waiting trial that is ahead at a rung, if none has been trained in full: for trials
        that no forecast compares. Of several objectives, first one that nothing beats at its
        rung."""
        numbers = [trial.number for trial in waiting]
        trials = self._history.trials
        unbeaten = self.rungs.unbeaten(numbers) if self._several else None
        if unbeaten is not None:
            number, level = unbeaten
            why = f"no trial beats it in all objectives at {level:g}"
            return trials[number], Judgement(Verdict.CONTINUE, why)
        if self._history.states[State.COMPLETE]:
            return None
        number, level = self.rungs.ahead(numbers)
        why = f"it is ahead of all that wait at {level:g}, and none is complete"
        return trials[number], Judgement(Verdict.CONTINUE, why)

    # ------------------------------------------------------------------------------------ the pause

    def _pause_pays(self, trial: Trial, until: float) -> bool:
        """True if a trial may pause rather than train up to the next rung."""
        if self._pauses != "auto":
            return bool(self._pauses)
        if trial.was_asked:
            return True  # its program keeps what it needs, and is not ended
        if trial.checkpoint is None or self._begins_again():
            return False
        pace, start_s = own_pace(trial), self._start_s()
        if pace is None or start_s is None:
            return True
        resource, kept = trial.resource, trial.checkpoint_resource
        repeated = 0.0 if kept is None else max(0.0, resource - kept)
        return start_s + repeated * pace <= WORTH * (until - resource) * pace

    def _start_s(self) -> float | None:
        """The median time from a worker's order until the first step, in seconds, of attempts on
        workers that had trained before, or else of all; None before it is known."""
        latest = self._history.trials[-LATEST:]
        attempts = [attempt for trial in latest for attempt in trial.attempts]
        workers: set[str] = set()
        warm: list[float] = []
        cold: list[float] = []
        for attempt in sorted(attempts, key=lambda attempt: attempt.started):
            if attempt.start_up_seconds is not None:
                kind = warm if attempt.worker in workers else cold
                kind.append(attempt.start_up_seconds)
            workers.add(attempt.worker)
        known = warm or cold
        return median(known) if known else None

    def _begins_again(self) -> bool:
        """True if an attempt of the study has begun from nothing though its trial was further."""
        self._looked_at, changed = self._history.shown_since(self._looked_at)
        trials = (self._history.trials[number] for number in changed)
        names = (finding.name for trial in trials for finding in trial.findings)
        self._has_begun_again |= BEGAN_AGAIN in names
        return self._has_begun_again
