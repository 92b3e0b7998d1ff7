"""Requests of people and programs while a study runs: each is done, or refused with the reason.

A trial that was asked for is added at once and waits for a slot, before anything new. A budget can
only be raised.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hpsearch.brain.agenda import Agenda
from hpsearch.brain.attempts import Attempts
from hpsearch.brain.progress import StudyProgress
from hpsearch.brain.trial_log import TrialLog
from hpsearch.domain import events as ev
from hpsearch.domain.facts import DecisionKind, RequestKind, Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.phase import Phase
from hpsearch.domain.records import Outcome, Request, Trial
from hpsearch.errors import HpsearchError, UserError
from hpsearch.study_file import space
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse
from hpsearch.study_file.text import with_budget
from trials.settings import in_full

INTERRUPTED = "interrupted"  # the reason for the end of a study that Ctrl-C has stopped
SIGNALLED = "told to end by "
"""The beginning of the reason where another signal has; its name follows."""
STOPPED_BY = "stopped by "
"""The beginning of the reason where somebody asked for the end; their name follows."""


def was_asked_to_stop(reason: str | None) -> bool:
    """True if a study was interrupted because somebody wanted it, by the reason on record."""
    return reason is None or reason == INTERRUPTED or reason.startswith((SIGNALLED, STOPPED_BY))


@dataclass(frozen=True)
class Requests:
    """Does or refuses requests to one study."""

    history: History
    agenda: Agenda
    attempts: Attempts
    log: TrialLog
    raise_budget: Callable[[Mapping[str, Any]], None]
    """Gives the study other limits, by name as its study file writes them. Raises a `UserError` if
    it cannot."""
    progress: StudyProgress

    def handle(self, request: Request, spec: StudySpec, now: float) -> None:
        """Do a request, or refuse it, unless it is refused already."""
        try:
            if request.refused is None:
                self._do(request, spec, now)
        except (HpsearchError, KeyError, TypeError, ValueError) as error:
            # Others write the table: what cannot be read must not end the study.
            request.refused = f"it cannot be read: {error!r}"
            if isinstance(error, HpsearchError):
                request.refused = error.message
        request.handled = now
        self.history.add_handled(request)

    def _do(self, request: Request, spec: StudySpec, now: float) -> None:
        if self.progress.phase is Phase.ENDING:
            raise UserError(f"the study is ending: {self.progress.reason}")
        match request.kind:
            case RequestKind.STOP:
                self._stop(request, now)
            case RequestKind.PROPOSE:
                self._propose(request, spec, now)
            case RequestKind.BUDGET:
                self.raise_budget(request.content)
            case RequestKind.INTERRUPT:
                self.progress.wind_down(Phase.INTERRUPTED, f"{STOPPED_BY}{request.origin}")

    def _stop(self, request: Request, now: float) -> None:
        trial = self._trial(request.content["trial"])
        if trial.state.terminal:
            raise UserError(f"trial {trial.number} has ended already: {trial.state.value}")
        if trial.role is Role.CONFIRM:
            raise UserError(f"trial {trial.number} confirms trial {trial.repeats}: it is needed")
        why = f"{STOPPED_BY}{request.origin}"
        running = self.attempts.running.get(trial.number)
        if running is not None:
            self.attempts.send(ev.Stop(*running.key))
            self.attempts.end(running, Outcome.PRUNED, now, why)
        self.agenda.drop(trial)
        self.log.decide(trial, DecisionKind.PRUNE, why, now)
        self.log.move(trial, State.PRUNED, ended=now)
        request.trial = trial.number

    def _propose(self, request: Request, spec: StudySpec, now: float) -> None:
        content = request.content
        params = dict(content["params"])
        problems = space.contains(spec, params)
        if problems:
            raise UserError("; ".join(problems))
        trial = self.agenda.propose(params, now)
        why = f"asked for by {request.origin}"
        if content.get("why"):
            why += f": {content['why']}"
        self.log.decide(trial, DecisionKind.PROPOSE, why, now)
        request.trial = trial.number

    def _trial(self, number: Any) -> Trial:
        trials = self.history.trials
        if type(number) is not int or not 0 <= number < len(trials):
            raise UserError(f"there is no trial {number}")
        return trials[number]


LIMITS = ("trials", "gpu_hours", "cost", "wall_clock")
"""The limits of a budget that can be raised, as a study file names them."""


def raised(spec: StudySpec, changes: Mapping[str, Any]) -> StudySpec:
    """A study file with higher limits, by name as the file writes them.

    Raises:
        UserError: A limit is not one of the study's, is not higher than before, or cannot be read.
    """
    unknown = [name for name in changes if name not in LIMITS]
    if unknown or not changes:
        raise UserError(f"a budget has no limit {', '.join(unknown) or 'given'}")
    found = parse(with_budget(spec.text, changes), base=spec.base, recorded=True)
    for name in changes:
        before, after = _limit(spec, name), _limit(found, name)
        if before is None:
            raise UserError(f"the study has no limit on {name}")
        if after is None or after <= before:
            raise UserError(f"{name} can only be raised, and is {in_full(before)} already")
    return found


def _limit(spec: StudySpec, name: str) -> float | None:
    limit: float | None = getattr(spec.budget, "wall_clock_s" if name == "wall_clock" else name)
    return limit
