"""What a trial costs beyond its training: null trials with five reports, beside other searchers.

    python benchmarks/overhead.py [--trials 1000,10000] [--slots 2,32] [--repeats 3]
                                  [--samplers random,tpe,curve_gp] [--contenders A,B]
                                  [--storage URL] [--json FILE] [--quick]

Every measurement runs in a process of its own, with a new local Ray, and the contenders take turns.

- hpsearch writes every trial, attempt, report and decision durably, to an SQLite file or to the
  database at URL (an empty one of PostgreSQL, which it fills).
- Ray Tune has its fastest settings: a class Trainable with actors reused, loggers off and as many
  concurrent trials as slots; the same sampler of Optuna, and no memory beyond the process.
- Optuna has its RDBStorage, on a database as above, and a process for each slot that calls
  `study.optimize`.

No contender prunes. Time is measured from the end of trial 10 to the end of the last one, so that
start-up does not count. Columns: milliseconds a trial, reports a second, how the last tenth of the
study's trials compares with the first, the share of a core that the driver's process took, its peak
memory in MB, and the time as a multiple of hpsearch's.
"""

import json
import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from tables import arguments, show

REPORTS = 5
WARM_UP = 10
"""Trials before the measurement starts."""

NULL_TASK = f"""
def train(params, trial):
    for step in range(1, {REPORTS} + 1):
        trial.report(step, {{"loss": params["x"] / step}})
"""


class Load(NamedTuple):
    """What a contender is to do."""

    contender: str
    sampler: str
    trials: int
    slots: int
    storage: str
    """The URL of an empty database; empty for an SQLite file."""


class Clock:
    """Notes when trials end, and the processor time that this process has used by then."""

    def __init__(self) -> None:
        self.ends: list[float] = []
        self._processor_s: list[float] = []

    def note(self) -> None:
        """A trial has ended."""
        self.ends.append(time.perf_counter())
        self._processor_s.append(time.process_time())

    def row(self) -> dict[str, float]:
        """What was measured."""
        count = len(self.ends)
        span = self.ends[-1] - self.ends[WARM_UP - 1]
        used = self._processor_s[-1] - self._processor_s[WARM_UP - 1]
        tenth = max(1, (count - WARM_UP) // 10)
        first = self.ends[WARM_UP - 1 + tenth] - self.ends[WARM_UP - 1]
        last = self.ends[-1] - self.ends[-1 - tenth]
        return {
            "ms_a_trial": 1000 * span / (count - WARM_UP),
            "reports_a_second": REPORTS * (count - WARM_UP) / span,
            "last_to_first_tenth": last / first,
            "core": used / span,
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }


def with_hpsearch(load: Load, folder: Path, clock: Clock) -> None:
    """Run a study of hpsearch."""
    import yaml

    from hpsearch.domain.lifecycle import State
    from hpsearch.running.checkpoint_folders import folder_of_new
    from hpsearch.running.creation.study import create_study
    from hpsearch.running.study_run import on_ray
    from hpsearch.store.store import Store
    from hpsearch.study_file.reading import parse

    (folder / "null_task.py").write_text(NULL_TASK)
    text = yaml.safe_dump(
        {
            "study": folder.name,
            "task": {"kind": "null_task:train"},
            "space": {"x": {"type": "float", "low": 0.0, "high": 1.0}},
            "objective": {"metric": "loss", "direction": "minimize"},
            "budget": {"trials": load.trials, "per_trial": {"steps": REPORTS, "report_every": 1}},
            "search": {"sampler": load.sampler, "pruner": "none"},
            "resources": {"workers": load.slots, "cpu": 2 / load.slots},
        }
    )
    spec = parse(text, base=folder)
    store = Store.open(load.storage or f"sqlite:///{folder}/study.db")
    ended: set[int] = set()

    def watch(study: Any, changes: Any, now: float) -> None:
        for trial in changes.trials:  # some of them again, with a new expectation
            if trial.state is State.COMPLETE and trial.number not in ended:
                ended.add(trial.number)
                clock.note()

    home = folder_of_new(spec, str(folder))
    on_ray.drive(
        store,
        on_ray.StudyRun(spec, home, spec.resources),
        lambda: create_study(store, spec, home.folder, home.mark.uid),
        watch,
        on_driver=lambda driver: None,
    )
    store.close()


def with_tune(load: Load, folder: Path, clock: Clock) -> None:
    """Run Ray Tune with its fastest settings."""
    os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
    os.environ["TUNE_GLOBAL_CHECKPOINT_S"] = "1000000"
    os.environ["TUNE_MAX_PENDING_TRIALS_PG"] = str(load.slots)
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

    class Ends(tune.Callback):
        def on_trial_complete(
            self, iteration: int, trials: list[Any], trial: Any, **info: Any
        ) -> None:
            clock.note()

    search = OptunaSearch(
        {"x": optuna.distributions.FloatDistribution(0.0, 1.0)},
        metric="loss",
        mode="min",
        sampler=optuna_sampler(load.sampler),
    )
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
    )
    tuner = tune.Tuner(
        tune.with_resources(Null, {"cpu": 2 / load.slots}),
        tune_config=tune.TuneConfig(
            num_samples=load.trials,
            search_alg=search,
            max_concurrent_trials=load.slots,
            reuse_actors=True,
        ),
        run_config=tune.RunConfig(
            storage_path=str(folder),
            verbose=0,
            callbacks=[Ends()],
            checkpoint_config=tune.CheckpointConfig(
                checkpoint_frequency=0, checkpoint_at_end=False
            ),
        ),
    )
    tuner.fit()
    ray.shutdown()


