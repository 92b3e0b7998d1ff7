"""The next configurations: a sampler for each, over a view of the history that it can read.

Trial n is drawn by a sampler made for it alone, with a seed that depends on the study's seed and n.
A study that was killed and is resumed therefore proposes what it would have proposed.

A sampler of a plugin that raises is left out: `random` draws in its place from then on.

A configuration that the study has tried is drawn again, and after `ATTEMPTS` draws an untried one
is taken at random. One that was asked for is never refused.
"""

from collections.abc import Callable
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar, cast

import optuna
from optuna.distributions import BaseDistribution
from optuna.pruners import NopPruner
from optuna.samplers import BaseSampler, RandomSampler
from optuna.storages import BaseStorage

from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.domain.seeds import derived_seed
from hpsearch.errors import UserError
from hpsearch.search.curve_model.encoding import SpaceEncoding
from hpsearch.search.curve_model.forecast import Forecast
from hpsearch.search.of_plugins import OfPlugin
from hpsearch.search.ranking.in_order import InOrder
from hpsearch.search.samplers.curve_gp import CurveGPSampler
from hpsearch.search.samplers.design import Design
from hpsearch.search.samplers.view import id_of, only, sampler_view, unheard, without_repeats
from hpsearch.search.untried import Untried
from hpsearch.study_file import methods, space
from hpsearch.study_file.methods import Method
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.space import distribution_of, in_optuna
from trials.contract import ROUNDS

LOSSES = ("loss", "validation_loss", "val_loss", "eval_loss"), ("train_loss", "training_loss")
"""Names of a validation loss and of a training loss, which count beside the objective."""
ATTEMPTS = 8
"""The most draws of a sampler for one trial, until its configuration is untried and keeps the
study's requirements."""
MOST_SHOWN, BEST_SHOWN = 1_000, 64
"""TPE is shown so many trials of a larger study, the best ones and the latest: it models at most
the best 25 as good, and gives the others the less weight the older they are. A proposal takes half
the time with 2,000 trials, and a ninth with 20,000."""
STEADY = methods.AVERAGING | {"BruteForceSampler", methods.CURVE_GP}
"""Samplers that see to that by themselves, or that would draw the same again."""
FIXED_PARAMS = "fixed_params"
"""The system attribute under which Optuna keeps parameters that are given, not drawn."""

RANDOM = Method(kind="random")
Drawn = TypeVar("Drawn")


