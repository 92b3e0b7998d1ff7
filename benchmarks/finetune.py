"""A real short fine-tune study from the command line, beside other searchers.

    python benchmarks/finetune.py [WORKLOAD ...] [--data DIR] [--minilm PATH] [--minutes M]
                                  [--seeds N] [--contenders A,B] [--anew N] [--folder DIR]
                                  [--json FILE] [--quick]

A workload is a study file in `benchmarks/finetunes`: `minilm`, a pretrained model, and `scratch`, a
small transformer. DIR (--data) is a folder with `banking77/train.csv` and `banking77/test.csv`;
PATH (--minilm) is a folder with a pretrained MiniLM, as `save_pretrained` writes it. `--quick`
searches a tiny model on made-up sentences for some seconds, with some of the contenders.

All contenders get the same data, space, cores (two workers with a thread each) and time, which
starts with their commands. They take turns: each of them with the first seed, then with the second.
`hpsearch run` gets a `wall_clock` that is shorter by its own start-up, measured once before.

Columns: the seconds until the first training began; trials that reported, and those trained in
full; the accuracy of the configuration that the contender would have handed out after each quarter
of the time, when it is trained in full, by its own training if it was and else by another one after
the clock has stopped; the same of the last one when trained again with other seeds, always by the
built-in loop; when the contender first handed out one as good as its last, when hpsearch first did,
and the ratio of the two.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is imported: one thread per worker

from finetunes import results
from finetunes.peers import PEERS, WORKERS, make_database
from finetunes.study import FineTune, make_data, make_folder
from hpsearch.search.proposals import derived_seed
from recorded import data as recorded_data
from tables import show

HERE = Path(__file__).parent
OURS = "hpsearch"
CHECKPOINTS = "hpsearch-studies"
"""Where a study of hpsearch keeps its checkpoints, beside its file."""
MINUTES = {"minilm": 6.0, "scratch": 2.0}
"""The time of one search, by workload."""
QUICK = "quick"
QUICK_CONTENDERS = "hpsearch,tune-asha,trainer-optuna"
QUICK_SHARE = 1.5
"""The time of a quick search, in start-ups of hpsearch with its workers: the same work on a machine
that is busy."""
QUARTERS = {"at_25": 0.25, "at_50": 0.5, "at_75": 0.75, "at_100": 1.0}
GRACE_S = 60.0
"""How long a contender whose time is over may take to end."""
REHEARSAL, REHEARSAL_S = "rehearsal", 1.0
"""The folder and the wall-clock budget, in seconds, of the study that measures hpsearch's
start-up."""


@dataclass(frozen=True)
class Contender:
    """How a searcher is run and what it hands out.

    Args:
        rule: How it chooses what it hands out.
        loop: The loop that its unfinished trials are trained in full with.
        processes: How many it consists of.
        overruns: Whether it lets trials end after its time; it is stopped then.
    """

    rule: results.Rule
    loop: str = "built-in"
    processes: int = 1
    overruns: bool = False


CONTENDERS = {
    OURS: Contender(results.as_hpsearch_best),
    "tune-asha": Contender(results.best_latest),
    "tune-random": Contender(results.best_latest),
    "tune-asha-plain": Contender(results.best_latest, loop="plain"),
    "trainer-optuna": Contender(
        results.best_in_full, loop="plain", processes=WORKERS, overruns=True
    ),
}
assert set(CONTENDERS) == {OURS, *PEERS}


# ---------------------------------------------------------------------------------- running


def search(name: str, study: FineTune, budget_s: float) -> results.Run:
    """Run a contender for its time, and read what it did."""
    contender = CONTENDERS[name]
    if contender.processes > 1:
        make_database(study)
    start = time.time()
    deadline = start + budget_s
    commands = [_command(name, study, deadline, number) for number in range(contender.processes)]
    last_moment = deadline if contender.overruns else deadline + GRACE_S
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for number, command in enumerate(commands):
            processes.append(_started(command, study.folder, number))
        for process in processes:
            _wait(process, last_moment)
    finally:
        stopped = [_stop(process) for process in processes]
    for number, process in enumerate(processes):
        has_failed = process.returncode != 0 and not stopped[number]
        if has_failed and not (name == OURS and results.has_ended(study.folder)):
            _fail(name, study.folder, number)
    shutil.rmtree(study.folder / CHECKPOINTS, ignore_errors=True)  # gigabytes, not needed any more
    if name == OURS:
        return results.read_hpsearch(study, start)
    return results.read_peer(study, start)


def _command(name: str, study: FineTune, deadline: float, number: int) -> list[str]:
    if name == OURS:
        program = Path(sys.executable).parent / "hpsearch"
        database = study.folder / results.DATABASE
        return [str(program), "run", "study.yaml", "--storage", f"sqlite:///{database}"]
    program = [sys.executable, "-m", "finetunes.peers"]
    return [*program, name, str(study.folder), str(deadline), str(number)]


def _started(command: Sequence[str], folder: Path, number: int) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own; what it prints goes to a file."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(HERE),
        "HPSEARCH_CACHE": str(folder / "cache"),  # a new one: nobody finds prepared data
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
    }
    environment.pop("RAY_ADDRESS", None)
    with _output(folder, number).open("wb") as output:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _output(folder: Path, number: int) -> Path:
    return folder / f"output-{number}.txt"


def _wait(process: subprocess.Popen[bytes], last_moment: float) -> None:
    """Wait for the end of a process, and not longer than until a moment."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(max(0.0, last_moment - time.time()))