def with_optuna(load: Load, folder: Path, clock: Clock) -> None:
    """Run a process of Optuna for each slot, all on one database."""
    import optuna

    url = load.storage or f"sqlite:///{folder}/optuna.db"
    optuna.create_study(storage=url, study_name=folder.name)
    context = multiprocessing.get_context("spawn")
    ends = context.Queue()
    shares = [len(range(slot, load.trials, load.slots)) for slot in range(load.slots)]
    workers = [
        context.Process(target=_optimize, args=(url, folder.name, load.sampler, slot, share, ends))
        for slot, share in enumerate(shares)
    ]
    for worker in workers:
        worker.start()
    for _ in range(load.trials):
        ends.get()
        clock.note()
    for worker in workers:
        worker.join()


def _optimize(url: str, name: str, sampler: str, seed: int, trials: int, ends: Any) -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial: Any) -> float:
        x: float = trial.suggest_float("x", 0.0, 1.0)
        for step in range(1, REPORTS + 1):
            trial.report(x / step, step)
        return x / REPORTS

    study = optuna.load_study(study_name=name, storage=url, sampler=optuna_sampler(sampler, seed))
    study.optimize(objective, n_trials=trials, callbacks=[lambda study, trial: ends.put(None)])


def optuna_sampler(name: str, seed: int = 0) -> Any:
    """A sampler of Optuna by our name for it."""
    import optuna

    samplers = {"random": optuna.samplers.RandomSampler, "tpe": optuna.samplers.TPESampler}
    return samplers[name](seed=seed)


CONTENDERS: dict[str, Callable[[Load, Path, Clock], None]] = {
    "hpsearch": with_hpsearch,
    "ray tune": with_tune,
    "optuna": with_optuna,
}
OURS = "hpsearch"
OURS_ALONE = {"curve_gp"}
"""Samplers that the other contenders do not have."""


def measured(load: Load) -> dict[str, float]:
    """What a contender needs, in a new process."""
    call = [sys.executable, __file__, "--one", json.dumps(load)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{load.contender} failed:\n{done.stderr}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(load: Load) -> None:
    """Run one contender here, and print what it needs."""
    clock = Clock()
    with tempfile.TemporaryDirectory(prefix="overhead-") as folder:
        CONTENDERS[load.contender](load, Path(folder), clock)
    count = len(clock.ends)
    assert count == load.trials, f"{count} of {load.trials} trials completed"
    print(json.dumps(clock.row()))


def rows_of(
    contenders: Sequence[str], loads: Sequence[Load], repeats: int
) -> Iterator[dict[str, Any]]:
    """A row for each contender and load: medians over the repeats, in which contenders take
    turns."""
    for load in loads:
        taking_part = [
            each for each in contenders if each == OURS or load.sampler not in OURS_ALONE
        ]
        found: dict[str, list[dict[str, float]]] = {each: [] for each in taking_part}
        for _ in range(repeats):
            for contender in taking_part:
                found[contender].append(measured(load._replace(contender=contender)))
        medians = {each: _median(rows) for each, rows in found.items()}
        ours = medians.get(OURS, {}).get("ms_a_trial")
        for contender, row in medians.items():
            times = [each["ms_a_trial"] for each in found[contender]]
            yield {
                "contender": contender,
                "sampler": load.sampler,
                "trials": load.trials,
                "slots": load.slots,
                **row,
                "fastest": min(times),
                "slowest": max(times),
                "times_ours": row["ms_a_trial"] / ours if ours else None,
                "repeats": repeats,
            }


def _median(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(row[name] for row in rows) for name in rows[0]}


def main() -> None:
    """Measure all contenders in turn, and print medians and ratios."""
    if sys.argv[1:2] == ["--one"]:
        measure(Load(*json.loads(sys.argv[2])))
        return
    quick = {
        "trials": [60],
        "slots": [2],
        "repeats": 1,
        "samplers": ["random", "tpe"],
        "contenders": ["hpsearch", "ray tune"],
    }
    given = arguments(
        __doc__,
        quick,
        trials=[1000, 10_000],
        slots=[2, 32],
        repeats=3,
        samplers=["random", "tpe", "curve_gp"],
        contenders=list(CONTENDERS),
        storage="",
    )
    loads = [
        Load("", sampler, trials, slots, given.storage)
        for trials, slots, sampler in product(given.trials, given.slots, given.samplers)
    ]
    rows = list(rows_of(given.contenders, loads, given.repeats))
    show("Overhead of a null trial with five reports", rows, given.json)


if __name__ == "__main__":
    main()
