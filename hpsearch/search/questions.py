"""Parameters that a trial asks for while it runs, because the study's space does not name them.

A value is drawn once, written into the trial with its distribution, and is the trial's from then
on, for all of its attempts. Optuna's order holds: a value that the user asked for, the only
value there is, one that the sampler drew together with others (with the trial's first question),
and else one that it draws for this parameter alone. The randomness is derived from the study's
seed, the trial's number and the parameter's name.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.storages import BaseStorage

from hpsearch.domain.history import History
from hpsearch.domain.records import Trial
from hpsearch.search.proposals import FIXED_PARAMS, Proposals
from hpsearch.search.samplers.view import id_of, unheard
from hpsearch.study_file.space import distribution_in, from_optuna
from trials.contract import HISTORY

DRAWN_TOGETHER = "hpsearch:relative_params"
"""The system attribute of a trial that holds what its sampler drew together."""


class Unanswerable(ValueError):
    """A trial cannot have a value for a parameter. The text says why, and what to do."""


class Questions:
    """Draws the parameters that one study's trials ask for, and writes them into the trials."""

    def __init__(self, history: History, storage: BaseStorage, proposals: Proposals) -> None:
        self._history = history
        self._storage = storage
        self._proposals = proposals

    @unheard()
    def value_for(self, trial: Trial, name: str, distribution: str) -> Any:
        """The value of a parameter: the one on record, or one that is drawn and recorded now from a
        distribution in Optuna's JSON; for `HISTORY`, the study's name and its trials.

        Raises:
            Unanswerable: Nothing can draw it, or it had another kind or other choices before.
        """
        if distribution == HISTORY:
            study = self._history.study
            return study.name, self._storage.get_all_trials(study.id, deepcopy=False)
        if name in trial.params:
            return trial.params[name]
        try:
            wanted = distribution_in(distribution)
            internal = wanted.to_internal_repr(self._drawn(trial, name, wanted))
            self._storage.set_trial_param(self._id_of(trial), name, internal, wanted)
        except Unanswerable:
            raise
        except (ValueError, ArithmeticError) as error:  # Optuna refuses it
            what = f"suggesting {name!r}: {str(error).rstrip('.')}"
            hint = "a name keeps its kind, scale and choices; use another one, or finite bounds"
            raise Unanswerable(f"{what}; {hint}") from None
        return trial.params[name]

    def _drawn(self, trial: Trial, name: str, wanted: BaseDistribution) -> Any:
        given = trial.system_attrs.get(FIXED_PARAMS, {})
        if name in given:
            value = given[name]
            if _has(wanted, value):
                return value
            what = f"{name}={value!r} was asked for, and the objective draws it from {wanted}"
            raise Unanswerable(f"{what}; ask for a value in there")
        if wanted.single():
            return _first_value(wanted)
        return self._proposals.by_sampler(self._by_sampler, trial, name, wanted)

    def _by_sampler(self, trial: Trial, name: str, wanted: BaseDistribution) -> Any:
        view = self._proposals.view_for_question(trial, name)
        if view is None:
            what = f"the objective asks for {name!r}, which the space does not name"
            raise Unanswerable(f"{what}; add it there, or use the sampler tpe, random or curve_gp")
        together = self._drawn_together(trial, view)
        if name in together and _has(wanted, together[name]):
            return together[name]
        frozen = self._storage.get_trial(self._id_of(trial))
        value = view.sampler.sample_independent(view, frozen, name, wanted)
        if not _has(wanted, value):
            raise ValueError(f"its sampler draws {value!r} from {wanted}")
        return value

    def _drawn_together(self, trial: Trial, view: optuna.Study) -> Mapping[str, Any]:
        known = trial.system_attrs.get(DRAWN_TOGETHER)
        if known is None:
            trial_id = self._id_of(trial)
            drawn = optuna.trial.Trial(view, trial_id).relative_params
            known = {}
            for name, value in drawn.items():
                known[name] = value.item() if isinstance(value, np.generic) else value
            self._storage.set_trial_system_attr(trial_id, DRAWN_TOGETHER, known)
        found: Mapping[str, Any] = known
        return found

    def _id_of(self, trial: Trial) -> int:
        return id_of(trial, self._storage, self._history)


def first_value(distribution: str) -> Any:
    """The first choice or lowest number of a distribution; for `HISTORY`, an empty study."""
    if distribution == HISTORY:
        return "", []
    return from_optuna(_first_value(distribution_in(distribution)))


def other_value(distribution: str) -> Any:
    """The second choice, or a number that is not the lowest, where a distribution has one."""
    wanted = distribution_in(distribution)
    if wanted.single():
        return from_optuna(_first_value(wanted))
    if isinstance(wanted, CategoricalDistribution):
        return from_optuna(wanted.choices[1])
    assert isinstance(wanted, FloatDistribution | IntDistribution)
    if wanted.step is not None:
        return from_optuna(wanted.low + wanted.step)
    middle = math.sqrt(wanted.low * wanted.high) if wanted.log else (wanted.low + wanted.high) / 2
    return from_optuna(middle)


def _has(distribution: BaseDistribution, value: Any) -> bool:
    try:
        optuna.trial.create_trial(value=0.0, params={"": value}, distributions={"": distribution})
    except (ValueError, TypeError):
        return False
    return True


def _first_value(distribution: BaseDistribution) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[0]
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    return distribution.low