class Proposals:
    """Draws the parameters of one study's trials, and writes them into its live history."""

    def __init__(
        self, spec: StudySpec, history: History, storage: BaseStorage, forecast: Forecast | None
    ) -> None:
        self._spec = spec
        self._history = history
        self._storage = storage
        self._forecast = forecast
        self._plugin = OfPlugin("sampler", spec.search.sampler, history)
        self._method = RANDOM if self._plugin.is_left_out else spec.search.sampler
        self._class = methods.class_name(self._method)
        self._best_first: InOrder | None = None
        """For a sampler that is shown only a part of a large study."""
        if self._class in methods.SHOWN_PART and len(spec.objectives) == 1:
            sign = spec.objective.sign
            self._best_first = InOrder(history, lambda trial: _tpe_place(trial, sign))
        self._untried: Untried | None = None
        """None if trials may ask for more than the space has, so that they cannot be compared."""
        if not space.is_open(spec.task):
            self._untried = Untried(spec.space, spec.requires, history)

    def propose(self, trial: Trial, given: dict[str, Any] | None = None) -> None:
        """Draw the parameters of a queued trial that are not given, and write them into it."""
        if self._untried is not None:
            self._untried.refresh()
        if given:
            given = space.as_written(self._spec.space, given)
            fixed = {name: in_optuna(value) for name, value in given.items()}
            trial.system_attrs = {**trial.system_attrs, FIXED_PARAMS: fixed}
            self._history.touch(trial)
        for attempt in range(1 if self._class in STEADY else ATTEMPTS):
            self.by_sampler(self._draw, trial, attempt)
            if self._may_be_tried(trial.params, is_given=bool(given)):
                return
            trial.params, trial.distributions = {}, {}
            self._history.touch(trial)
        self._write(trial, self._anywhere(trial, given))

    @property
    def exhausted(self) -> bool:
        """True if all configurations of a finite space have been tried or are under way."""
        return self._untried is not None and self._untried.exhausted

    @property
    def drawn_by(self) -> str:
        """The name of the sampler that draws."""
        return self._method.kind

    def by_sampler(self, draw: Callable[..., Drawn], *args: Any) -> Drawn:
        """Let the sampler draw, or once a plugin's has raised, `random`, which replaces it."""
        try:
            return draw(*args)
        except Exception as error:  # noqa: BLE001 - it may be somebody else's code
            self._plugin.leave_out(error)
        self._method = RANDOM
        self._class = methods.class_name(RANDOM)
        return draw(*args)

    @unheard()
    def _draw(self, trial: Trial, attempt: int) -> None:
        trial.params, trial.distributions = {}, {}  # those of one that raised in the middle
        trial_id = id_of(trial, self._storage, self._history)
        view = self.view_for(trial, attempt)
        space.suggest(optuna.trial.Trial(view, trial_id), self._spec.space)
        refuse_outside(trial.params, trial.distributions)

    def _may_be_tried(self, params: dict[str, Any], *, is_given: bool) -> bool:
        if space.broken(self._spec.requires, params) is not None:
            return False
        return is_given or self._untried is None or not self._untried.was_tried(params)

    def _anywhere(self, trial: Trial, given: dict[str, Any] | None) -> dict[str, Any]:
        """A random configuration that may be tried, where the sampler has found none.

        Raises:
            UserError: There is none among very many.
        """
        spec = self._spec
        seed = derived_seed(spec.seed, trial.number, "anywhere")
        if given or self._untried is None:
            params = space.drawn(spec.space, spec.requires, seed, given)
        else:
            params = self._untried.anywhere(seed)
        if params is None:
            count = space.most_draws(spec.space, spec.requires)
            what = f"none of {count} random configurations keeps all requirements"
            raise UserError(f"trial {trial.number}: {what}", "loosen requires in the study file")
        return params

    def _write(self, trial: Trial, params: dict[str, Any]) -> None:
        trial_id = id_of(trial, self._storage, self._history)
        for name, value in params.items():
            distribution = distribution_of(self._spec.space[name])
            internal = distribution.to_internal_repr(in_optuna(value))
            self._storage.set_trial_param(trial_id, name, internal, distribution)

    def view_for(self, trial: Trial, attempt: int = 0) -> optuna.Study:
        """The study as the sampler of this trial reads it, in this attempt to draw it."""
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
        kind = methods.class_name(method)
        limits = self._spec.constraints if kind in methods.CONSTRAINED else None
        history, storage = self._history, self._storage
        is_large = len(history.trials) > MOST_SHOWN
        if is_large and self._best_first is not None:
            storage = only(storage, self._shown(self._best_first))
        if kind not in methods.AVERAGING:
            storage = without_repeats(storage, history)
        return sampler_view(history.study.name, storage, sampler, limits)

    def _shown(self, best_first: InOrder) -> list[int]:
        count = len(self._history.trials)
        shown = {*islice(best_first, BEST_SHOWN), *self._history.open}
        latest = max(0, MOST_SHOWN - len(shown))
        return sorted(shown.union(range(count - latest, count)))

    def _sampler_for(self, trial: Trial, attempt: int) -> BaseSampler:
        again = (attempt,) if attempt else ()
        seed = derived_seed(self._spec.seed, trial.number, "sampler", *again)
        if self._class == "QMCSampler":  # one design for the whole study, under one seed
            seed = derived_seed(self._spec.seed, "design", "sampler", *again)
            encoding = encoding_of(self._spec)
            return Design(encoding, trial.number, seed, **self._method.arguments)
        sampler: BaseSampler = methods.sampler(self._method, seed)
        if self._together is not None:
            found = self._together
            vars(sampler)["infer_relative_search_space"] = lambda study, trial: found
        return sampler

    @cached_property
    @unheard()
    def _together(self) -> dict[str, BaseDistribution] | None:
        """What the sampler draws together, which it would find anew in all trials of each study
        that it is shown; None where trials differ in their parameters."""
        parameters = self._spec.space
        if self._class not in methods.INTERSECTING or self._method.arguments.get("group"):
            return None
        if space.is_open(self._spec.task) or any(each.when for each in parameters.values()):
            return None
        directions = [objective.direction for objective in self._spec.objectives]
        study = optuna.create_study(directions=directions, sampler=RandomSampler(seed=0))
        trial = study.ask(space.distributions(parameters))
        study.tell(trial, [0.0] * len(directions))
        sampler: BaseSampler = methods.sampler(self._method, seed=0)
        return sampler.infer_relative_search_space(study, study.trials[0])

    @cached_property
    def curve_gp(self) -> CurveGPSampler:
        """Our own sampler, one for the whole study: it keeps what it has read."""
        assert self._forecast is not None, "a study of several objectives cannot use curve_gp"
        seed = derived_seed(self._spec.seed, "sampler")
        believed = space.priors(self._spec.space)
        return CurveGPSampler(self._forecast, self._history, seed, believed, self._untried)


def refuse_outside(params: dict[str, Any], distributions: dict[str, BaseDistribution]) -> None:
    """Raise ValueError if values do not lie in their distributions."""
    as_optuna = {name: in_optuna(value) for name, value in params.items()}
    optuna.trial.create_trial(value=0.0, params=as_optuna, distributions=distributions)


def _tpe_place(trial: Trial, sign: float) -> tuple[float, ...] | None:
    """The key by which TPE finds good trials: of those that keep the limits the complete ones, by
    their values, and then those that trained farthest."""
    value, state = trial.value, trial.state
    if value is None or state is State.FAILED or not trial.role.of_search:
        return None
    is_complete = state is State.COMPLETE
    far = 0.0 if is_complete else -trial.resource
    return (trial.violation, not is_complete, far, sign * value, trial.number)


def forecast_of(spec: StudySpec, history: History) -> Forecast | None:
    """The forecast of a study's trials; None with several objectives, which it cannot weigh, and in
    a space that is too wide for its model."""
    dimensions = sum(map(space.dimensions_of, spec.space.values()))
    if len(spec.objectives) > 1 or dimensions > space.MOST_DIMENSIONS:
        return None
    metric = spec.objective.metric
    validation, training = ([name for name in some if name != metric] for some in LOSSES)
    encoding = encoding_of(spec)
    per_trial = spec.budget.per_trial
    found = Forecast(encoding, history, per_trial.total, (validation, training), metric)
    found.reader.are_means = per_trial.unit in ROUNDS
    return found


def encoding_of(spec: StudySpec) -> SpaceEncoding:
    """The encoding of the configurations of a study as points."""
    conditions = {name: each.when for name, each in spec.space.items() if each.when}
    return SpaceEncoding(space.distributions(spec.space), conditions, spec.requires)
