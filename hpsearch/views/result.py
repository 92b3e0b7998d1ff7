"""The result of a study: which configuration is best, how sure that is, and how it is trained anew.

`study_result` reads it as one object. `differences` and `common_levels` compare trials, and
`to_train` has the commands that train a configuration.
"""

import enum
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from hpsearch.search.ranking.again import Again
from hpsearch.search.ranking.no_effect import NoEffect, no_effect
from hpsearch.search.ranking.selection import Ranked, counts, standing
from hpsearch.store.reading.attempts import UNKNOWN, Origins, origins
from hpsearch.store.reading.best import (
    COMPARED,
    LastWord,
    best_trials,
    goals_of,
    last_word,
    with_again,
)
from hpsearch.store.reading.own_ends import OwnEnds, own_ends
from hpsearch.store.reading.queries import StudyHead, TrialDetail, TrialRow, default_trial, seen_at
from hpsearch.store.reading.rounds import over_rounds
from hpsearch.store.reading.trust import StudyTrust, first_reports, study_trust
from hpsearch.study_file.reading import origin_of
from trials.descriptions.builtin import BUILT_IN
from trials.descriptions.command import COMMAND
from trials.descriptions.description import ASK


@dataclass(frozen=True)
class StudyResult:
    """The best trials of a study, and how sure it is that they are."""

    study: StudyHead
    metrics: Sequence[str]  # those of its objectives
    ranked: Sequence[Ranked[TrialRow]]
    """The best trials, best first; with several objectives those that no other beats."""
    seen_at: Mapping[int, float]
    """The resource at which trials first showed their value, by their numbers."""
    default: TrialRow | None
    """The trial of the task's default settings, with what comes of it when it is trained again as
    its expectation; None if there was none that can be ranked."""
    trust: StudyTrust  # how far the rungs can be trusted
    no_effect: NoEffect | None = None  # parameters that have made no difference, if any are known
    origins: Origins = UNKNOWN  # the code that the trials ran, and that of the best one
    ends: OwnEnds | None = None  # the trials that did not end at their budget; None if all did
    over: Again | None = None  # the value of the best one over its folds or seeds; None without any
    last_word: LastWord | None = None
    """Of the best trial beside the defaults; None without `search.certify`."""

    def shown(self, top: int | None = None) -> Sequence[Ranked[TrialRow]]:
        """The trials that are shown: `top`, or else one, or the whole front."""
        if top is None and self.study.has_best:
            top = 1
        return self.ranked[:top]

    @property
    def best(self) -> Ranked[TrialRow] | None:
        """The best trial; None with several objectives, and before a trial has a value."""
        return self.ranked[0] if self.ranked and self.study.has_best else None

    @property
    def tied(self) -> list[int]:
        """The numbers of the trials that cannot be told from the best one."""
        others = self.ranked[1:] if self.best else ()
        return [each.trial.number for each in others if each.tied]

    @property
    def unknown(self) -> list[int]:
        """The numbers of the trials that have trained too little to tell them from the best one."""
        ranked = self.ranked if self.best else ()
        return [each.trial.number for each in ranked if each.unknown]

    @property
    def gain(self) -> float | None:
        """How much better the best trial is than the defaults, if both are trained again."""
        best, default = self.best, self.default
        if best is None or default is None or best.trial.violation > 0:
            return None
        difference = best.mean - standing(default)
        return difference if self.study.direction == "maximize" else -difference


def study_result(
    connection: Connection, study: StudyHead, top: int = 1, *, where: str | None = None
) -> StudyResult:
    """The result of a study, by the trials that `where` selects: the best `top` and more, because
    ties count, or with several objectives the whole front. Raises FilterError for `where`."""
    most = max(top, COMPARED) if study.has_best else None
    ranked = best_trials(connection, study, most, where=where)
    default = default_trial(connection, study) if study.has_best and where is None else None
    if default is not None and counts(default):
        with_again(connection, study, [default])
    else:
        default = None
    metrics = [goal.metric for goal in goals_of(study)]
    trust = study_trust(connection, study)
    total = math.inf if trust.spec is None else trust.spec.budget.per_trial.total
    trainings = first_reports(connection, study) if metrics else []
    level = None if trust.spec is None or where is not None else trust.spec.search.level
    return StudyResult(
        study=study,
        metrics=metrics,
        ranked=ranked,
        seen_at=seen_at(connection, study, ranked),
        default=default,
        trust=trust,
        no_effect=no_effect(trainings, metrics, total),
        origins=origins(connection, study, ranked[0].trial.number if ranked else None),
        ends=own_ends(connection, study),
        over=over_rounds(connection, study, ranked[0].trial.number) if ranked else None,
        last_word=None if level is None else last_word(connection, study, level),
    )


MOST_COMPARED = 100  # the most trials that are compared at once


def parameter_names(trials: Sequence[TrialDetail]) -> list[str]:
    return list(dict.fromkeys(name for each in trials for name in each.trial.params))


def differences(trials: Sequence[TrialDetail]) -> dict[str, list[Any]]:
    """The parameters in which trials differ, each with its values; None where one has none."""
    found = {}
    for name in parameter_names(trials):
        values = [each.trial.params.get(name) for each in trials]
        if any(value != values[0] for value in values):
            found[name] = values
    return found


def common_levels(trials: Sequence[TrialDetail]) -> list[float]:
    """The resource levels at which all trials reported, in order."""
    reached = [{report["resource"] for report in each.reports} for each in trials]
    return sorted(set.intersection(*reached))


class Retraining(enum.Enum):
    """A way to train a configuration anew."""

    COMMAND = "hpsearch train"
    FILE = "python -m trials, from its settings as a file"
    OWN = "the user's own program, from its parameters"


def retraining_of(content: Mapping[str, Any]) -> Retraining | None:
    """The way for a study with this study file; None if it has no task."""
    task = content.get("task")
    if not isinstance(task, dict) or origin_of(content) is not None:
        return None
    kind = task.get("kind")
    if kind in BUILT_IN:
        return Retraining.COMMAND
    is_foreign = "library" in task and kind != COMMAND.kind
    return Retraining.OWN if is_foreign or kind == ASK.kind else Retraining.FILE


def as_argument(name: str) -> str:
    """The name of a study as the last argument of a command in a shell."""
    quoted = shlex.quote(name)
    return f"-- {quoted}" if quoted.startswith("-") else quoted


def to_train(
    study: StudyHead, trial: int | None, suggested: Callable[[str], str]
) -> list[tuple[str, str]]:
    """Commands that train a trial's configuration anew, of the best one if None, or print its
    parameters where only a program of the user's own trains it; each with what it does. `suggested`
    completes a command so that it works where it is read."""
    way, name = retraining_of(study.content), as_argument(study.name)
    if way is Retraining.COMMAND:
        chosen = "" if trial is None else f"--trial {trial} "
        return [(suggested(f"train {chosen}{name}"), "trains it in full and keeps the model")]
    only = "" if trial is None else f'--where "number = {trial}" '
    if way is not Retraining.FILE:
        return [(suggested(f"best {only}--format json {name}"), "its parameters")]
    settings = suggested(f"best {only}--format yaml {name}")
    train = ("python -m trials best.yaml --out model", "trains them again")
    return [(f"{settings} > best.yaml", "its settings, as a file"), train]
