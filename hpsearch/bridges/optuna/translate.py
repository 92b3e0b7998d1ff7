"""A study file from a study in a storage of Optuna's: its recorded distributions are data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpsearch.bridges.draft import USUAL_TRIALS, StudyDraft, study_name
from hpsearch.bridges.imported_study import drawn_from
from hpsearch.bridges.optuna.read import objectives_of, opened_study

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

OWN = "is left to the objective, which draws it itself"


def translate(source: str, study: str | None) -> StudyDraft:
    """The study file of a study of Optuna's, which needs no name if it is the only one there.
    Raises UserError if there is no such storage or study."""
    found, shown = opened_study(source, study)
    draft = StudyDraft(f"the study {found.study_name} of Optuna", study_name(found.study_name))
    draft.sections["task"] = {"kind": "my_module:objective", "library": "optuna"}
    draft.remark(None, "task", "name the module and the function of your objective")
    names, directions = objectives_of(found)
    pairs = zip(names, directions, strict=True)
    objectives = [{"metric": name, "direction": direction} for name, direction in pairs]
    draft.sections["objective"] = objectives[0] if len(objectives) == 1 else objectives
    trials = found.get_trials(deepcopy=False)
    if not trials:
        draft.remark(None, "space", f"{shown} has no trial yet: the objective draws its parameters")
    _add_space(draft, [trial for trial in trials if trial.distributions])
    steps = [step for trial in trials for step in trial.intermediate_values]
    length = max(steps, default=1) + (0 in steps)
    draft.sections["budget"] = {
        "trials": len(trials) or USUAL_TRIALS,
        "per_trial": {"steps": max(length, 1)},
    }
    return draft


def _add_space(draft: StudyDraft, trials: list[FrozenTrial]) -> None:
    names = dict.fromkeys(name for trial in trials for name in trial.distributions)
    for name in names:
        drawn = [trial.distributions[name] for trial in trials if name in trial.distributions]
        if len(drawn) < len(trials):
            what = f"{name} {OWN}: {len(drawn)} of {len(trials)} trials have it"
            draft.remark(None, "space", what)
        elif any(each != drawn[0] for each in drawn):
            draft.remark(None, "space", f"{name} {OWN}: its range differs between trials")
        else:
            draft.add(name, drawn_from(name, drawn), None)