def _stop(process: subprocess.Popen[bytes]) -> bool:
    """Kill a process that still runs, with what it has started; whether it still did."""
    if process.poll() is not None:
        return False
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return True


def _fail(name: str, folder: Path, number: int) -> None:
    text = _output(folder, number).read_text(errors="replace")
    raise SystemExit(f"{name} failed:\n{text[-3000:]}")


@dataclass(frozen=True)
class Rehearsal:
    """A study of hpsearch that ends as soon as its time has begun.

    Args:
        start_up_s: Seconds from the command until the study's time began.
        whole_s: Seconds from the command to its end; its workers were ready by then.
    """

    start_up_s: float
    whole_s: float


def rehearse(name: str, data: Path) -> Rehearsal:
    """Measure the start-up of hpsearch in a run for that alone.

    Args:
        name: The workload's.
        data: The folder with its data, and for the run.
    """
    note(f"{name}: measuring the start-up of hpsearch")
    folder = data / REHEARSAL
    study = make_folder(name, data, folder, 0, REHEARSAL_S)
    start = time.time()
    process = _started(_command(OURS, study, start, 0), folder, 0)
    try:
        process.wait()
    finally:
        _stop(process)
    whole_s = time.time() - start
    if not results.has_ended(folder):
        _fail(OURS, folder, 0)
    return Rehearsal(results.seconds_before_driving(folder, start), whole_s)


# ------------------------------------------------------------------------------- a workload


