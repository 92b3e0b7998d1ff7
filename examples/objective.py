"""An objective of Optuna, which Optuna runs as well: `python examples/objective.py`. Its parameters
are only known as it runs. Searched, unchanged, by objective.yaml."""

import optuna
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier


def objective(trial):
    images, labels = load_digits(return_X_y=True)
    train, held_out, wanted, truth = train_test_split(images / 16, labels, random_state=0)

    kind = trial.suggest_categorical("model", ["linear", "network"])
    alpha = trial.suggest_float("alpha", 1e-6, 1e-1, log=True)
    if kind == "linear":
        model = SGDClassifier(alpha=alpha, random_state=0)
    else:
        layers = trial.suggest_int("layers", 1, 2)
        widths = [trial.suggest_int(f"width{i}", 8, 64, log=True) for i in range(layers)]
        rate = trial.suggest_float("learning_rate", 1e-4, 1e-1, log=True)
        model = MLPClassifier(widths, alpha=alpha, learning_rate_init=rate, random_state=0)

    for epoch in range(9):
        model.partial_fit(train, wanted, classes=range(10))
        accuracy = model.score(held_out, truth)
        trial.report(accuracy, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    trial.set_user_attr("epochs", epoch + 1)
    return accuracy


if __name__ == "__main__":
    optuna.create_study(direction="maximize").optimize(objective, n_trials=30)
