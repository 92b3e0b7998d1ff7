"""The peers of a fine-tune study, each a program of its own.

    PYTHONPATH=benchmarks python -m finetunes.peers PEER FOLDER DEADLINE [NUMBER]

FOLDER has `study.yaml` and its data (see `study`), DEADLINE is the moment in seconds since the
epoch at which the peer's time is over, and NUMBER tells the processes of one peer apart. Every
evaluation is appended to `FOLDER/reports-NUMBER.jsonl`.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from finetunes.study import BuiltInLoop, FineTune, Measured, PlainLoop
from hpsearch.study_file.space import suggest

WORKERS = 2
ETA = 3
"""The share of trials that ASHA continues is 1 / ETA, as in hpsearch's default."""
SHARED_STUDY = "finetune"
"""The name of the study that Trainers share in their database."""


class Log:
    """Appends evaluations to a file."""

    def __init__(self, folder: Path, number: int) -> None:
        self._file = folder / f"reports-{number}.jsonl"

    def write(self, trial: str, params: Mapping[str, Any], measured: Measured) -> None:
        """Append one evaluation, with the time."""
        row = {
            "at": time.time(),
            "began": measured.began,
            "trial": trial,
            "params": dict(params),
            "epochs": measured.epochs,
            "value": measured.value,
        }
        with self._file.open("a") as file:
            file.write(json.dumps(row) + "\n")


# ---------------------------------------------------------------------------------- Ray Tune


def tune(
    folder: Path,
    deadline: float,
    trainable: Callable[[FineTune], Any],
    prunes: bool,
    fastest: bool,
) -> None:
    """Search with Ray Tune until the deadline: TPE and ASHA, or random configurations in full.

    Args:
        folder: The study's folder.
        deadline: When to stop, in seconds since the epoch.
        trainable: Makes what Tune trains.
        prunes: Whether TPE and ASHA search, and not chance.
        fastest: Whether actors are reused and nothing is logged, as is fastest.
    """
    if fastest:
        os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
        os.environ["TUNE_GLOBAL_CHECKPOINT_S"] = "1000000"
    import optuna
    import ray
    from ray import tune
    from ray.tune.schedulers import ASHAScheduler
    from ray.tune.search.optuna import OptunaSearch

    study = FineTune(folder)
    log = Log(folder, 0)

    class Reports(tune.Callback):
        def on_trial_result(
            self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **_: Any
        ) -> None:
            measured = Measured(result["epochs"], result["value"], result["began"])
            log.write(trial.trial_id, trial.config, measured)

    samplers = optuna.samplers
    seed = study.spec.seed
    sampler = samplers.TPESampler(seed=seed) if prunes else samplers.RandomSampler(seed=seed)
    scheduler = ASHAScheduler(max_t=int(study.epochs), grace_period=1, reduction_factor=ETA)
    ray.init(
        address="local",
        num_cpus=WORKERS,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
    )
    tuner = tune.Tuner(
        trainable(study),
        tune_config=tune.TuneConfig(
            metric="value",
            mode="max",
            num_samples=-1,
            time_budget_s=max(1.0, deadline - time.time()),
            search_alg=OptunaSearch(study.space, metric="value", mode="max", sampler=sampler),
            scheduler=scheduler if prunes else None,
            max_concurrent_trials=WORKERS,
            reuse_actors=fastest,
        ),
        run_config=tune.RunConfig(
            storage_path=str(folder / "tune"),
            verbose=0,
            callbacks=[Reports()],
            checkpoint_config=tune.CheckpointConfig(
                checkpoint_frequency=0, checkpoint_at_end=False
            ),
        ),
    )
    tuner.fit()
    ray.shutdown()


def warm_trainable(study: FineTune) -> Any:
    """A class for Tune that trains with the built-in loop and keeps data and model between
    trials."""
    from ray import tune

    folder = study.folder

    class Warm(tune.Trainable):
        def setup(self, config: dict[str, Any]) -> None:
            here = FineTune(folder)
            self._study = here
            self._loop = BuiltInLoop(here)
            self._start(config)

        def reset_config(self, new_config: dict[str, Any]) -> bool:
            self._course.close()
            self._start(new_config)
            return True

        def _start(self, config: dict[str, Any]) -> None:
            self._course: Any = self._loop.train(config, self._study.seed_of(config))

        def step(self) -> dict[str, Any]:
            measured = next(self._course)
            is_over = measured.epochs >= self._study.epochs
            return {**_result(measured), "done": is_over}

        def save_checkpoint(self, checkpoint_dir: str) -> None:
            """No trial continues."""

        def load_checkpoint(self, checkpoint: Any) -> None:
            """No trial continues."""

    return Warm


def plain_trainable(study: FineTune) -> Any:
    """A function for Tune that does everything for each trial: what most users write."""
    from ray import tune

    folder = study.folder

    def train(config: dict[str, Any]) -> None:
        here = FineTune(folder)
        for measured in PlainLoop(here).train(config, here.seed_of(config)):
            tune.report(_result(measured))

    return train