@dataclass(frozen=True)
class Race:
    """One workload, on which all contenders search.

    Args:
        name: The workload's.
        folder: For its data and all runs.
        budget_s: The time of each search.
        wall_clock_s: The part of it that is left to hpsearch after its start-up.
        contenders: The names of those that take part; hpsearch is one of them.
        anew: How often what was handed out in the end is trained again.
    """

    name: str
    folder: Path
    budget_s: float
    wall_clock_s: float
    contenders: Sequence[str]
    anew: int

    def rows(self, seed: int, judge: results.Judge) -> list[dict[str, Any]]:
        """Let all contenders search with one seed, and judge them afterwards."""
        runs = {}
        for name in self.contenders:
            note(f"{self.name}, seed {seed}: {name}")
            folder = self.folder / f"{seed}-{name}"
            study = make_folder(self.name, self.folder, folder, seed, self.wall_clock_s)
            runs[name] = search(name, study, self.budget_s)
        epochs = FineTune(folder).epochs
        changes = {}
        for name, run in runs.items():
            rule = CONTENDERS[name].rule
            changes[name] = results.handed_out(run, rule, epochs, self.budget_s)
        note(f"{self.name}, seed {seed}: training in full what was not")
        return self._judged(seed, runs, changes, epochs, judge)

    def _judged(
        self,
        seed: int,
        runs: Mapping[str, results.Run],
        changes: Mapping[str, Sequence[tuple[float, str]]],
        epochs: float,
        judge: results.Judge,
    ) -> list[dict[str, Any]]:
        missing, again = {}, {}
        for name, run in runs.items():
            missing[name] = self._unfinished(name, run, changes[name], epochs)
            again[name] = self._again(seed, run, changes[name])
        left = [each.values() for each in missing.values()]
        trainings = [training for several in left for training in several]
        judge.train([*trainings, *(each for several in again.values() for each in several)])
        courses = {}
        for name, run in runs.items():
            values = run.in_full(epochs)
            for trial, training in missing[name].items():
                values[trial] = judge.value(training)
            steps = [(moment, values[trial]) for moment, trial in changes[name]]
            courses[name] = results.Course(steps)
        rows = []
        for name, run in runs.items():
            found = [judge.value(training) for training in again[name]]
            row = {
                "workload": self.name,
                "contender": name,
                "seed": seed,
                "seconds": self.budget_s,
                "start_up_s": run.start_up_s,
                **_counts(run, epochs, self.budget_s),
                **{key: courses[name].at(q * self.budget_s) for key, q in QUARTERS.items()},
                "anew": statistics.mean(found) if found else None,
                **_speed(name, courses),
                "handed_out": _details(run, changes[name], courses[name]),
            }
            rows.append(row)
        return rows

    def _unfinished(
        self, name: str, run: results.Run, changes: Sequence[tuple[float, str]], epochs: float
    ) -> dict[str, results.Training]:
        """The trainings in full of trials that were handed out before they had been."""
        known = run.in_full(epochs)
        loop = CONTENDERS[name].loop
        found = {}
        for _, trial in changes:
            if trial not in known:
                found[trial] = results.Training.of(loop, run.params[trial], run.seeds[trial])
        return found

    def _again(
        self, seed: int, run: results.Run, changes: Sequence[tuple[float, str]]
    ) -> list[results.Training]:
        """The trainings of what was handed out last, with seeds that nobody has searched with."""
        if not changes:
            return []
        params = run.params[changes[-1][1]]
        seeds = [derived_seed(seed, number, "anew") for number in range(self.anew)]
        return [results.Training.of("built-in", params, each) for each in seeds]


def _counts(run: results.Run, epochs: float, budget_s: float) -> dict[str, int]:
    """How many trials reported within the time, and how many were trained in full."""
    in_time = [each for each in run.evaluations if each.at <= budget_s]
    full = {each.trial for each in in_time if each.epochs >= epochs}
    return {"trials": len({each.trial for each in in_time}), "full": len(full)}


def _speed(name: str, courses: Mapping[str, results.Course]) -> dict[str, float | None]:
    """When a contender reached its last value, when hpsearch reached that, and the ratio."""
    nothing = {"reached_s": None, "hpsearch_s": None, "times_faster": None}
    last = courses[name].at(math.inf)
    if last is None:
        return nothing
    theirs = courses[name].reached(last)
    ours = courses[OURS].reached(last)
    assert theirs is not None
    faster = None if ours is None or name == OURS else theirs / ours
    return {"reached_s": theirs, "hpsearch_s": ours, "times_faster": faster}


def _details(
    run: results.Run, changes: Sequence[tuple[float, str]], course: results.Course
) -> list[dict[str, Any]]:
    """All that was handed out, for the JSON file."""
    rows = []
    for (moment, trial), (_, value) in zip(changes, course.steps, strict=True):
        rows.append({"at": moment, "trial": trial, "params": run.params[trial], "value": value})
    return rows


# ---------------------------------------------------------------------------------- telling


def note(text: str) -> None:
    """Tell on stderr what is under way."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def tell(rows: Sequence[dict[str, Any]], json_file: Path | None) -> None:
    """Print each search, and means over seeds."""
    plain = []
    for row in rows:
        plain.append({key: value for key, value in row.items() if key != "handed_out"})
    show("Searches, each with what it would have handed out", plain, None)
    print()
    show("Means over seeds; times faster is a geometric mean", means(rows), None)
    if json_file is not None:
        json_file.write_text(json.dumps({"rows": rows}, indent=2) + "\n")


def means(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each workload and contender.

    `hpsearch_reached` is the share of the seeds in which hpsearch reached the other's last value;
    `times_faster` is the mean over these.
    """
    found = []
    for workload, name in dict.fromkeys((row["workload"], row["contender"]) for row in rows):
        own = [row for row in rows if (row["workload"], row["contender"]) == (workload, name)]
        faster = [row["times_faster"] for row in own if row["times_faster"] is not None]
        reached = [row for row in own if row["hpsearch_s"] is not None]
        found.append(
            {
                "workload": workload,
                "contender": name,
                "seeds": len(own),
                **{key: _mean(own, key) for key in ("start_up_s", "trials", "full")},
                **{key: _mean(own, key) for key in (*QUARTERS, "anew")},
                "hpsearch_reached": f"{len(reached)}/{len(own)}",
                "times_faster": statistics.geometric_mean(faster) if faster else None,
            }
        )
    return found


