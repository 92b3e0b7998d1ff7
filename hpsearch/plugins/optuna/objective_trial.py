"""A trial as an objective of Optuna sees it, and its study as the objective and the callbacks of
libraries read it: Optuna's interfaces over our own.

Studies write values as JSON, with tuples as lists. Choices that JSON does not have, such as
classes, are written as text. The objective is given its own objects all the same.

The study itself may be on another machine. The trial's own record is here; the other trials are
asked for each time they are read. Nothing but the trial can be written to.
"""

import copy
import json
import sys
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, NoReturn

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    check_distribution_compatibility,
    distribution_to_json,
)
from optuna.pruners import NopPruner
from optuna.samplers import RandomSampler
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, Trial, TrialState

from trials.contract import HISTORY, Goal, Note, TrialStopped
from trials.foreign import plain
from trials.running.reported import number_of, scalar_of
from trials.settings import as_scalar
from trials.tasks.function.trial import FunctionTrial

CONSTRAINT = "constraints:"  # begins the system attributes that are constraints of a trial
STUDY = 0  # the id of the one study that a `StorageOfTrial` has


def _refused(what: str, hint: str) -> Callable[..., Any]:
    def refuse(*args: Any, **named: Any) -> NoReturn:
        raise NotImplementedError(f"{what} cannot work in a trial of hpsearch; {hint}")

    return refuse


_OWN = "a trial can write to itself alone, such as by trial.set_user_attr"