def _result(measured: Measured) -> dict[str, Any]:
    """What Tune is told of an evaluation."""
    return {"value": measured.value, "epochs": measured.epochs, "began": measured.began}


# ----------------------------------------------------------------------------------- Trainer


def make_database(study: FineTune) -> None:
    """Make the database that Trainers share, before they start: two that make one at the same
    moment disturb each other."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    optuna.create_study(storage=_database(study), study_name=SHARED_STUDY, direction="maximize")


def _database(study: FineTune) -> str:
    return f"sqlite:///{study.folder / 'optuna.db'}"


def trainer(folder: Path, deadline: float, number: int) -> None:
    """One of the processes that share an Optuna study, each with a Trainer.

    The Trainer can search with several threads, but they would train the same model: processes with
    one database are how Optuna's documentation parallelises. Sampler and pruner are Optuna's
    defaults: TPE and the median of the trials so far.
    """
    import numpy as np
    import optuna
    import transformers

    from loops.contenders import Job, best_precision, classifier, tokenised

    study = FineTune(folder)
    job = Job(study.peers, "cpu", max_length=study.max_length)
    log = Log(folder, number)
    proposed: list[optuna.Trial] = []

    def hp_space(trial: optuna.Trial) -> dict[str, Any]:
        proposed[:] = [trial]
        params = suggest(trial, study.spec.space)
        return {TRAINER_NAMES[name]: value for name, value in params.items()}

    class Reports(transformers.TrainerCallback):  # type: ignore[misc]  # not followed
        def on_train_begin(self, *arguments: Any, **more: Any) -> None:
            self._began = time.time()

        def on_evaluate(self, arguments: Any, state: Any, control: Any, **more: Any) -> None:
            accuracy = more["metrics"]["eval_accuracy"]
            (trial,) = proposed
            measured = Measured(round(state.epoch, 6), accuracy, self._began)
            log.write(str(trial.number), trial.params, measured)

    def accuracy_of(evaluated: Any) -> dict[str, float]:
        found = np.argmax(evaluated.predictions, axis=-1)
        return {"accuracy": float((found == evaluated.label_ids).mean())}

    options = transformers.TrainingArguments(
        output_dir=str(folder / f"trainer-{number}"),
        num_train_epochs=study.epochs,
        lr_scheduler_type="cosine",
        warmup_steps=0.0,  # a float: a share of all steps
        per_device_eval_batch_size=128,
        eval_strategy="epoch",
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        bf16=best_precision(job) == "bf16",
        dataloader_pin_memory=False,
        disable_tqdm=True,
        seed=study.spec.seed,
    )
    built = transformers.Trainer(
        args=options,
        data_collator=_collator(job),
        train_dataset=tokenised(job),
        eval_dataset=tokenised(job, "test.csv"),
        model_init=lambda: classifier(job),
        compute_metrics=accuracy_of,
        callbacks=[Reports()],
    )
    sampler = optuna.samplers.TPESampler(seed=study.spec.seed * WORKERS + number)
    built.hyperparameter_search(
        hp_space=hp_space,
        compute_objective=lambda metrics: metrics["eval_accuracy"],
        n_trials=None,
        direction="maximize",
        backend="optuna",
        sampler=sampler,
        storage=_database(study),
        study_name=SHARED_STUDY,
        load_if_exists=True,
        timeout=max(1.0, deadline - time.time()),
    )


TRAINER_NAMES = {
    "learning_rate": "learning_rate",
    "warmup": "warmup_steps",
    "weight_decay": "weight_decay",
    "batch_size": "per_device_train_batch_size",
}
"""What the Trainer calls the parameters."""


def _collator(job: Any) -> Any:
    import transformers

    from loops.contenders import tokenizer

    return transformers.DataCollatorWithPadding(tokenizer(job))


# ------------------------------------------------------------------------------- the command


def tune_asha(folder: Path, deadline: float, number: int) -> None:
    """OptunaSearch (TPE) and ASHA from epoch 1, with the built-in loop."""
    tune(folder, deadline, warm_trainable, prunes=True, fastest=True)


def tune_random(folder: Path, deadline: float, number: int) -> None:
    """Random configurations in full, with the built-in loop."""
    tune(folder, deadline, warm_trainable, prunes=False, fastest=True)


def tune_asha_plain(folder: Path, deadline: float, number: int) -> None:
    """OptunaSearch (TPE) and ASHA from epoch 1, with a user's loop and Tune's defaults."""
    tune(folder, deadline, plain_trainable, prunes=True, fastest=False)


PEERS: dict[str, Callable[[Path, float, int], None]] = {
    "tune-asha": tune_asha,
    "tune-random": tune_random,
    "tune-asha-plain": tune_asha_plain,
    "trainer-optuna": trainer,
}


def main() -> None:
    """Run one peer until its deadline."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("deadline", type=float)
    parser.add_argument("number", type=int, nargs="?", default=0)
    arguments = parser.parse_args()
    PEERS[arguments.peer](arguments.folder, arguments.deadline, arguments.number)


if __name__ == "__main__":
    main()
