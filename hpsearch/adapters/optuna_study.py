"""The study of a running trial, as its objective and the callbacks of libraries read it.

The study itself may be on another machine. The trial's own record is here; the other trials are
asked for each time they are read. Nothing but the trial can be written to.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Container
from datetime import datetime
from typing import Any, NoReturn

import optuna
from optuna.pruners import NopPruner
from optuna.samplers import RandomSampler
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from trials.contract import HISTORY, Note
from trials.tasks.function.trial import FunctionTrial

CONSTRAINT = "constraints:"
"""Begins the system attributes that are constraints of a trial."""
STUDY = 0
"""The id of the one study that a `StorageOfTrial` has."""


def _refused(what: str, hint: str) -> Callable[..., Any]:
    """A method of a study or its storage that cannot work in a trial."""

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
                here = copy.deepcopy(trial)  # where the study is in this process, it has the trial
                here._trial_id = trial.number
                found.append(here)
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
        super().__init__("", storage, RandomSampler(), NopPruner())

    @property
    def study_name(self) -> str:
        """The study's name, which is asked for."""
        return self._storage.get_study_name_from_id(STUDY)

    @study_name.setter
    def study_name(self, name: str) -> None:
        pass