class StorageOfTrial(BaseStorage):
    """A study as one of its trials sees it, in Optuna's terms. The id of a trial is its number.

    Args:
        stated: The study that the objective's script has made, if any: its attributes hold here.
    """

    get_all_studies = _refused("a list of studies", "the command is: hpsearch ls")
    create_new_study = _refused("create_new_study", _OWN)
    delete_study = _refused("delete_study", "the command is: hpsearch rm")
    create_new_trial = _refused("a new trial", "ask for one with: hpsearch enqueue")
    set_study_user_attr = _refused("an attribute of the study", _OWN)
    set_study_system_attr = _refused("an attribute or artifact of the study", _OWN)
    set_trial_param = _refused("set_trial_param", "call trial.suggest_float and the like")
    set_trial_state_values = _refused("study.tell", "return the value, or raise TrialPruned")
    set_trial_intermediate_value = _refused(
        "set_trial_intermediate_value", "call trial.report(value, step)"
    )

    def __init__(self, trial: FunctionTrial, stated: optuna.Study | None) -> None:
        self._trial = trial
        self._attrs = {} if stated is None else stated.user_attrs
        self._own = FrozenTrial(
            number=trial.number,
            trial_id=trial.number,
            state=TrialState.RUNNING,
            value=None,
            datetime_start=datetime.now(),
            datetime_complete=None,
            params={},
            distributions={},
            user_attrs={},
            system_attrs={},
            intermediate_values={},
        )

    def get_study_id_from_name(self, study_name: str) -> int:
        return STUDY

    def get_study_name_from_id(self, study_id: int) -> str:
        return self._asked()[0]

    def get_study_directions(self, study_id: int) -> list[StudyDirection]:
        directions = [StudyDirection.MINIMIZE, StudyDirection.MAXIMIZE]
        return [directions[goal.maximize] for goal in self._trial.goals]

    def get_study_user_attrs(self, study_id: int) -> dict[str, Any]:
        return copy.deepcopy(self._attrs)

    def get_study_system_attrs(self, study_id: int) -> dict[str, Any]:
        return {}

    def get_trial_id_from_study_id_trial_number(self, study_id: int, trial_number: int) -> int:
        return trial_number

    def get_trial(self, trial_id: int) -> FrozenTrial:
        if trial_id == self._own.number:
            return self._own
        trials = self.get_all_trials(STUDY)
        if not 0 <= trial_id < len(trials):
            raise KeyError(f"No trial with the number {trial_id}.")
        return trials[trial_id]

    def get_all_trials(
        self, study_id: int, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        found = []
        for trial in self._asked()[1]:
            if trial.number != self._own.number:
                found.append(_numbered(trial))
        found.append(copy.deepcopy(self._own) if deepcopy else self._own)
        found.sort(key=lambda trial: trial.number)
        return [trial for trial in found if states is None or trial.state in states]

    def set_trial_user_attr(self, trial_id: int, key: str, value: Any) -> None:
        self._refuse_others(trial_id)
        self._own.user_attrs[key] = value
        self._trial.note(Note(attributes={key: value}))

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        self._refuse_others(trial_id)
        self._own.system_attrs[key] = value
        if key.startswith(CONSTRAINT):
            self._trial.note(Note(constraints={key.removeprefix(CONSTRAINT): value}))
        else:
            self._trial.note(Note(kept={key: value}))

    def _refuse_others(self, trial_id: int) -> None:
        if trial_id != self._own.number:
            _refused(f"an attribute of trial {trial_id}", _OWN)()

    def _asked(self) -> tuple[str, list[FrozenTrial]]:
        """The name of the study and its trials as they are now."""
        if self._trial.world_size > 1:
            what = "trial.study.trials, where several processes train each trial,"
            _refused(what, "use resources.processes: 1")()
        name, trials = self._trial.ask("the trials of the study", HISTORY)
        return name, trials


def _numbered(trial: FrozenTrial) -> FrozenTrial:
    """A copy of a trial, whose id is its number: the study may have the trial itself."""
    has_ended = trial.state.is_finished()
    return FrozenTrial(
        number=trial.number,
        trial_id=trial.number,
        state=trial.state,
        value=None,
        values=trial.values if has_ended else None,
        datetime_start=trial.datetime_start,
        datetime_complete=trial.datetime_complete,
        params=copy.deepcopy(trial.params),
        distributions=copy.deepcopy(trial.distributions),
        user_attrs=copy.deepcopy(trial.user_attrs),
        system_attrs=copy.deepcopy(trial.system_attrs),
        intermediate_values=copy.deepcopy(trial.intermediate_values),
    )


class StudyOfTrial(optuna.Study):
    """The value of `trial.study`."""

    optimize = _refused("trial.study.optimize", "make a study of its own: optuna.create_study()")
    ask = _refused("trial.study.ask", "call trial.suggest_float and the like")
    tell = _refused("trial.study.tell", "return the value, or raise TrialPruned")
    stop = _refused("trial.study.stop", "set budget.target, or stop it with: hpsearch stop")
    enqueue_trial = _refused("trial.study.enqueue_trial", "the command is: hpsearch enqueue")
    add_trial = add_trials = _refused("trial.study.add_trial", "use: hpsearch import")
    set_user_attr = _refused("trial.study.set_user_attr", _OWN)
    set_metric_names = _refused("trial.study.set_metric_names", "name objective.metric")

    def __init__(self, storage: StorageOfTrial) -> None:
        self._of_trial = storage
        super().__init__("", storage, RandomSampler(), NopPruner())

    @property
    def study_name(self) -> str:
        """The study's name, which is asked for."""
        return self._of_trial.get_study_name_from_id(STUDY)

    @study_name.setter
    def study_name(self, name: str) -> None:
        pass


class ObjectiveTrial(Trial):
    """The trial that an objective is called with: Optuna's own, which asks the study that runs it
    for parameters that it was not given.

    A suggestion is answered from the trial's parameters where they have it: those that the study
    file names, those under its `settings` and `args`, and whatever an earlier attempt of the trial
    was given. The study draws anything else when it is asked for.

    A step is how far the trial has trained. Where an objective counts from 0, step 0 is the first
    unit of the budget.
    """

    def __init__(
        self, given: Mapping[str, Any], trial: FunctionTrial, stated: optuna.Study | None = None
    ) -> None:
        storage = StorageOfTrial(trial, stated)
        super().__init__(StudyOfTrial(storage), trial.number)
        self._own = storage.get_trial(trial.number)
        if stated is not None:  # for who reads them; the study has its own
            self.study.sampler, self.study.pruner = stated.sampler, stated.pruner
        self._given = dict(given)
        self._trial = trial
        self._first_step: int | None = None
        self._last_step = -1
        self._resource = 0  # how far it has trained

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        choices = tuple(choices)
        written = [_as_json(name, choice) for choice in choices]
        distribution = CategoricalDistribution(list(map(as_scalar, written)))
        content = {"name": type(distribution).__name__, "attributes": {"choices": written}}
        value = self._asked(name, distribution, json.dumps(content))
        chosen = choices[_place_of(name, value, written)]
        self._own.params[name] = chosen
        return chosen

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        return float(self._suggested(name, FloatDistribution(low, high, log=log, step=step)))

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        return int(self._suggested(name, IntDistribution(low, high, log=log, step=step)))

    def _suggested(self, name: str, distribution: FloatDistribution | IntDistribution) -> Any:
        value = self._asked(name, distribution, distribution_to_json(distribution))
        fitting = _fitting(name, value, distribution)
        self._own.params[name] = fitting
        return fitting

    def _asked(self, name: str, distribution: BaseDistribution, content: str) -> Any:
        """The value of a parameter, by its distribution as JSON with nested choices."""
        name = _name(name)
        drawn_from = self._own.distributions
        if name in drawn_from:
            check_distribution_compatibility(drawn_from[name], distribution)
        if name not in self._given:
            self._given[name] = self._trial.ask(name, content)
        drawn_from[name] = distribution
        return self._given[name]

    def report(self, value: float, step: int) -> None:
        """Report the objective's value at a step, and wait for the go-ahead. A step that is
        reported already is ignored, as in Optuna. The report at the full budget waits for what the
        objective returns; one that goes on beyond it trains to its own end, and says so. Raises
        what Optuna raises, and TrialStopped, which `except Exception` does not catch."""
        if len(self._trial.goals) > 1:
            raise NotImplementedError("Trial.report is not supported with several objectives.")
        number, step = _number("value", value), int(step)
        if step < 0:
            raise ValueError(f"the step is {step}, but must not be negative")
        if self._first_step is None:
            self._first_step = step
        if step <= self._last_step:
            return
        self._last_step = step
        self._own.intermediate_values[step] = number
        self._resource = step + 1 if self._first_step == 0 else step
        if self._resource < self._trial.budget:
            self._report(self._resource, [number])
        elif self._resource > self._trial.budget:
            self._trial.note_trained_to(self._resource)

    def should_prune(self) -> bool:
        """False: what the study stops, it has stopped in `report`. Raises TrialStopped if the trial
        is to stop since then."""
        if self._trial.stopped:
            raise TrialStopped
        return False

    def finish(self, returned: Any) -> None:
        """Report what the objective has returned, at the full budget. Raises TypeError or
        ValueError if it is not a number for each objective of the study, and TrialStopped if the
        trial is over."""
        if self._resource not in (0, self._trial.budget):
            self._trial.note_trained_to(self._resource, is_end=True)
        self._report(self._trial.budget, _values(returned, self._trial.goals))

    def _report(self, resource: float, values: Sequence[float]) -> None:
        metrics = _metrics(self.user_attrs)
        names = [goal.metric for goal in self._trial.goals]
        metrics.update(zip(names, values, strict=True))
        self._trial.report(resource, metrics)

    def set_user_attr(self, key: str, value: Any) -> None:
        """Keep something with the trial. Numbers are also metrics of its next reports. Raises
        TypeError if JSON does not have such a value."""
        key = _name(key)
        kept = json.loads(json.dumps(scalar_of(value)))  # a copy; raises the TypeError
        super().set_user_attr(key, kept)

    def set_constraint(self, key: str, value: float) -> None:
        """Say how far the trial exceeds a limit; at most 0 if it keeps it. Raises as Optuna."""
        super().set_constraint(_name(key), value)

    def constrain(self, measure: Callable[[FrozenTrial], Sequence[float]]) -> None:
        """Set the constraints that the `constraints_func` of a sampler measures on this trial."""
        for place, excess in enumerate(measure(self._own)):
            self.set_constraint(str(place), excess)


def _name(key: object) -> str:
    """A name that an objective gives. Raises TypeError if it is not text."""
    if not isinstance(key, str):
        raise TypeError(f"a name must be text, and is of the type {type(key).__name__}")
    return plain(key)


def _values(returned: Any, goals: Sequence[Goal]) -> list[float]:
    several = list(returned) if isinstance(returned, Sequence) else [returned]
    if len(several) != len(goals):
        metrics = ", ".join(goal.metric for goal in goals)
        wanted = f"the study file wants one number for each of: {metrics}"
        raise ValueError(f"the objective returned {returned!r}, and {wanted}")
    return [_number("returned value", value) for value in several]


def _number(what: str, value: Any) -> float:
    try:
        return number_of(what, value)
    except ValueError:
        kind = type(value).__name__
        text = f"the {what} is of the type {kind}, but must be a number: {value!r}"
        raise TypeError(text) from None


def _metrics(attributes: Mapping[str, Any]) -> dict[str, float]:
    found = {}
    for name, value in attributes.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        has_name = name and name.isprintable() and not name.startswith("$")
        if is_number and has_name and abs(value) <= sys.float_info.max:
            found[name] = float(value)
    return found


def _as_json(name: str, choice: Any) -> Any:
    """A choice as a study writes it: tuples as lists, and one that JSON does not have by its name,
    or as Python writes it. Raises ValueError if that differs in each process."""
    if choice is None or type(choice) in (bool, int, float, str):
        return choice
    if isinstance(choice, list | tuple | dict):
        with suppress(TypeError, ValueError):
            return json.loads(json.dumps(choice, allow_nan=False))
    text = str(getattr(choice, "__qualname__", choice))
    if " at 0x" in text or "<lambda>" in text:
        what = f"the choice {text} of {name!r} cannot be written down"
        raise ValueError(f"{what}; suggest a name for it, and look it up by that")
    return text


def _fitting(name: str, value: Any, distribution: BaseDistribution) -> Any:
    """A number of the study, of the right kind, else a ValueError; its own range counts."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _refusal(name, value, "a number")
    if not isinstance(distribution, IntDistribution):
        return float(value)
    if value != int(value):
        raise _refusal(name, value, "a whole number")
    return int(value)


def _place_of(name: str, value: Any, choices: Sequence[Any]) -> int:
    """The place of a value among choices, where true is not 1; a `ValueError` if there is none."""
    for place, choice in enumerate(choices):
        if choice == value and isinstance(choice, bool) is isinstance(value, bool):
            return place
    raise _refusal(name, value, f"one of {', '.join(map(str, choices))}")


def _refusal(name: str, value: Any, wanted: str) -> ValueError:
    what = f"{name} is {value!r} in this study, and the objective wants {wanted}"
    return ValueError(f"{what}; change {name} in the study file or the objective")
