"""The built-in table task's network against gradient-boosted trees, on tables of numbers.

    python benchmarks/boosting.py [--data FOLDER] [--seeds 3] [--json FILE] [--quick]

Both are tuned: 12 random configurations, of which the one with the smallest loss on the validation
rows is measured on rows that neither has seen. The network has the space that `hpsearch init` writes,
and its best report; the trees are scikit-learn's HistGradientBoosting, which stop early on the same
rows, and stop trying when they have taken as long as the network. The loss is the log loss of
classes, or the mean square error as a share of the variance. FOLDER has the data of LCBench and
TaskSet.
"""

import json
import math
import os
import tempfile
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import pandas as pd
import torch
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import accuracy_score, log_loss, r2_score
from sklearn.model_selection import train_test_split

from tables import arguments, show, standard_error
from trials import tasks
from trials.contract import Goal, Report, Setup
from trials.predict import load
from trials.running.report_grid import budget_from

TRIALS, EPOCHS, TAKEN = 12, 30, 1000
LCBENCH = {"3945": 3, "126026": 0}


def tables(data):
    for name in ("wine", "breast_cancer", "digits", "diabetes"):
        found = getattr(datasets, f"load_{name}")()
        yield name, found.data, found.target, name != "diabetes"
    if data is None:
        return
    for file in sorted((data / "taskset").glob("*.npz"))[::2]:
        found = np.load(file)
        last = found["valid"][:, -1]
        known = np.isfinite(last)
        name = file.stem.removeprefix("FixedTextRNNClassification_imdb_")
        yield name, found["hp"][known], np.log(last[known]), False
    yield from surrogates(data / "lcbench")


def surrogates(folder):
    import onnxruntime

    session = onnxruntime.InferenceSession(folder / "model.onnx")
    encoding = json.loads((folder / "encoding.json").read_text())
    chance = np.random.default_rng(0)
    low = np.array([52, 16, 1e-4, 0.1, 1e-5, 1, 64, 0])
    high = np.array([52, 512, 1e-1, 0.99, 1e-1, 5, 1024, 1])
    for name in LCBENCH:
        rows = low + (high - low) * chance.random((TAKEN, 8))
        for column in (1, 2, 6):
            powers = math.log(low[column]) + chance.random(TAKEN) * math.log(high[column] / low[column])
            rows[:, column] = np.exp(powers)
        rows[:, [1, 5, 6]] = rows[:, [1, 5, 6]].round()
        number = find(encoding, name)
        task = np.full((TAKEN, 1), number, dtype=np.int32)
        names = [each.name for each in session.get_inputs()]
        told = dict(zip(names, (task, rows.astype(np.float32)), strict=True))
        yield f"lcbench {name}", rows[:, 1:], session.run(None, told)[0][:, 1], False


def find(encoding, name):
    inner = encoding if name in encoding else next(iter(encoding.values()))
    return inner[name]


def loss_of(y, predicted, is_classes):
    return log_loss(y, predicted) if is_classes else 1 - r2_score(y, predicted)


def network(parts, is_classes, chance, folder):
    names = [f"x{i}" for i in range(parts[0][0].shape[1])]
    files = []
    for part, (x, y) in zip(("train", "validation", "test"), parts, strict=True):
        files.append(folder / f"{part}.csv")
        pd.DataFrame(x, columns=names).assign(y=y).to_csv(files[-1], index=False)
    kind = "classification" if is_classes else "regression"
    task = {"kind": "tabular", "train": str(files[0]), "validation": str(files[1])}
    built = tasks.load({**task, "target": "y", "objective_kind": kind, "numeric": names}, folder)
    data = built.prepare({})
    best, path = math.inf, None
    for trial in range(TRIALS):
        params = {
            "learning_rate": math.exp(chance.uniform(math.log(1e-4), math.log(3e-2))),
            "depth": int(chance.integers(1, 5)),
            "width": round(math.exp(chance.uniform(math.log(32), math.log(512)))),
            "dropout": chance.uniform(0, 0.5),
            "schedule": "cosine",
        }
        place, goal = folder / str(trial), Goal("loss", maximize=False)
        setup = Setup(params, trial, budget_from({"epochs": EPOCHS}), place, goal=goal)
        run = built.start(setup, data)
        losses = [item.metrics["loss"] for item in run if isinstance(item, Report)]
        if min(losses) < best:
            best, path = min(losses), run.best
        run.save()
        run.close()
    model = load(path)
    if is_classes:
        shares = model.probabilities(files[2])
        order = [model.labels.index(str(each)) for each in sorted(map(int, model.labels))]
        return shares[:, order]
    return np.array(model.predict(files[2]))


