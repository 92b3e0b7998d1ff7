"""Searches a quadratic's minimum with Optuna."""

import optuna


def objective(trial):
    x = trial.suggest_float("x", -5, 5)
    kind = trial.suggest_categorical("kind", ["plain", "shifted"])
    target = 2 if kind == "plain" else trial.suggest_int("shift", 1, 3)
    guess = 0.0
    for step in range(4):
        guess += (x - guess) / 2
        error = (guess - target) ** 2
        trial.report(error, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return error


study = optuna.create_study(direction="minimize")
study.optimize(objective, n_trials=5)
print(f"best: {study.best_value:.4f} at {study.best_params}")
