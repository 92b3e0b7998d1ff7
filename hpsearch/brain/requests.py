"""Requests of people and programs while a study runs: each is done, or refused with the reason.

A trial that was asked for is added at once and waits for a slot, before anything new. A budget can
only be raised.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hpsearch.brain.agenda import Agenda
from hpsearch.brain.context import Context
from hpsearch.domain import events as ev
from hpsearch.domain.facts import DecisionKind, Interruption, RequestKind, Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.phase import Phase
from hpsearch.domain.records import Outcome, Request, Revision, Trial
from hpsearch.errors import HpsearchError, UserError
from hpsearch.search.ranking.selection import counts, place_of
from hpsearch.study_file import space
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse
from hpsearch.study_file.text import with_budget
from trials.settings import in_full


@dataclass(frozen=True)
class Requests:
    """Does or refuses requests to one study."""

    context: Context
    agenda: Agenda

    def handle(self, request: Request, now: float) -> None:
        """Do a request, or refuse it, unless it is refused already."""
        try:
            if request.refused is None:
                self._do(request, now)
        except (HpsearchError, KeyError, TypeError, ValueError) as error:
            # Others write the table: what cannot be read must not end the study.
            request.refused = f"it cannot be read: {error!r}"
            if isinstance(error, HpsearchError):
                request.refused = error.message
        request.handled = now
        self.context.history.add_handled(request)

    def _do(self, request: Request, now: float) -> None:
        if self.context.progress.phase is Phase.ENDING:
            raise UserError(f"the study is ending: {self.context.progress.reason}")
        match request.kind:
            case RequestKind.STOP:
                self._stop(request, now)
            case RequestKind.PROPOSE:
                self._propose(request, now)
            case RequestKind.BUDGET:
                self._raise_budget(request.content)
            case RequestKind.REVISE:
                self._revise(request, now)
            case RequestKind.INTERRUPT:
                self.context.progress.interrupt(
                    Interruption.REQUEST, f"stopped by {request.origin}"
                )

    def _stop(self, request: Request, now: float) -> None:
        trial = self._trial(request.content["trial"])
        if trial.state.terminal:
            raise UserError(f"trial {trial.number} has ended already: {trial.state.value}")
        if trial.role is Role.REVISION:
            raise UserError(f"trial {trial.number} tests a revision: it is needed")
        if trial.role is Role.CONFIRM:
            raise UserError(f"trial {trial.number} confirms trial {trial.repeats}: it is needed")
        why = f"stopped by {request.origin}"
        running = self.context.attempts.running.get(trial.number)
        if running is not None:
            self.context.attempts.send(ev.Stop(*running.key))
            self.context.attempts.end(running, Outcome.PRUNED, now, why)
        self.agenda.drop(trial)
        self.context.log.decide(trial, DecisionKind.PRUNE, why, now)
        self.context.log.move(trial, State.PRUNED, ended=now)
        request.trial = trial.number

    def _propose(self, request: Request, now: float) -> None:
        content = request.content
        params = dict(content["params"])
        problems = space.contains(self.context.spec, params)
        if problems:
            raise UserError("; ".join(problems))
        trial = self.agenda.propose(params, now)
        why = f"asked for by {request.origin}"
        if content.get("why"):
            why += f": {content['why']}"
        self.context.log.decide(trial, DecisionKind.PROPOSE, why, now)
        request.trial = trial.number

    def _revise(self, request: Request, now: float) -> None:
        history, content = self.context.history, request.content
        number, origin = len(history.revisions) + 1, request.origin
        why, commit, patch = (str(content[name]) for name in ("why", "commit", "patch"))
        harness = {str(path): str(digest) for path, digest in content["harness"].items()}
        sign = self.context.spec.objective.sign
        complete = [each for each in history.trials if each.state is State.COMPLETE]
        ranked = sorted(filter(counts, complete), key=lambda trial: place_of(trial, sign))
        if not ranked:
            raise UserError("no trial is complete, with whose parameters a change can be tested")
        best = ranked[0].number
        history.touch_revision(Revision(number, now, origin, why, commit, patch, harness, best))

    def _raise_budget(self, changes: Mapping[str, Any]) -> None:
        context = self.context
        context.spec = raised(context.spec, changes)
        context.history.study.spec = context.spec.text
        context.history.touch_study()
        context.spending.change_budget(context.spec.budget)
        self.agenda.change_budget()

    def _trial(self, number: Any) -> Trial:
        trials = self.context.history.trials
        if type(number) is not int or not 0 <= number < len(trials):
            raise UserError(f"there is no trial {number}")
        return trials[number]


LIMITS = ("trials", "gpu_hours", "cost", "wall_clock")
"""The limits of a budget that can be raised, as a study file names them."""


def raised(spec: StudySpec, changes: Mapping[str, Any]) -> StudySpec:
    """A study file with higher limits, by name as the file writes them. Raises UserError if one is
    not the study's, is not higher than before, or cannot be read."""
    unknown = [name for name in changes if name not in LIMITS]
    if unknown or not changes:
        raise UserError(f"a budget has no limit {', '.join(unknown) or 'given'}")
    found = parse(with_budget(spec.text, changes), base=spec.base, recorded=True)
    for name in changes:
        before, after = limit_of(spec, name), limit_of(found, name)
        if before is None:
            raise UserError(f"the study has no limit on {name}")
        if after is None or after <= before:
            raise UserError(f"{name} can only be raised, and is {in_full(before)} already")
    return found


def limit_of(spec: StudySpec, name: str) -> float | None:
    """One of the `LIMITS` of a study; None if it has none."""
    limit: float | None = getattr(spec.budget, "wall_clock_s" if name == "wall_clock" else name)
    return limit
