"""What folds as rungs are worth on small data: the error on untouched rows at equal cost.

    python benchmarks/folds.py [--seeds 10] [--trainings 60] [--rows 150] [--quick] [--json FILE]

Each study searches the settings of boosted trees on some rows of a table of scikit-learn, with so
many trainings: on one split (a fifth of the rows), in full cross-validation, or with folds as
rungs. Its winner is trained on all those rows. The table shows its loss on the others, beside that
of one split seed by seed, and its error: the share of wrong classes, or the mean absolute error.
Every seed has other rows. The trainings are real, on a virtual clock where each takes a second.
"""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import yaml
from sklearn import datasets

from hpsearch.search.ranking.selection import rank
from hpsearch.study_file.reading import parse
from simulation.running import simulate
from tables import arguments, show, standard_error
from trials import tasks
from trials.contract import Fold
from trials.data.cache import VARIABLE
from trials.descriptions.description import IN_FOLDS
from trials.descriptions.tabular import TabularSettings
from trials.tasks.final.parts import FinalParts
from trials.tasks.tabular.boosting import Boosting, Trees, scores_of
from trials.tasks.tabular.table_run import measure

FOLDS, TREES = 5, 40
SPACE: dict[str, Any] = {
    "learning_rate": {"type": "float", "low": 0.01, "high": 0.5, "log": True},
    "num_leaves": {"type": "int", "low": 2, "high": 32, "log": True},
    "min_data_in_leaf": {"type": "int", "low": 1, "high": 40, "log": True},
    "feature_fraction": {"type": "float", "low": 0.2, "high": 1.0},
    "lambda_l2": {"type": "float", "low": 0.01, "high": 30.0, "log": True},
}
TABLES = {
    "breast cancer": datasets.load_breast_cancer,
    "wine": datasets.load_wine,
    "diabetes": datasets.load_diabetes,
    "digits": datasets.load_digits,
}
KINDS = {
    "one split": (1, "none"),
    "cross-validation": (FOLDS, "none"),
    "rungs": (FOLDS, "promotion"),
}


class Trainings:
    """The trainings on a part of a table (`simulation.running.Curves`); a resource is a fold."""

    def __init__(self, folder: Path, name: str, seed: int, rows: int) -> None:
        table = TABLES[name](as_frame=True).frame
        order = np.random.default_rng(seed).permutation(len(table))
        rows = min(rows, len(table) * 6 // 10)
        for file, part in (("train.csv", order[:rows]), ("test.csv", order[rows:])):
            table.iloc[part].to_csv(folder / file, index=False)
        part = {"kind": "tabular", "train": "train.csv", "test": "test.csv", "target": "target"}
        if name == "diabetes":
            part["objective_kind"] = "regression"
        self._task = tasks.load(part | {"validation": f"{FOLDS}{IN_FOLDS}"}, folder)
        self.data = [self._task.on_fold(Fold(each, FOLDS)).prepare({}) for each in range(FOLDS)]
        self.known: dict[tuple[Any, ...], float] = {}

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        losses = []
        for fold in range(int(resource)):
            key = (*params.values(), seed, fold)
            if key not in self.known:
                data = self.data[fold]
                self.known[key] = _grown(data, data.validation, params, seed + fold)["loss"]
            losses.append(self.known[key])
        return {"loss": fmean(losses)}

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        return resource

    def on_test(self, params: Mapping[str, Any], seed: int) -> dict[str, float]:
        """The metrics on the untouched rows, of a model of all others."""
        test = FinalParts(self._task).on_test({})
        assert test is not None
        return _grown(FinalParts(self._task).joined(self.data[0]), test.validation, params, seed)


def _grown(data: Any, rows: Any, params: Mapping[str, Any], seed: int) -> dict[str, float]:
    settings = TabularSettings.parse(params)
    boosting = Boosting(data.train, data.encoding, settings, seed, Trees())
    for _ in range(TREES):
        boosting.grow()
    boosting.end_segment()
    found = measure(data, rows, scores_of(boosting.trees, rows.features))
    return {"loss": found["loss"], "error": found.get("mae", 1 - found.get("accuracy", 1.0))}


def outcome(kind: str, name: str, seed: int, rows: int, trainings: int) -> dict[str, float]:
    """The loss and the error of the winner of one study on untouched rows."""
    folds, pruner = KINDS[kind]
    is_full = pruner == "none"
    limit = {"trials": trainings // folds} if is_full else {"gpu_hours": trainings / 3600}
    written = {
        "study": "folds",
        "seed": seed,
        "task": {"kind": "small.tables:train"},
        "space": SPACE,
        "objective": {"metric": "loss", "direction": "minimize"},
        "budget": {**limit, "per_trial": {"epochs": 1} | ({"folds": folds} if folds > 1 else {})},
        "search": {"pruner": pruner},
        "resources": {"workers": 1},
    }
    with tempfile.TemporaryDirectory() as folder:
        os.environ[VARIABLE] = f"{folder}/cache"
        curves = Trainings(Path(folder), name, seed, rows)
        history = simulate(parse(yaml.safe_dump(written), base=Path(folder)), curves, workers=1)
        winner = rank(history.trials, "minimize")[0].trial
        return curves.on_test(winner.params, winner.seed) | {"trainings": len(curves.known)}


def rows_of(name: str, seeds: int, rows: int, trainings: int) -> list[dict[str, Any]]:
    found = {
        kind: [outcome(kind, name, seed, rows, trainings) for seed in range(seeds)]
        for kind in KINDS
    }
    first = next(iter(found.values()))
    lines = []
    for kind, outcomes in found.items():
        pairs = zip(outcomes, first, strict=True)
        differences = [one["loss"] - other["loss"] for one, other in pairs]
        lines.append({
            "table": name,
            "search": kind,
            "trainings": fmean(each["trainings"] for each in outcomes),
            "loss": fmean(each["loss"] for each in outcomes),
            "difference": fmean(differences),
            "its_error": standard_error(differences),
            "error": fmean(each["error"] for each in outcomes),
        })  # fmt: skip
    return lines


def main() -> None:
    quick = {"seeds": 2, "trainings": 15, "tables": ["wine"]}
    options = arguments(__doc__, quick, seeds=10, trainings=60, rows=150, tables=list(TABLES))
    rows = []
    for name in options.tables:
        rows += rows_of(name, options.seeds, options.rows, options.trainings)
    show("on untouched rows", rows, options.json)


if __name__ == "__main__":
    main()