def boosting(parts, is_classes, chance, seconds):
    (x, y), (x_val, y_val), (x_test, _) = parts
    kind = HistGradientBoostingClassifier if is_classes else HistGradientBoostingRegressor
    began, best, found, tried = time.perf_counter(), math.inf, None, 0
    while tried < TRIALS and (not tried or time.perf_counter() - began < seconds):
        model = kind(
            learning_rate=math.exp(chance.uniform(math.log(0.01), math.log(0.3))),
            max_leaf_nodes=round(math.exp(chance.uniform(math.log(4), math.log(64)))),
            min_samples_leaf=round(math.exp(chance.uniform(math.log(2), math.log(40)))),
            l2_regularization=math.exp(chance.uniform(math.log(1e-4), math.log(10))),
            max_features=chance.uniform(0.3, 1),
            max_iter=1000, early_stopping=True, n_iter_no_change=20, random_state=tried,
        )
        model.fit(x, y, X_val=x_val, y_val=y_val)
        predict = model.predict_proba if is_classes else model.predict
        loss = loss_of(y_val, predict(x_val), is_classes)
        if loss < best:
            best, found = loss, predict(x_test)
        tried += 1
    return found, tried


def main():
    given = arguments(__doc__, {"seeds": 1}, data=Path, seeds=3)
    torch.set_num_threads(1)
    rows = []
    for name, x, y, is_classes in tables(given.data):
        losses, scores, spent = ([], []), ([], []), [0.0, 0.0]
        for seed in range(given.seeds):
            rest = train_test_split(x, y, test_size=0.3, random_state=seed, stratify=y if is_classes else None)
            inner = train_test_split(rest[0], rest[2], test_size=0.2, random_state=seed, stratify=rest[2] if is_classes else None)
            parts = [(inner[0], inner[2]), (inner[1], inner[3]), (rest[1], rest[3])]
            with tempfile.TemporaryDirectory() as folder:
                began = time.perf_counter()
                of_network = network(parts, is_classes, np.random.default_rng(seed), Path(folder))
                spent[0] += time.perf_counter() - began
            began = time.perf_counter()
            of_trees, tried = boosting(parts, is_classes, np.random.default_rng(seed), spent[0] / (seed + 1))
            spent[1] += time.perf_counter() - began
            for i, found in enumerate((of_network, of_trees)):
                losses[i].append(loss_of(rest[3], found, is_classes))
                right = accuracy_score(rest[3], found.argmax(1)) if is_classes else r2_score(rest[3], found)
                scores[i].append(right)
        gain = np.subtract(losses[1], losses[0])
        row = {"table": name, "rows": len(x), "columns": x.shape[1], "network": np.mean(losses[0]), "trees": np.mean(losses[1])}
        row |= {"network_gains": gain.mean(), "error": standard_error(gain.tolist())}
        row |= {"network_score": np.mean(scores[0]), "trees_score": np.mean(scores[1])}
        row |= {"network_s": spent[0] / given.seeds, "trees_s": spent[1] / given.seeds, "tried": tried}
        rows.append({key: float(value) if isinstance(value, np.floating) else value for key, value in row.items()})
        print(rows[-1], flush=True)
    show("Loss on rows that neither has seen; score is accuracy or R2", rows, given.json)


if __name__ == "__main__":
    main()
