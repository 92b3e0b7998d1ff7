"""What a trial costs beyond its training: null trials with five reports, compared with Ray Tune.

    python benchmarks/overhead.py [--trials 300] [--repeats 5] [--quick] [--json FILE]

Every measurement runs in its own process with a new local Ray, and the two contenders take turns.
Both use two slots, the same Optuna sampler and no pruner. hpsearch writes every trial, attempt,
report and decision durably to an SQLite file. Tune has its fastest settings: a class Trainable with
actors reused, loggers off and as many concurrent trials as slots. The time per trial is measured
from the end of trial 10 to the end of the last one, so start-up does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tables import show

SLOTS = 2
REPORTS = 5
WARM_UP = 10
"""Trials before the measurement starts."""

NULL_TASK = f"""
def train(params, trial):
    for step in range(1, {REPORTS} + 1):
        trial.report(step, {{"loss": params["x"] / step}})
"""


def with_hpsearch(sampler: str, trials: int, folder: Path) -> list[float]:
    """Run a study of hpsearch, and return when each trial ended."""
    import yaml

    from hpsearch.checkpoint_folders import folder_of_new
    from hpsearch.creation.study import create_study
    from hpsearch.domain.lifecycle import State
    from hpsearch.store.store import Store
    from hpsearch.study_file.reading import parse
    from hpsearch.study_run import on_ray

    (folder / "null_task.py").write_text(NULL_TASK)
    text = yaml.safe_dump(
        {
            "study": "overhead",
            "task": {"kind": "null_task:train"},
            "space": {"x": {"type": "float", "low": 0.0, "high": 1.0}},
            "objective": {"metric": "loss", "direction": "minimize"},
            "budget": {"trials": trials, "per_trial": {"steps": REPORTS, "report_every": 1}},
            "search": {"sampler": sampler, "pruner": "none"},
            "resources": {"workers": SLOTS},
        }
    )
    spec = parse(text, base=folder)
    store = Store.open(f"sqlite:///{folder}/study.db")
    ended: dict[int, float] = {}

    def watch(study: Any, changes: Any, now: float) -> None:
        for trial in changes.trials:  # some of them again, with a new expectation
            if trial.state is State.COMPLETE:
                ended.setdefault(trial.number, time.perf_counter())

    home = folder_of_new(spec, str(folder))
    on_ray.drive(
        store,
        on_ray.StudyRun(spec, home, spec.resources),
        lambda: create_study(store, spec, home.folder, home.mark.uid),
        watch,
        on_driver=lambda driver: None,
    )
    store.close()
    assert len(ended) == trials, f"{len(ended)} of {trials} trials completed"
    return list(ended.values())


def with_tune(sampler: str, trials: int, folder: Path) -> list[float]:
    """Run Ray Tune with its fastest settings, and return when each trial ended."""
    os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
    os.environ["TUNE_GLOBAL_CHECKPOINT_S"] = "1000000"
    os.environ["TUNE_MAX_PENDING_TRIALS_PG"] = str(SLOTS)
    import optuna
    import ray
    from ray import tune
    from ray.tune.search.optuna import OptunaSearch

    class Null(tune.Trainable):
        def setup(self, config: dict[str, Any]) -> None:
            self.x = config["x"]

        def reset_config(self, new_config: dict[str, Any]) -> bool:
            self.x = new_config["x"]
            return True

        def step(self) -> dict[str, Any]:
            step = self.training_iteration + 1
            return {"loss": self.x / step, "done": step >= REPORTS}

        def save_checkpoint(self, checkpoint_dir: str) -> None:
            """There is nothing to save."""

        def load_checkpoint(self, checkpoint: Any) -> None:
            """There is nothing to load."""

    ended: list[float] = []

    class Clock(tune.Callback):
        def on_trial_complete(
            self, iteration: int, trials: list[Any], trial: Any, **info: Any
        ) -> None:
            ended.append(time.perf_counter())

    samplers = {"random": optuna.samplers.RandomSampler, "tpe": optuna.samplers.TPESampler}
    search = OptunaSearch(
        {"x": optuna.distributions.FloatDistribution(0.0, 1.0)},
        metric="loss",
        mode="min",
        sampler=samplers[sampler](seed=0),
    )
    ray.init(
        address="local",
        num_cpus=SLOTS,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
    )
    tuner = tune.Tuner(
        Null,
        tune_config=tune.TuneConfig(
            num_samples=trials, search_alg=search, max_concurrent_trials=SLOTS, reuse_actors=True
        ),
        run_config=tune.RunConfig(
            storage_path=str(folder),
            verbose=0,
            callbacks=[Clock()],
            checkpoint_config=tune.CheckpointConfig(
                checkpoint_frequency=0, checkpoint_at_end=False
            ),
        ),
    )
    tuner.fit()
    ray.shutdown()
    assert len(ended) == trials, f"{len(ended)} of {trials} trials completed"
    return ended


CONTENDERS = {"hpsearch": with_hpsearch, "ray tune": with_tune}


def measured(contender: str, sampler: str, trials: int) -> float:
    """Milliseconds per trial, measured in a new process."""
    call = [
        sys.executable,
        __file__,
        "--one",
        contender,
        "--sampler",
        sampler,
        "--trials",
        str(trials),
    ]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{contender} failed:\n{done.stderr}")
    return float(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Measure both contenders with both samplers in turn, and print medians and ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one repeat of 60 trials")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--one", choices=CONTENDERS, help=argparse.SUPPRESS)
    parser.add_argument("--sampler", choices=["random", "tpe"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        with tempfile.TemporaryDirectory() as folder:
            ended = CONTENDERS[arguments.one](arguments.sampler, arguments.trials, Path(folder))
        span = ended[-1] - ended[WARM_UP - 1]
        print(json.dumps(span / (len(ended) - WARM_UP) * 1000))
        return
    trials, repeats = (60, 1) if arguments.quick else (arguments.trials, arguments.repeats)
    rows = []
    for sampler in ("random", "tpe"):
        times: dict[str, list[float]] = {contender: [] for contender in CONTENDERS}
        for _ in range(repeats):
            for contender in CONTENDERS:
                times[contender].append(measured(contender, sampler, trials))
        ours, theirs = (statistics.median(times[contender]) for contender in CONTENDERS)
        for contender in CONTENDERS:
            median = statistics.median(times[contender])
            rows.append(
                {
                    "contender": contender,
                    "sampler": sampler,
                    "ms_a_trial": median,
                    "fastest": min(times[contender]),
                    "slowest": max(times[contender]),
                    "times_ours": median / ours,
                    "repeats": repeats,
                    "trials": trials,
                }
            )
        assert theirs > 0
    show("Overhead of a null trial with five reports, two slots", rows, arguments.json)


if __name__ == "__main__":
    main()
