"""What to try next and what to do after a report: Optuna's samplers and pruners, and our own rungs, as one answer.

The randomness of a proposal is derived: trial n is drawn by a sampler made for it alone, with a seed that depends on
the study's seed and n. Together with the history (which the sampler reads through Optuna's storage interface) that
fixes the proposal, so a study that was killed proposes what it would have proposed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import Any

import optuna
from optuna.pruners import BasePruner, NopPruner
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage

from hpsearch import methods, space
from hpsearch.curve_gp import CurveGPSampler
from hpsearch.levels import ETA, PROMOTION, rung_levels, step_scale, trial_budget
from hpsearch.lifecycle import State
from hpsearch.measures import Measures
from hpsearch.records import History, Report, Trial
from hpsearch.rungs import Judgement, Rungs, Verdict
from hpsearch.sampler_view import SamplerView
from hpsearch.spec import Method, StudySpec

FIXED_PARAMS = "fixed_params"
"""The system attribute under which Optuna keeps parameters that are given, not drawn."""

DESIGNS = {"qmc", "QMCSampler"}
"""Samplers that lay out one design for the whole study: all trials must share its seed."""

STEPPED = {"successive_halving", "SuccessiveHalvingPruner", "hyperband", "HyperbandPruner"}
"""Pruners that guess their first and last step from finished trials where they are not told."""


def derived_seed(*parts: object) -> int:
    """A seed of 31 bits that depends on all of the parts and nothing else."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


