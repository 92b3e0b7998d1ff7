"""The next configurations: a sampler for each, over a view of the history that it can read.

Trial n is drawn by a sampler made for it alone, with a seed that depends on the study's seed and n.
A study that was killed and is resumed therefore proposes what it would have proposed.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, cast

import optuna
from optuna.pruners import NopPruner
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage

from hpsearch.domain.history import History
from hpsearch.domain.records import Trial
from hpsearch.domain.seeds import derived_seed
from hpsearch.errors import UserError
from hpsearch.search.curve_model.encoding import SpaceEncoding
from hpsearch.search.curve_model.forecast import Forecast
from hpsearch.search.optuna_private import brute_force_is_done
from hpsearch.search.samplers.curve_gp import CurveGPSampler
from hpsearch.search.samplers.design import Design
from hpsearch.search.samplers.view import SamplerView, id_of, underway, without_repeats
from hpsearch.study_file import methods, space
from hpsearch.study_file.methods import Method
from hpsearch.study_file.models import StudySpec

LOSSES = ("loss", "validation_loss", "val_loss", "eval_loss")
"""Names of a validation loss, which counts beside the objective: `loss` in our own loop."""

ATTEMPTS = 8
"""The most times that a sampler draws for one trial, until the study's requirements are kept."""

FIXED_PARAMS = "fixed_params"
"""The system attribute under which Optuna keeps parameters that are given, not drawn."""


class Proposals:
    """Draws the parameters of one study's trials, and writes them into its live history."""

    def __init__(
        self, spec: StudySpec, history: History, storage: BaseStorage, forecast: Forecast | None
    ) -> None:
        self._spec = spec
        self._history = history
        self._storage = storage
        self._forecast = forecast
        self._method = spec.search.sampler
        self._class = methods.class_name(self._method)
        self._asked_at = 0
        self._all_tried = False
        """The last result of `exhausted`, with `_asked_at` trials."""
        self._grid = space.grid(spec.space, spec.requires)
        self._ahead: dict[str, Any] | None = None
        """The last result of `_untried`: all before it in the grid have been tried."""

    def propose(self, trial: Trial, given: dict[str, Any] | None = None) -> None:
        """Draw the parameters of a queued trial that are not given, and write them into it."""
        history = self._history
        if given:
            trial.system_attrs[FIXED_PARAMS] = given
            history.touch(trial)
        trial_id = id_of(trial, self._storage, history)
        for attempt in range(1 if self._method.kind == methods.CURVE_GP else ATTEMPTS):
            view = self.view_for(trial, attempt)
            params = space.suggest(optuna.trial.Trial(view, trial_id), self._spec.space)
            if self._is_allowed(params):
                return
            trial.params, trial.distributions = {}, {}
            history.touch(trial)
        for name, value in self._otherwise(trial, given).items():
            distribution = space.distribution_of(self._spec.space[name])
            internal = distribution.to_internal_repr(value)
            self._storage.set_trial_param(trial_id, name, internal, distribution)

    def _is_allowed(self, params: dict[str, Any]) -> bool:
        return space.broken(self._spec.requires, params) is None

    def _otherwise(self, trial: Trial, given: dict[str, Any] | None) -> dict[str, Any]:
        """An allowed configuration, where the sampler has found none.

        Raises:
            UserError: There is none among very many random ones.
        """
        spec = self._spec
        if self._class == "BruteForceSampler" and not given and (untried := self._untried()):
            return untried
        seed = derived_seed(spec.seed, trial.number, "requires")
        params = space.drawn(spec.space, spec.requires, seed, given)
        if params is None:
            what = f"none of {space.MOST_DRAWS} random configurations keeps all requirements"
            raise UserError(f"trial {trial.number}: {what}", "loosen requires in the study file")
        return params

    def _untried(self) -> dict[str, Any] | None:
        """The first allowed configuration of a grid that no trial has; None if there is none."""
        tried = {frozenset(trial.params.items()) for trial in self._history.trials}
        while self._ahead is None or frozenset(self._ahead.items()) in tried:
            self._ahead = next(self._grid, None)
            if self._ahead is None:
                break
        return self._ahead

    @property
    def exhausted(self) -> bool:
        """True if a sampler that tries each configuration once has none left."""
        history = self._history
        count = len(history.trials)
        if self._class != "BruteForceSampler" or not count:
            return False
        if self._asked_at != count and self._spec.requires:
            self._all_tried = self._untried() is None
            self._asked_at = count
        elif self._asked_at != count:
            trials = underway(self._storage).get_all_trials(history.study.id, deepcopy=False)
            self._all_tried = brute_force_is_done(trials)
            self._asked_at = count
        return self._all_tried

    def view_for(self, trial: Trial, attempt: int = 0) -> optuna.Study:
        """The study as the sampler of this trial reads it, for one of the attempts to draw it."""
        if self._method.kind == methods.CURVE_GP:
            name = self._history.study.name
            return optuna.Study(name, self._storage, sampler=self.curve_gp, pruner=NopPruner())
        return self._view(self._method, self._sampler_for(trial, attempt))

    def view_for_question(self, trial: Trial, name: str) -> optuna.Study | None:
        """The study for the sampler of a parameter that the space does not name; None if the
        study's sampler needs the whole space in advance."""
        if self._class in methods.LAID_OUT:
            return None
        method = methods.for_questions(self._method)
        seed = derived_seed(self._spec.seed, trial.number, "sampler", name)
        return self._view(method, cast(BaseSampler, methods.sampler(method, seed)))

    def _view(self, method: Method, sampler: BaseSampler) -> optuna.Study:
        name = methods.class_name(method)
        limits = self._spec.constraints if name in methods.CONSTRAINED else None
        storage = self._storage
        if name not in methods.AVERAGING:
            storage = without_repeats(storage, self._history)
        return SamplerView(self._history.study.name, storage, sampler, limits)

    def _sampler_for(self, trial: Trial, attempt: int) -> BaseSampler:
        again = ("again", attempt) if attempt else ()
        seed = derived_seed(self._spec.seed, trial.number, "sampler", *again)
        if self._class == "QMCSampler":  # one design for the whole study, under one seed
            seed = derived_seed(self._spec.seed, "design", "sampler", *again)
            encoding = encoding_of(self._spec)
            return Design(encoding, trial.number, seed, **self._method.arguments)
        return cast(BaseSampler, methods.sampler(self._method, seed))

    @cached_property
    def curve_gp(self) -> CurveGPSampler:
        """Our own sampler, one for the whole study: it keeps what it has read."""
        assert self._forecast is not None, "a study of several objectives cannot use curve_gp"
        seed = derived_seed(self._spec.seed, "sampler")
        return CurveGPSampler(self._forecast, self._history, seed, space.priors(self._spec.space))


def forecast_of(spec: StudySpec, history: History) -> Forecast | None:
    """The forecast of a study's trials; None with several objectives, which it cannot weigh."""
    if len(spec.objectives) > 1:
        return None
    losses = [name for name in LOSSES if name != spec.objective.metric]
    encoding = encoding_of(spec)
    total = spec.budget.per_trial.total
    return Forecast(encoding, history, total, losses, spec.objective.metric)


def encoding_of(spec: StudySpec) -> SpaceEncoding:
    """The encoding of the configurations of a study as points."""
    conditions = {name: each.when for name, each in spec.space.items() if each.when}
    return SpaceEncoding(space.distributions(spec.space), conditions, spec.requires)
