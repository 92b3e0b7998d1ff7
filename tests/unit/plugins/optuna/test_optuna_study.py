"""What an objective of Optuna and the callbacks of libraries read of their study, in real studies;
the same parameters under Optuna itself have the same results."""

from collections.abc import Callable
from typing import Any

import optuna
import pytest
from optuna.artifacts import FileSystemArtifactStore, get_all_artifact_meta
from optuna.trial import TrialState

from hpsearch.api import open_study
from hpsearch.domain.lifecycle import State
from hpsearch.plugins.optuna.objective import run_to_search
from support.studies.objectives import ObjectiveStudy

SCRIPT = """
import optuna
from optuna.artifacts import FileSystemArtifactStore, upload_artifact
from optuna.study import StudyDirection

seen = []
store = FileSystemArtifactStore(FOLDER)

def objective(trial):
    study = trial.study
    assert isinstance(trial, optuna.trial.Trial)
    assert study.direction is StudyDirection.MAXIMIZE and len(study.directions) == 1
    assert study.user_attrs == {"data": "digits"}
    x = trial.suggest_float("x", 0, 1)
    y = trial.suggest_int("y", 1, 9) if x > 0.5 else 0
    trial.set_user_attr("limits", (x - 0.75, -1))
    upload_artifact(artifact_store=store, file_path=__file__, study_or_trial=trial)
    for step in range(3):
        trial.report(x * step, step)
    best = None
    if study.get_trials(states=[optuna.trial.TrialState.COMPLETE]):
        best = study.best_value, study.best_trial.number, study.best_params
    seen.append((study.study_name, trial.number, best, study.trials))
    assert study.trials[trial.number].intermediate_values == {0: 0, 1: x, 2: 2 * x}
    assert study.trials[trial.number].params == trial.params
    assert trial.datetime_start == study.trials[trial.number].datetime_start
    return x + y

def limits(frozen):
    return frozen.user_attrs["limits"]

def main():
    sampler = optuna.samplers.TPESampler(constraints_func=limits)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.set_user_attr("data", "digits")
    study.optimize(objective, n_trials=6)

main()
"""
UP = {"metric": "score", "direction": "maximize"}
BUDGET = {"trials": 6, "per_trial": {"steps": 3}}


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> ObjectiveStudy:
    """A study of a script, driven to its end."""
    folder = tmp_path_factory.mktemp("script")
    code = SCRIPT.replace("FOLDER", repr(str(folder)))
    enqueue = [{"x": 0.25}, {"x": 1.0, "y": 2}]
    study = ObjectiveStudy(
        folder, code, name="__main__", objective=UP, budget=BUDGET, enqueue=enqueue
    )
    with pytest.warns(FutureWarning, match="constraints_func"):
        study.drive()
    return study


def script_of(study: ObjectiveStudy) -> dict[str, Any]:
    """The globals of the script, which the workers of this process share."""
    search = run_to_search(study.spec.base / f"{study.module}.py", {}).search
    assert search is not None
    return vars(search.module)


def test_a_trial_finds_the_others_and_the_best_of_them(driven):
    trials = driven.history().trials
    assert [trial.state for trial in trials] == [State.COMPLETE] * 6
    for name, number, best, others in script_of(driven)["seen"]:
        assert name == "objective"
        assert [each.number for each in others] == list(range(number + 1))
        assert others[number].state is TrialState.RUNNING
        usable = [each for each in trials[:number] if each.params["x"] <= 0.75]
        if usable:
            leader = max(usable, key=lambda each: each.value or 0)
            assert best == (leader.value, leader.number, leader.params)
        assert all(
            each.user_attrs == trials[each.number].user_attrs and each.values == [ours.value]
            for each, ours in zip(others[:number], trials, strict=False)
        )


def test_constraints_func_is_called_on_each_trial(driven):
    for trial in driven.history().trials:
        assert trial.violation == max(0.0, trial.params["x"] - 0.75)
    with open_study(driven.url, "objective") as study:
        assert study.best()["x"].iloc[0] <= 0.75


def test_artifacts_are_kept_with_their_trials(driven):
    with open_study(driven.url, "objective") as study:
        theirs = study.optuna()
    store = FileSystemArtifactStore(str(driven.spec.base))
    for trial in theirs.trials:
        (artifact,) = get_all_artifact_meta(trial, storage=theirs._storage)
        assert artifact.filename == f"{driven.module}.py"
        with store.open_reader(artifact.artifact_id) as content:
            assert content.read().startswith(b"\nimport optuna")