class Search:
    """The searcher of one study.

    Args:
        spec: The study.
        history: Its live state; proposals are written into its trials.
        storage: An Optuna storage that reads that history.
    """

    def __init__(self, spec: StudySpec, history: History, storage: BaseStorage) -> None:
        self._spec = spec
        self._history = history
        self._storage = storage
        self._measures = Measures(spec)
        self._total = spec.budget.per_trial.total
        self._reports = trial_budget(spec).report_at
        self._curve_gp = self._curve_sampler() if spec.search.sampler.kind == methods.CURVE_GP else None
        self._pruner: BasePruner = NopPruner()
        self._rungs: Rungs | None = None
        if spec.search.pruner.kind == PROMOTION:
            self._rungs = Rungs(rung_levels(spec), self._total, spec.search.pruner.arguments.get("eta", ETA))
            self._recall()
        else:
            self._pruner = methods.pruner(_with_known_steps(spec))

    # ---------------------------------------------------------------------------------------------- proposing

    def propose(self, trial: Trial, given: dict[str, Any] | None = None) -> None:
        """Draw the trial's parameters and write them into it.

        Args:
            trial: A queued trial of the history, with no parameters yet.
            given: Parameters that are asked for rather than drawn; the rest is drawn.
        """
        if given:
            trial.system_attrs[FIXED_PARAMS] = given
            self._history.touch(trial)
        study = self._view(trial)
        trial_id = self._storage.get_trial_id_from_study_id_trial_number(study._study_id, trial.number)
        space.suggest(optuna.trial.Trial(study, trial_id), self._spec.space)

    def _sampler_for(self, trial: Trial) -> BaseSampler:
        """A sampler of Optuna's for one proposal; what it draws follows from its seed and the history."""
        method = self._spec.search.sampler
        draw = "design" if method.kind in DESIGNS else trial.number
        sampler: BaseSampler = methods.sampler(method, derived_seed(self._spec.seed, draw, "sampler"))
        return sampler

    def _curve_sampler(self) -> CurveGPSampler:
        """Our own sampler, one for the whole study: it seeds each proposal itself, and keeps what it has read."""
        parameters = {name: self._spec.space[name] for name in space.ordered(self._spec.space)}
        return CurveGPSampler(
            {name: space.distribution_of(parameter) for name, parameter in parameters.items()},
            self._total,
            derived_seed(self._spec.seed, "sampler"),
            {name: parameter.when for name, parameter in parameters.items() if parameter.when},
            scale=step_scale(self._spec),
        )

    def _view(self, trial: Trial) -> optuna.Study:
        """The study as the sampler of this trial reads it."""
        if self._curve_gp is not None:
            return optuna.Study(self._history.study.name, self._storage, sampler=self._curve_gp, pruner=NopPruner())
        heeds = methods.heeds_constraints(self._spec.search.sampler)
        limits = self._spec.constraints
        return SamplerView(self._study(), trial.number, self._sampler_for(trial), limits, heeds=heeds)

    def _study(self, sampler: BaseSampler | None = None) -> optuna.Study:
        return optuna.Study(self._history.study.name, self._storage, sampler=sampler, pruner=self._pruner)

    # ------------------------------------------------------------------------------------------------ judging

    def until(self, trial: Trial) -> float:
        """How far a trial may train before it must wait for a judgement."""
        if self.exempt(trial):
            return self._total
        if self._rungs is not None:
            passed = -1 if trial.rung is None else trial.rung
            later = [rung.level for rung in self._rungs.rungs[passed + 1 :] if rung.level > trial.resource]
            return min(later, default=self._total)
        if isinstance(self._pruner, NopPruner):
            return self._total
        return math.nextafter(trial.resource, math.inf)

    def stretch(self, trial: Trial) -> float:
        """How much a trial trains before it is judged next: at least until its next report is due."""
        report = next((level for level in self._reports if level > trial.resource), self._total)
        return max(self.until(trial), report) - trial.resource

    @property
    def first_stretch(self) -> float:
        """How far a new trial trains before it is first judged."""
        return self.stretch(Trial(-1, State.QUEUED, {}))

    @property
    def last_rung(self) -> float:
        """How far a trial must train to show whether it leads: to the highest rung, or in full where there is none."""
        return self._rungs.rungs[-1].level if self._rungs is not None and self._rungs.rungs else self._total

    def exempt(self, trial: Trial) -> bool:
        """Whether a trial is measured in full: the defaults as a yardstick, a confirmation as evidence."""
        return trial.role in ("default", "confirm")

    def judge(self, trial: Trial, report: Report, previous: float) -> Judgement:
        """Say what a running trial does after a report, and note the rung it has reached.

        Args:
            trial: The trial, with the report already in the history.
            report: Its newest report.
            previous: The resource of its report before, 0 if there is none.
        """
        if self._rungs is not None:
            return self._judge_at_rungs(trial, report, previous)
        if self.exempt(trial) or isinstance(self._pruner, NopPruner) or report.resource >= self._total:
            return Judgement(Verdict.CONTINUE, "not to be judged")
        study = self._study()
        trial_id = self._storage.get_trial_id_from_study_id_trial_number(study._study_id, trial.number)
        if not self._pruner.prune(study, self._storage.get_trial(trial_id)):
            return Judgement(Verdict.CONTINUE, f"{self._spec.search.pruner.kind} lets it go on")
        return Judgement(Verdict.STOP, f"{self._spec.search.pruner.kind} stops it at {report.resource:g}")

    def _judge_at_rungs(self, trial: Trial, report: Report, previous: float) -> Judgement:
        assert self._rungs is not None
        judgement = Judgement(Verdict.CONTINUE, "between rungs")
        for index, rung in enumerate(self._rungs.rungs):
            if not previous < rung.level <= report.resource:
                continue
            passed_before = trial.rung is not None and index <= trial.rung
            judgement = self._rungs.arrive(index, trial.number, self._measures.score(report))
            if passed_before or self.exempt(trial) or report.resource >= self._total:
                self._rungs.promote(trial.number)
                why = "passed this rung before" if passed_before else "goes all the way"
                judgement = Judgement(Verdict.CONTINUE, why)
            trial.rung = index if trial.rung is None else max(index, trial.rung)
            self._history.touch(trial)
        return judgement

    # --------------------------------------------------------------------------------------------- promotions

    def promotion(
        self, can_finish: Callable[[Trial], bool] = lambda trial: True, *, last_call: bool = False
    ) -> tuple[Trial, Judgement] | None:
        """The paused trial to continue on a free slot, if one has earned it.

        Args:
            can_finish: Whether enough of the budget is left to train a trial in full.
            last_call: No new trial will come, so the share that goes on is rounded up.
        """
        if self._rungs is None:
            return None
        trials = self._history.trials
        found = self._rungs.promotion(lambda number: can_finish(trials[number]), last_call=last_call)
        return None if found is None else (trials[found[0]], found[1])

    def continues(self, trial: Trial) -> None:
        """A paused trial runs again: it waits at no rung."""
        if self._rungs is not None:
            self._rungs.promote(trial.number)

    def _recall(self) -> None:
        """Rebuild the standings from the history's reports."""
        assert self._rungs is not None
        for trial in self._history.trials:
            previous = 0.0
            for resource in sorted(trial.reports):
                for rung in self._rungs.rungs:
                    if previous < rung.level <= resource:
                        rung.record(trial.number, self._measures.score(trial.reports[resource]))
                previous = resource
            if trial.state is State.PAUSED and trial.rung is not None:
                self._rungs.rungs[trial.rung].wait(trial.number)


def _with_known_steps(spec: StudySpec) -> Method:
    """The pruner with the steps it would otherwise guess from the first finished trials: here they are known."""
    method = spec.search.pruner
    if method.kind not in STEPPED:
        return method
    scale, levels = step_scale(spec), trial_budget(spec).report_at
    known = {"min_resource": round(levels[0] * scale)}
    if method.kind in ("hyperband", "HyperbandPruner"):
        known["max_resource"] = round(levels[-1] * scale)
    return Method(kind=method.kind, arguments={**known, **method.arguments})