def _mean(rows: Sequence[dict[str, Any]], key: str) -> float | None:
    """A mean; None where a row has no value."""
    values = [row[key] for row in rows]
    return None if None in values else statistics.fmean(values)


# ------------------------------------------------------------------------------ the command


def main() -> None:
    """Search with all contenders in turn, and print what they found."""
    arguments = arguments_given()
    _share_cores()
    if arguments.folder is not None:
        run(arguments, arguments.folder.absolute())
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        run(arguments, Path(folder))


def _share_cores() -> None:
    """Give this process, and all that it starts, as many cores as there are workers."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[:WORKERS])


def run(arguments: argparse.Namespace, folder: Path) -> None:
    """Race on the workloads that the command names."""
    sources = recorded_data.Sources(arguments.data, arguments.minilm)
    os.environ["HPSEARCH_CACHE"] = str(folder / "cache")  # for the trainings after the searches
    rows: list[dict[str, Any]] = []
    for name in arguments.workloads:
        of_workload = folder / name
        of_workload.mkdir(parents=True)
        make_data(name, of_workload, sources)
        rehearsal = rehearse(name, of_workload)
        budget_s = QUICK_SHARE * rehearsal.whole_s
        if name != QUICK or arguments.minutes is not None:
            budget_s = 60 * (arguments.minutes or MINUTES[name])
        search_s = max(1.0, budget_s - rehearsal.start_up_s)
        race = Race(name, of_workload, budget_s, search_s, arguments.contenders, arguments.anew)
        judge = results.Judge(of_workload / REHEARSAL, WORKERS)
        for seed in range(1, arguments.seeds + 1):
            rows += race.rows(seed, judge)
            tell(rows, arguments.json)  # of each seed: a command that is stopped has told the rest


def arguments_given() -> argparse.Namespace:
    """The parsed command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("workloads", nargs="*", metavar="WORKLOAD", help="minilm or scratch; both by default")
    add("--data", type=Path, metavar="DIR", help="folder with public data")
    add("--minilm", type=Path, metavar="PATH", help="folder of a pretrained MiniLM")
    add("--minutes", type=float, metavar="M", help=f"of each search (usually {MINUTES})")
    add("--seeds", type=int, default=3, metavar="N", help="searches of each contender")
    add("--contenders", type=_names, metavar="A,B", help="only these, and hpsearch")
    add("--anew", type=int, default=1, metavar="N", help="trainings of the last with other seeds")
    add("--folder", type=Path, metavar="DIR", help="a new folder, to keep all runs")
    add("--json", type=Path, metavar="FILE", help="file for the rows")
    add("--quick", action="store_true", help="a tiny model, some seconds, one seed, few contenders")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.workloads, arguments.seeds = [QUICK], 1
    arguments.workloads = arguments.workloads or list(MINUTES)
    for name in arguments.workloads:
        if name not in (*MINUTES, QUICK):
            parser.error(f"{name} is not a workload; known are {', '.join(MINUTES)}")
    if arguments.contenders is None:
        arguments.contenders = _names(QUICK_CONTENDERS) if arguments.quick else list(CONTENDERS)
    return arguments


def _names(text: str) -> list[str]:
    """Contenders, with hpsearch first: all others are compared with it."""
    names = text.split(",")
    for name in names:
        if name not in CONTENDERS:
            known = ", ".join(CONTENDERS)
            raise argparse.ArgumentTypeError(f"{name} is not a contender; known are {known}")
    return [OURS, *(name for name in names if name != OURS)]


if __name__ == "__main__":
    main()