def test_optuna_itself_has_the_same_results_for_the_same_parameters(driven):
    trials = driven.history().trials
    assert [trial.params["x"] for trial in trials[:2]] == [0.25, 1.0]
    search = run_to_search(driven.spec.base / f"{driven.module}.py", {}).search
    assert search is not None
    theirs = search.study
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    for trial in trials:
        theirs.enqueue_trial(trial.params)
    theirs.optimize(search.objective, n_trials=len(trials))
    for trial, same in zip(trials, theirs.trials, strict=True):
        assert same.values == [trial.value]
        assert same.constraints == {"0": trial.params["x"] - 0.75, "1": -1}
        values = [trial.reports[step + 1.0].value for step in (0, 1)]
        assert [same.intermediate_values[step] for step in (0, 1)] == values


REFUSED: dict[str, str] = {
    "trial.study.stop()": "hpsearch stop",
    "trial.study.enqueue_trial({'x': 1})": "hpsearch enqueue",
    "trial.study.ask()": "trial.suggest_float",
    "trial.study.tell(0, 1.0)": "return the value",
    "trial.study.optimize(objective)": "optuna.create_study",
    "trial.study.set_user_attr('a', 1)": "trial.set_user_attr",
    "trial.study.add_trial(None)": "hpsearch import",
    "trial.storage.set_trial_user_attr(7, 'a', 1)": "attribute of trial 7",
    "trial.storage.create_new_study([])": "write to itself alone",
    "optuna.artifacts.upload_artifact(study_or_trial=trial.study, file_path=__file__, "
    "artifact_store=None)": "artifact of the study",
}


@pytest.mark.parametrize("call", REFUSED)
def test_what_a_trial_cannot_do_to_its_study_is_refused_where_it_is_called(call, tmp_path):
    code = f"import optuna\nimport optuna.artifacts\ndef objective(trial):\n    {call}\n"
    budget = {"trials": 1, "per_trial": {"steps": 1}}
    study = ObjectiveStudy(tmp_path, code, budget=budget)
    study.drive()
    (trial,) = study.history().trials
    assert trial.state is State.FAILED
    assert REFUSED[call] in str(trial.error_text)
    assert "hpsearch" in str(trial.error_text)


def test_several_directions_and_a_nested_search_of_its_own(tmp_path):
    code = """
import optuna
def inner(trial):
    return trial.suggest_float("z", 0, 1)
def objective(trial):
    study = optuna.create_study(direction="maximize")
    study.optimize(inner, n_trials=3)
    names = [each.name for each in trial.study.directions]
    assert names == ["MINIMIZE", "MAXIMIZE"], names
    assert trial.study.best_trials == []
    return trial.suggest_float("x", 0, 1), study.best_value
"""
    both = [{"metric": "a", "direction": "minimize"}, {"metric": "b", "direction": "maximize"}]
    budget = {"trials": 1, "per_trial": {"steps": 1}}
    study = ObjectiveStudy(tmp_path, code, objective=both, budget=budget)
    study.drive()
    (trial,) = study.history().trials
    assert trial.error_text is None
    assert trial.params.keys() == {"x"}


# ----------------------------------------------------------------------- callbacks of libraries

