"""The next work of a free slot, by the phase of the study.

A trial that was cut short comes first, in every phase, and then a test of changed code
(`ranking.verdicts.referee`).
Then:

- *searching*: a paused trial, and then a new configuration. `search.promotion` tells which paused
  trial goes on in each phase.
- *finishing*, as all configurations have been tried or a new one would not even reach the highest
  rung: a paused trial. Slots that are left begin to confirm the leaders.
- *confirming*: repeats of the leaders on fresh seeds (`confirmation`). The rest of a budget of time
  or money goes to the search again, or else to further repeats.

`Headroom` says what is left of the budget. Work that does not fit into it stays where it is. A
trial *completes* if it trains for its whole budget, and *continues* if it trains up to its next
rung.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hpsearch.brain.attempts import CurrentAttempt, Slot
from hpsearch.brain.budget.headroom import Headroom
from hpsearch.brain.confirmation import Confirmation
from hpsearch.brain.context import Context
from hpsearch.domain.facts import DecisionKind, Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.phase import Phase
from hpsearch.domain.records import REVISION, Outcome, Trial
from hpsearch.domain.seeds import derived_seed
from hpsearch.errors import UserError
from hpsearch.search.promotion import IDLE, MAY_WIN
from hpsearch.search.ranking.verdicts.referee import Referee
from hpsearch.study_file.models import StudySpec

FirstConfiguration = tuple[Role, dict[str, Any]]
"""A configuration that is tried before the sampler draws any: the role of its trial, DEFAULT or
ENQUEUED, and its parameters; missing ones are drawn."""


@dataclass(frozen=True)
class Work:
    """A trial to launch, with the decision to record for it."""

    trial: Trial
    kind: DecisionKind  # START, PROMOTE or RETRY
    why: str
    against: list[int] = field(default_factory=list)


def first_configurations(
    spec: StudySpec, history: History, defaults: Mapping[str, Any] | None
) -> list[FirstConfiguration]:
    """What is tried first, in order: the defaults, the study file's, the command line's."""
    found: list[FirstConfiguration] = []
    if defaults is not None:
        found.append((Role.DEFAULT, dict(defaults)))
    for params in (*spec.enqueue, *history.study.enqueued):
        found.append((Role.ENQUEUED, dict(params)))
    return found


class Agenda:
    """The work of one study, which it moves between searching, finishing and confirming."""

    def __init__(self, context: Context, first: Sequence[FirstConfiguration]) -> None:
        self._context = context
        self._first = first
        spec, history = context.spec, context.history
        self._confirmation = Confirmation(spec, history, context.note_expectations, len(first))
        if self._confirmation.is_under_way:
            context.progress.phase = Phase.CONFIRMING
        roles = [trial.role for trial in history.trials]
        self._begun = roles.count(Role.DEFAULT) + roles.count(Role.ENQUEUED)
        """The number of first configurations that have a trial."""
        self._referee = Referee(history, spec.objective.metric)
        self._queue: deque[int] = deque()
        self._total = spec.budget.per_trial.total
        self._continues_for = [trial.number for trial in history.trials if trial.goes_on_alone]
        """The trials that a finished study goes on for, and for nothing else."""

    def put_back(self, trial: Trial) -> None:
        """Let a queued trial wait for the next free slot, before anything new."""
        self._queue.append(trial.number)

    def drop(self, trial: Trial) -> None:
        """Let a trial that waits, for a slot or at a rung, not go on."""
        if trial.number in self._queue:
            self._queue.remove(trial.number)
        if trial.state is State.PAUSED:
            self._context.searcher.ended(trial)

    def propose(self, params: dict[str, Any], now: float) -> Trial:
        """Add a trial with these parameters, which waits for the next free slot; missing ones are
        drawn. Raises UserError if the budget has no trial left."""
        if self._trials_used:
            most = self._context.spec.budget.trials
            raise UserError(f"all {most} trials of the budget have started", "raise the limit")
        trial = self._draw(now, Role.PROPOSED, params)
        self.put_back(trial)
        return trial

    def change_budget(self) -> None:
        """Go on with a larger budget: the search goes on before its leaders are confirmed."""
        self._confirmation.change_budget(self._context.spec.budget)
        if self._context.progress.phase is Phase.CONFIRMING:
            self._return_to_search()

    def headroom(self, slot: Slot, now: float, *, search_is_idle: bool = False) -> Headroom:
        """The part of the budget for a slot, less what is kept back for repeats to come."""
        self._confirmation.refresh()
        spending = self._context.spending
        return Headroom(
            spending,
            now,
            slot.gpus,
            len(self._context.attempts.slots),
            slot.device,
            kept_back=self._confirmation.repeats_to_come * spending.trial_total,
            start_up=spending.start_ups.next(is_warm=slot.is_warm),
            search_is_idle=search_is_idle,
        )

    def reserve(self, running: CurrentAttempt, trial: Trial, stretch: float, now: float) -> bool:
        """Reserve what a stretch may cost; False, and nothing changed, if that is too much."""
        headroom = self.headroom(running.slot, now).under_way()
        headroom = self._confirmation.headroom_for(trial, headroom)
        before_repeats = stretch if headroom.kept_back else 0.0
        if not headroom.affords(stretch, trial) or not headroom.in_time(before_repeats, trial):
            return False
        return self._context.spending.reserve(running.attempt, headroom.cost(stretch, trial))

    def update_phase(self, headroom: Headroom) -> None:
        """Move between searching and finishing, by what is left of the budget."""
        if self._context.progress.phase in (Phase.SEARCHING, Phase.FINISHING):
            has_new = self._has_new_trials(headroom)
            self._context.progress.move(Phase.SEARCHING if has_new else Phase.FINISHING)

    def next(self, headroom: Headroom, running: int) -> Work | None:
        """The next work that the budget allows, while `running` trials of the search run."""
        queued = self._from_queue(headroom)
        if queued is not None:
            return queued
        if self._continues_for:
            return None
        tests = self._test(headroom)
        if tests is not None:
            return tests
        self.update_phase(headroom)
        match self._context.progress.phase:
            case Phase.SEARCHING:
                return self._search(headroom)
            case Phase.FINISHING:
                return self._finish(headroom, running)
            case Phase.CONFIRMING:
                return self._confirm(headroom)
        return None

    def why_no_work(self) -> str:
        """The reason why `next` finds no work though nothing runs."""
        if self._continues_for and not self._queue:
            return f"trial {self._continues_for[-1]} was asked for, and has ended"
        if not self._queue and (too_little := self._context.next_hours.too_little):
            return too_little
        if self._queue or not self._all_tried:
            return "the budget left is too small for another trial"
        if not self._trials_used:
            return "all configurations of the space have been tried"
        most = self._context.spec.budget.trials
        return f"all {most} trials have ended"

    # ------------------------------------------------------------------------ the state of the work

    @property
    def _all_tried(self) -> bool:
        if self._trials_used or self._context.next_hours.too_little is not None:
            return True
        if self._begun < len(self._first):
            return False
        return self._context.searcher.proposals.exhausted

    @property
    def _trials_used(self) -> bool:
        most = self._context.spec.budget.trials
        return most is not None and self._context.history.searched >= most

    @property
    def _only_time_is_limited(self) -> bool:
        spending = self._context.spending
        endless = self._context.spec.budget.trials is None
        return endless and spending.time.limit_s is not None and not spending.ledger.is_limited

    def _has_new_trials(self, headroom: Headroom) -> bool:
        """True if new trials are to come. What runs may give back some of what it has reserved, so
        what does not fit now may fit later; on the last call nothing runs."""
        if self._all_tried:
            return False
        if headroom.search_is_idle and not headroom.can_start(self._context.searcher.first_stretch):
            return False
        if headroom.reaches(self._context.searcher.last_rung):
            return True
        return self._none_completes(headroom) and headroom.reaches(
            self._context.searcher.first_stretch
        )

    def _none_completes(self, headroom: Headroom) -> bool:
        if headroom.reaches(self._total):
            return False
        history = self._context.history
        if history.states[State.COMPLETE]:
            return False
        return not any(
            self._may_complete(history.trials[number], headroom) for number in history.open
        )

    def _may_complete(self, trial: Trial, headroom: Headroom) -> bool:
        distance = self._total - trial.trains_from
        if trial.state is State.RUNNING:
            return headroom.under_way().in_time(distance, trial)
        return headroom.reaches(distance, trial)

    def _can_complete(self, trial: Trial, headroom: Headroom) -> bool:
        headroom = self._confirmation.headroom_for(trial, headroom)
        if not headroom.reaches(self._total - trial.trains_from, trial):
            return False
        return not headroom.search_is_idle or self._can_continue(trial, headroom)

    def _can_continue(self, trial: Trial, headroom: Headroom) -> bool:
        """True if a trial can train until it is judged; where none completes, until it reports."""
        headroom = self._confirmation.headroom_for(trial, headroom)
        stretch = self._context.searcher.stretch(trial)
        least = (
            self._context.searcher.next_report(trial) if self._none_completes(headroom) else stretch
        )
        return headroom.affords(stretch, trial) and headroom.in_time(least, trial)

    # ---------------------------------------------------------------------------- the kinds of work

    def _from_queue(self, headroom: Headroom) -> Work | None:
        for number in self._queue:
            trial = self._context.history.trials[number]
            if not self._can_continue(trial, headroom):
                continue
            self._queue.remove(number)
            if not trial.attempts:
                return Work(trial, DecisionKind.START, "asked for while the study ran")
            before = trial.attempts[-1].outcome
            if before in (Outcome.PAUSED, Outcome.PRUNED):
                return Work(trial, DecisionKind.PROMOTE, "somebody wants it trained in full")
            failed = before is Outcome.FAILED
            why = "it had failed" if failed else "its last attempt was cut short"
            return Work(trial, DecisionKind.RETRY, why)
        return None

    def _search(self, headroom: Headroom) -> Work | None:
        promotion = self._promotion(headroom)
        if promotion is not None:
            return promotion if self._can_continue(promotion.trial, headroom) else None
        can_start = headroom.can_start(self._context.searcher.first_stretch)
        return self._new_trial(headroom.now) if can_start else None

    def _finish(self, headroom: Headroom, running: int) -> Work | None:
        promotion = self._promotion(headroom)
        if promotion is not None:
            return promotion if self._can_continue(promotion.trial, headroom) else None
        if not self._context.spec.search.promised_repeats:
            return None
        if running == 0:
            self._begin_confirming()
            return self._confirm(headroom)
        leader = self._confirmation.early_leader(running)
        if leader is None:
            return None
        self._confirmation.record(search_waits=False)
        return self._repeat(headroom, leader)

    def _confirm(self, headroom: Headroom) -> Work | None:
        free = headroom.including_kept_back()

        def fits(repeats: int) -> bool:
            return free.reaches(repeats * self._total)

        leader = self._confirmation.next_leader(fits)
        due = self._repeat(headroom, leader)
        is_over = self._context.next_hours.too_little is not None
        if due is not None or is_over or not headroom.is_limited:
            return due
        more = self._more_search(headroom)
        if more is not None:
            self._return_to_search()
            return more
        for leader in self._confirmation.further_leaders(fits):
            further = self._repeat(headroom, leader)
            if further is not None:
                return further
        return None

    def _begin_confirming(self) -> None:
        self._context.progress.move(Phase.CONFIRMING)
        self._confirmation.record(search_waits=True)

    def _return_to_search(self) -> None:
        self._context.progress.move(Phase.SEARCHING)
        self._confirmation.record(search_waits=False)

    def _more_search(self, headroom: Headroom) -> Work | None:
        """A paused or new trial that can still be trained in full, with the repeats of a leader."""
        promotion = self._promotion(headroom)
        if promotion is not None and self._can_continue(promotion.trial, headroom):
            return promotion
        may_complete = not self._all_tried and headroom.reaches(self._total)
        can_start = may_complete and headroom.can_start(self._context.searcher.first_stretch)
        return self._new_trial(headroom.now) if can_start else None

    def _promotion(self, headroom: Headroom) -> Work | None:
        promotion = self._context.searcher.promotion
        if promotion is None:
            return None
        found = promotion.next(
            self._context.progress.phase,
            self._promotable(headroom),
            lambda trial: self._can_continue(trial, headroom),
            new_completes=headroom.reaches(self._total),
            least=IDLE if self._only_time_is_limited else MAY_WIN,
        )
        if found is None:
            return None
        trial, judgement = found
        return Work(trial, DecisionKind.PROMOTE, judgement.why, judgement.against)

    def _promotable(self, headroom: Headroom) -> Callable[[Trial], bool]:
        """A test of a paused trial: if it can complete, or where none can, continue."""
        if self._none_completes(headroom):
            return lambda trial: self._can_continue(trial, headroom)
        return lambda trial: self._can_complete(trial, headroom)

    def _new_trial(self, now: float) -> Work:
        if self._begun < len(self._first):
            role, params = self._first[self._begun]
            self._begun += 1
            why = "the task's default settings" if role is Role.DEFAULT else "asked for"
            return Work(self._draw(now, role, params), DecisionKind.START, why)
        trial = self._draw(now, Role.SEARCH, None)
        return Work(
            trial, DecisionKind.START, f"drawn by {self._context.searcher.proposals.drawn_by}"
        )

    def _draw(self, now: float, role: Role, params: dict[str, Any] | None) -> Trial:
        trial = self._add(now, role)
        self._context.searcher.proposals.propose(trial, params)
        return trial

    def _repeat(self, headroom: Headroom, leader: Trial | None) -> Work | None:
        if leader is None or not headroom.including_kept_back().can_start(self._total, leader):
            return None
        number, seed = leader.number, self._confirmation.seed_for(leader)
        trial = self._add(headroom.now, Role.CONFIRM)
        trial.repeats, trial.seed = number, seed
        trial.params = dict(leader.params)
        trial.distributions = dict(leader.distributions)
        return Work(trial, DecisionKind.START, f"confirms trial {number}", [number])

    def _test(self, headroom: Headroom) -> Work | None:
        """The next run that tests a change of code."""
        run = self._referee.next(headroom.now)
        if run is None:
            return None
        history = self._context.history
        leader = history.trials[history.revisions[run.revision - 1].trial]
        if not headroom.including_kept_back().can_start(self._total, leader):
            return None
        trial = self._add(headroom.now, Role.REVISION)
        trial.seed = derived_seed(self._context.spec.seed, run.revision, run.pair, "revision")
        trial.params, trial.distributions = dict(leader.params), dict(leader.distributions)
        trial.system_attrs = {REVISION: [*run]}
        return Work(trial, DecisionKind.START, f"runs {run}", [leader.number])

    def _add(self, now: float, role: Role) -> Trial:
        history = self._context.history
        number, version = len(history.trials), history.version
        seed = derived_seed(self._context.spec.seed, number, "trial")
        trial = Trial(number, State.QUEUED, {}, seed=seed, created=now, role=role, version=version)
        return history.add_trial(trial)
