"""The search of a study, which joins its parts.

`proposals` and `questions` draw parameters, `worth` values reports, a forecast
(`curve_model.forecast`) says what is expected of trials in full, and rungs (`promotion`) or a
pruner of Optuna decide which trials continue. The search keeps no records: it reads the history,
and rebuilds the rungs from it.
"""

import bisect
import math
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.pruners import BasePruner, NopPruner
from optuna.storages import BaseStorage

from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.phase import Phase
from hpsearch.domain.records import ReportRecord, Trial
from hpsearch.search.next_hour import gain_of
from hpsearch.search.of_plugins import OfPlugin
from hpsearch.search.promotion import LEADERS, Promotion
from hpsearch.search.proposals import Proposals, forecast_of
from hpsearch.search.questions import Questions
from hpsearch.search.ranking.in_order import RoughOrder
from hpsearch.search.rungs import Judgement, Rungs, Verdict
from hpsearch.search.samplers.view import id_of, unheard, without_repeats
from hpsearch.search.worth import Scoring, Worth
from hpsearch.study_file import methods
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.methods import PROMOTION
from hpsearch.study_file.models import StudySpec

LARGE, FOLLOWED = 1_000, 64
"""In a study of more than LARGE trials, FOLLOWED leading ones are kept up to date, and those that
may go on; of others the expectation is the one after their last report."""
BATCH = 1_024
"""The number of trials whose expectations are computed at a time: their covariances take memory."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """The worth of one report, and the next step of its trial."""

    worth: Worth
    judgement: Judgement
    until: float  # the resource up to which the trial may train before it is judged next
    stretch: float  # the next stretch of training: until then, and at least until its next report


class Searcher:
    """The search of one study, over its live history, which an Optuna storage reads too."""

    def __init__(self, spec: StudySpec, history: History, storage: BaseStorage) -> None:
        self._spec = spec
        self._history = history
        self._storage = storage
        self._total = spec.budget.per_trial.total
        self._report_levels = trial_budget(spec).report_at
        self._scoring = Scoring(spec)
        self._several = len(spec.objectives) > 1
        self._rough = RoughOrder(history, spec.objectives[0].sign)
        self._forecast = forecast_of(spec, history)
        self._read_at, _ = history.changed_since(0)
        trials = history.trials
        expected = [each for each in trials if not self._is_large or _awaits_expectation(each)]
        self._due = {trial.number for trial in expected}  # trials whose expectation is to be found
        self._plugin = OfPlugin("pruner", spec.search.pruner, history)
        self._pruner: BasePruner = NopPruner()
        self.promotion: Promotion | None = None
        """Decides which paused trials go on; None where a pruner of Optuna decides, or none."""
        self._rungs: Rungs | None = None
        if spec.search.pruner.kind == PROMOTION:
            self.promotion = Promotion(spec, history, self._forecast, self._rough)
            self._rungs = self.promotion.rungs
            for trial in trials:
                self._recall(self._rungs, trial)
        else:
            self._pruner = self._known_pruner()
        self.proposals = Proposals(spec, history, storage, self._forecast)
        """Draws the parameters of new trials."""
        self.questions = Questions(history, storage, self.proposals)
        """Draws what a running trial asks for."""

    def _known_pruner(self) -> BasePruner:
        levels, scale = self._report_levels, self._history.study.step_scale
        steps = round(levels[0] * scale), round(levels[-1] * scale)
        method = methods.with_known_steps(self._spec.search.pruner, *steps)
        try:
            return NopPruner() if self._plugin.is_left_out else methods.pruner(method)
        except Exception as error:  # noqa: BLE001 - it may be somebody else's code
            self._plugin.leave_out(error)
            return NopPruner()

    # -------------------------------------------------------------------------------------- judging

    def assess(self, trial: Trial, report: ReportRecord, phase: Phase) -> Assessment:
        """Value a report, whose trial has its former value still, and judge the trial.

        Once no new trials come, the trial that is likeliest to win goes on at once where it would
        have paused. The highest rung that the trial has reached is written into it.
        """
        worth = self._scoring.worth_of(report, trial)
        if self.promotion is None:
            judgement = self._judge_by_pruner(trial, report)
        else:
            judgement = self._judge_by_rungs(self.promotion, trial, report, worth.score, phase)
        return Assessment(worth, judgement, self.until(trial), self.stretch(trial))

    def until(self, trial: Trial) -> float:
        """The resource up to which a trial may train before it must wait for a judgement."""
        if trial.trains_in_full:
            return self._total
        if self._rungs is not None:
            ahead = self._rungs.level_after(trial.rung, trial.resource)
            return self._total if ahead is None else ahead
        if isinstance(self._pruner, NopPruner):
            return self._total
        return math.nextafter(trial.resource, math.inf)

    def stretch(self, trial: Trial) -> float:
        """The next stretch of a trial: until it is judged, and at least until its next report."""
        return max(self.until(trial) - trial.trains_from, self.next_report(trial))

    def next_report(self, trial: Trial) -> float:
        """The training of a trial until it reports beyond what it has reported."""
        levels = self._report_levels
        following = bisect.bisect_right(levels, trial.resource)
        due = levels[following] if following < len(levels) else self._total
        return due - trial.trains_from

    @property
    def first_stretch(self) -> float:
        """The stretch of a new trial before it is first judged."""
        return self.stretch(Trial(-1, State.QUEUED, {}))

    @property
    def last_rung(self) -> float:
        """The highest rung, at which a trial shows if it leads; without rungs the full budget."""
        if self._rungs is None or not self._rungs.rungs:
            return self._total
        return self._rungs.rungs[-1].level

    @unheard()
    def _judge_by_pruner(self, trial: Trial, report: ReportRecord) -> Judgement:
        resource, pruner = report.resource, self._pruner
        if isinstance(pruner, NopPruner) or trial.trains_in_full or resource >= self._total:
            return Judgement(Verdict.CONTINUE, "not to be judged")
        kind = self._spec.search.pruner.kind
        trial_id = id_of(trial, self._storage, self._history)
        frozen = self._storage.get_trial(trial_id)
        try:
            prunes = pruner.prune(self.searched(), frozen)
        except Exception as error:  # noqa: BLE001 - it may be somebody else's code
            self._plugin.leave_out(error)
            self._pruner = NopPruner()
            return Judgement(Verdict.CONTINUE, f"{kind} is left out")
        if prunes:
            return Judgement(Verdict.STOP, f"{kind} stops it at {resource:g}")
        return Judgement(Verdict.CONTINUE, f"{kind} lets it continue")

    def searched(self) -> optuna.Study:
        """The study for its pruner, without repeats."""
        name = self._history.study.name
        storage = without_repeats(self._storage, self._history)
        return optuna.Study(name, storage, pruner=self._pruner)

    def _judge_by_rungs(
        self, promotion: Promotion, trial: Trial, report: ReportRecord, score: float, phase: Phase
    ) -> Judgement:
        rungs = promotion.rungs
        is_placed = trial.role.of_search
        index = rungs.enter(trial.number, report.resource) if is_placed else None
        point = self._scoring.point(report) if self._several else score
        judgement = self._judge_at_rung(rungs, trial, index, point)
        if judgement.verdict is Verdict.PAUSE:
            judgement = promotion.after_report(trial, judgement, phase)
        if index is not None:
            trial.rung = index if trial.rung is None else max(trial.rung, index)
        return judgement

    def _judge_at_rung(
        self, rungs: Rungs, trial: Trial, index: int | None, score: Any
    ) -> Judgement:
        number = trial.number
        if index is None:
            is_in_full = trial.resource >= self._total
            if is_in_full and trial.role.of_search:
                rungs.finish(number, score)
            return Judgement(Verdict.CONTINUE, "between rungs")
        rung = rungs.rungs[index]
        if trial.trains_in_full:
            rung.record(number, score)
            rung.exempt(number)
            return Judgement(Verdict.CONTINUE, "goes all the way")
        if trial.rung is not None and index <= trial.rung:
            rung.record(number, score)
            return Judgement(Verdict.CONTINUE, "passed this rung before")
        return rungs.arrive(index, number, score)

    # --------------------------------------------------------------------------------------- pauses

    def resumed(self, trial: Trial) -> None:
        """Note that a paused trial runs again: it waits at no rung."""
        if self._rungs is not None:
            self._rungs.promote(trial.number)

    def ended(self, trial: Trial) -> None:
        """Note that a paused trial has ended: it waits at no rung, and has not gone on."""
        if self._rungs is not None:
            self._rungs.stop(trial.number)

    # --------------------------------------------------------------------------------- expectations

    def gain(self, hour: float, so_far: float) -> tuple[float, float] | None:
        """As `next_hour.gain_of`; None where nothing is expected of trials."""
        outlook = None if self._forecast is None else self._forecast.outlook(fit=False)
        leaders = [] if outlook is None else self._rough.leaders(LEADERS, outlook.known)
        if outlook is None or not leaders:
            return None
        leader = outlook.leader(leaders)
        others = [n for n in self._history.open if n in outlook.known and n != leader]
        return gain_of(outlook, leader, self._rough.first(LEADERS, others), hour, so_far)

    def expectations(self) -> list[tuple[Trial, float, float, float, float]]:
        """The expectations in full of the trials that lead and of those that have changed since the
        last call, also by their expectation: the value of the objective, its standard deviation and
        its 90% interval. Of a complete trial its result is expected, and the interval holds it.
        Once they are recorded, `expectations_recorded` is to be called."""
        outlook = None if self._forecast is None else self._forecast.outlook(fit=False)
        self._read_at, changed = self._history.changed_since(self._read_at)
        self._due.update(changed)
        if outlook is None:
            return []
        known, rough = outlook.known, self._rough
        due = self._due.union(rough.leaders(LEADERS, known))
        if self._is_large:
            due.update(rough.leaders(FOLLOWED, known), self._history.open)
        self._due = set()
        numbers = sorted(number for number in due if number in known and rough.is_candidate(number))
        found = []
        for start in range(0, len(numbers), BATCH):
            batch = numbers[start : start + BATCH]
            for number, expected in zip(batch, outlook.values(batch), strict=True):
                found.append(_expected(self._history.trials[number], expected))
        return found

    def expectations_recorded(self) -> None:
        """Take expectations that were just recorded, in a large study, for no changes: else all
        trials would be looked at again whenever the model has learnt something."""
        if self._is_large:
            self._read_at, _ = self._history.changed_since(self._read_at)

    @property
    def _is_large(self) -> bool:
        return len(self._history.trials) > LARGE

    def _recall(self, rungs: Rungs, trial: Trial) -> None:
        if not trial.role.of_search or trial.out_of_space:
            return
        number = trial.number
        score_of = self._scoring.point if self._several else self._scoring.score
        was_finite = False
        for resource in sorted(trial.reports):
            report = trial.reports[resource]
            is_finite = self._scoring.is_finite(report)
            if was_finite and not is_finite:
                continue  # it has diverged there, and was not judged
            was_finite |= is_finite
            score = score_of(report)
            index = rungs.enter(number, resource)
            if index is not None:
                rung = rungs.rungs[index]
                rung.record(number, score)
                if trial.trains_in_full:
                    rung.exempt(number)
            elif resource >= self._total:
                rungs.finish(number, score)
        if trial.rung is not None and trial.state is State.PAUSED:
            rungs.rungs[trial.rung].waiting.add(number)
        elif trial.state is State.PRUNED:
            rungs.take_back(trial)


def _expected(
    trial: Trial, expected: tuple[float, float, float, float]
) -> tuple[Trial, float, float, float, float]:
    if trial.state is not State.COMPLETE:
        return trial, *expected
    _, deviation, low, high = expected
    known = [at for at, report in trial.reports.items() if report.value is not None]
    result = trial.reports[max(known)].value if known else trial.value
    assert result is not None, "it has an expectation, and so a value"
    return trial, result, deviation, min(low, result), max(high, result)


def _awaits_expectation(trial: Trial) -> bool:
    """True if a trial on record may have reported since its expectation was noted."""
    return not trial.state.terminal or trial.expected is None