LIGHTGBM = """
import lightgbm
from optuna_integration import LightGBMPruningCallback
def objective(trial):
    rate = trial.suggest_float("rate", 0.01, 0.5)
    parameters = {"objective": "binary", "metric": "auc", "verbosity": -1, "num_threads": 1,
                  "learning_rate": rate, "deterministic": True, "seed": 1}
    data, held_out = (lightgbm.Dataset(x, label=y) for x, y in DATA)
    model = lightgbm.train(parameters, data, num_boost_round=5, valid_sets=[held_out],
                           callbacks=[LightGBMPruningCallback(trial, "auc")])
    return model.best_score["valid_0"]["auc"]
"""
XGBOOST = """
import xgboost
from optuna_integration import XGBoostPruningCallback
def objective(trial):
    rate = trial.suggest_float("rate", 0.01, 0.5)
    data, held_out = (xgboost.DMatrix(x, label=y) for x, y in DATA)
    result = {}
    xgboost.train({"objective": "binary:logistic", "eval_metric": "auc", "eta": rate, "nthread": 1},
                  data, 5, evals=[(held_out, "v")], evals_result=result, verbose_eval=False,
                  callbacks=[XGBoostPruningCallback(trial, "v-auc")])
    return result["v"]["auc"][-1]
"""
LIGHTNING = """
import lightning, torch
from optuna_integration import PyTorchLightningPruningCallback
class Module(lightning.LightningModule):
    def __init__(self, rate):
        super().__init__()
        self.rate, self.layer = rate, torch.nn.Linear(4, 1)
    def forward(self, x):
        return self.layer(x)[:, 0]
    def training_step(self, batch, place):
        return torch.nn.functional.binary_cross_entropy_with_logits(self(batch[0]), batch[1])
    def validation_step(self, batch, place):
        self.log("accuracy", ((self(batch[0]) > 0) == (batch[1] > 0)).float().mean())
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), self.rate)
def objective(trial):
    torch.manual_seed(0)
    sets = [torch.utils.data.TensorDataset(torch.tensor(x).float(), torch.tensor(y).float())
            for x, y in DATA]
    data, held_out = (torch.utils.data.DataLoader(each, batch_size=20) for each in sets)
    callback = PyTorchLightningPruningCallback(trial, monitor="accuracy")
    trainer = lightning.Trainer(max_epochs=5, callbacks=[callback], logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        accelerator="cpu")
    trainer.fit(Module(trial.suggest_float("rate", 0.01, 0.5)), data, held_out)
    return trainer.callback_metrics["accuracy"].item()
"""
SKLEARN = """
from optuna_integration import OptunaSearchCV
from optuna.distributions import FloatDistribution
from sklearn.linear_model import SGDClassifier
def main():
    space = {"alpha": FloatDistribution(1e-6, 1e-1, log=True)}
    search = OptunaSearchCV(SGDClassifier(random_state=0), space, n_trials=4, cv=2, random_state=0)
    search.fit(*DATA[0])
if __name__ == "__main__":
    main()
"""
LIBRARIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "LightGBM": (LIGHTGBM, ("lightgbm", "optuna_integration.lightgbm")),
    "XGBoost": (XGBOOST, ("xgboost", "optuna_integration.xgboost")),
    "Lightning": (LIGHTNING, ("lightning", "optuna_integration.pytorch_lightning")),
    "scikit-learn": (SKLEARN, ("sklearn", "optuna_integration.sklearn")),
}
DATA = """
import numpy, optuna
DATA = []
for seed in (0, 1):
    x = numpy.random.default_rng(seed).normal(size=(120, 4))
    DATA.append((x, (x.sum(axis=1) > 0).astype(int)))
"""
SEARCH = """
if __name__ == "__main__":
    optuna.create_study(direction="maximize").optimize(objective, n_trials=4)
"""


@pytest.fixture
def has() -> Callable[[str], None]:
    def skip_without(library: str) -> None:
        for module in LIBRARIES[library][1]:
            pytest.importorskip(module, reason=f"{module} is not installed")

    return skip_without


@pytest.mark.cases(4)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", LIBRARIES)
def test_callbacks_of_libraries_work_as_under_optuna(library, has, tmp_path):
    has(library)
    code = DATA + LIBRARIES[library][0] + (SEARCH if library != "scikit-learn" else "")
    budget = {"trials": 4, "per_trial": {"steps": 5}}
    study = ObjectiveStudy(tmp_path, code, name="__main__", objective=UP, budget=budget)
    study.drive()
    trials = study.history().trials
    assert [trial.state for trial in trials] == [State.COMPLETE] * 4, trials[0].error_text
    search = run_to_search(tmp_path / f"{study.module}.py", {}).search
    assert search is not None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    for trial in trials:
        search.study.enqueue_trial(trial.params)
    search.study.optimize(search.objective, n_trials=4)
    for trial, same in zip(trials, search.study.trials, strict=True):
        assert trial.value == pytest.approx(same.value)
        steps = [trial.reports[step].value for step in sorted(trial.reports)][:-1]
        theirs = [same.intermediate_values[step] for step in sorted(same.intermediate_values)]
        assert steps == pytest.approx(theirs[: len(steps)])
        assert len(steps) == max(0, len(theirs) - 1)
