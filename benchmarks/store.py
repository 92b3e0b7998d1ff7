"""What commands take on a large database, and what its writer takes for each report.

    python benchmarks/store.py [--studies 200] [--trials 5000] [--quick] [--postgresql URL]
                               [--database FILE] [--peer SECONDS] [--json FILE]

Fills a database with studies of so many trials and ten reports a trial: one study is written as a
driver writes it, and copied by the database. Each command then runs in a process of its own: a row
has the median of its wall and processor time, and the time and number of its SQL statements with
the reading of their rows. A study has trials that are complete, pruned and failed, and three
leaders that were repeated.

`--postgresql URL` fills that database too. `--database FILE` keeps the SQLite file. What is filled
already is measured as it is. With `--peer`, Optuna's RDBStorage has as many of the
same trials as it loads into an SQLite file in so many seconds, 600 unless `--quick`.
"""

import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, create_engine, event, func, insert, literal, select
from sqlalchemy.engine import Engine

from hpsearch.store.connecting.url import parse_url
from tables import arguments, show

REPORTS = 10

SPEC = """
study: study-0
task: {kind: "null_task:train"}
space:
  learning_rate: {type: float, low: 1.0e-5, high: 1.0e-1, log: true}
  batch_size: {type: categorical, choices: [16, 32, 64]}
  depth: {type: int, low: 1, high: 12}
  optimizer: {type: categorical, choices: [adamw, lion]}
objective: {metric: accuracy, direction: maximize}
budget: {trials: 100000, gpu_hours: 1000, per_trial: {steps: 10, report_every: 1}}
search: {sampler: random, pruner: {kind: promotion, eta: 3}}
"""

COMMANDS = {
    "ls": ["ls"],
    "status": ["status", "study-0"],
    "best": ["best", "study-0"],
    "best --top 10": ["best", "study-0", "--top", "10"],
    "show": ["show", "study-0", "7"],
    "trials --where": [
        *("trials", "study-0", "--limit", "20"),
        *("--where", "learning_rate < 1e-4 and state = 'complete'"),
    ],
    "the same by value": [
        *("trials", "study-0", "--limit", "20", "--sort", "value desc"),
        *("--where", "learning_rate < 1e-4 and state = 'complete'"),
    ],
}
PAGE = "a page of the dashboard"


def fill(url: str, studies: int, trials: int) -> None:
    """Fill an empty database with studies of so many trials."""
    from hpsearch.domain.records import StudyRecord, StudyState
    from hpsearch.store.store import Store

    record = StudyRecord(0, "study-0", SPEC, ("maximize",), StudyState.FINISHED, created=1e9)
    with closing(Store.open(url)) as store:
        store.create_study(record)
        for changes in _written(trials):
            store.commit(record.id, changes)
        with store.writing() as connection:
            for number in range(1, studies):
                _copy(connection, record.id, number)
        if store.dialect.name == "postgresql":
            with store.writing() as connection:
                connection.exec_driver_sql("ANALYZE")


def report_ms(url: str) -> float:
    """The milliseconds of a commit with the report of one trial, the median of a hundred."""
    from hpsearch.domain.history import Changes
    from hpsearch.domain.records import ReportRecord
    from hpsearch.store.store import Store

    taken = []
    with closing(Store.open(url)) as store:
        history = store.load("study-0")
        for trial in history.trials[:100]:
            trial.value = trial.expected = random.random()
            report = ReportRecord(trial.number, REPORTS + 1.0, trial.value, {"accuracy": 0.5})
            began = time.perf_counter()
            store.commit(history.study.id, Changes(trials=[trial], reports=[report]))
            taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


def _is_filled(url: str) -> bool:
    from hpsearch.store.store import Store

    with closing(Store.open(url)) as store:
        return bool(store.study_names())


def _written(trials: int) -> Iterator[Any]:
    """The trials of the first study, a thousand a commit."""
    from hpsearch.domain.history import Changes

    draw = random.Random(0)
    for start in range(0, trials, 1000):
        made = [_trial(n, trials, draw) for n in range(start, min(start + 1000, trials))]
        attempts = [attempt for trial in made for attempt in trial.attempts]
        reports = [report for trial in made for report in trial.reports.values()]
        yield Changes(trials=made, attempts=attempts, reports=reports)


def _trial(number: int, trials: int, draw: random.Random) -> Any:
    from hpsearch.domain.facts import ErrorKind, Role
    from hpsearch.domain.lifecycle import State
    from hpsearch.domain.records import Attempt, Outcome, ReportRecord, Trial

    is_repeat = number >= trials - 9
    states = [State.COMPLETE, State.PRUNED, State.FAILED]
    state = State.COMPLETE if is_repeat else draw.choices(states, [5, 14, 1])[0]
    params = {
        "learning_rate": 10 ** draw.uniform(-5, -1),
        "batch_size": draw.choice([16, 32, 64]),
        "depth": draw.randint(1, 12),
        "optimizer": draw.choice(["adamw", "lion"]),
    }
    end = draw.betavariate(5, 2)
    trial = Trial(number, state, params, value=end, resource=REPORTS, seed=number)
    if state is State.FAILED:
        trial.error_kind, trial.error_text = ErrorKind.DIVERGED, "loss is nan"
    elif not is_repeat:
        trial.expected, trial.expected_deviation, trial.rung = end, 0.02, 1
    if is_repeat:
        trial.role, trial.repeats = Role.CONFIRM, number % 3
    trial.created = trial.started = 1e9 + number
    trial.ended = trial.started + 60
    trial.gpu_seconds = 60.0
    outcome = Outcome(state.value)
    attempt = Attempt(number, 1, "worker-0", trial.started, outcome=outcome, ended=trial.ended)
    attempt.gpu_seconds = 60.0
    trial.attempts = [attempt]
    for step in range(1, REPORTS + 1):
        value = end * (0.5 + 0.5 * step / REPORTS) + draw.gauss(0, 0.01)
        metrics = {"accuracy": value, "loss": 1 - value}
        record = ReportRecord(number, float(step), value, metrics, 1, step, 6.0 * step)
        trial.reports[float(step)] = record
    return trial


def _copy(connection: Connection, study_id: int, number: int) -> None:
    """Copy a study with all that belongs to it, inside the database."""
    from hpsearch.store import schema

    studies = schema.studies
    name = f"study-{number}"
    spec = func.replace(studies.c.spec, "study: study-0", f"study: {name}")
    values = {"name": literal(name), "uid": literal(f"copy-{number}"), "spec": spec}
    _insert_copy(connection, studies, studies.c.id == study_id, values, leave_out="id")
    copied = connection.scalar(select(func.max(studies.c.id)))
    for table in (schema.trials, schema.attempts, schema.reports):
        _insert_copy(connection, table, table.c.study_id == study_id, {"study_id": literal(copied)})


def _insert_copy(
    connection: Connection, table: Table, which: Any, values: dict[str, Any], leave_out: str = ""
) -> None:
    names = [column.name for column in table.c if column.name != leave_out]
    copied = [values.get(name, table.c[name]) for name in names]
    connection.execute(insert(table).from_select(names, select(*copied).where(which)))


# ---------------------------------------------------------------------------------------- measuring


def in_this_process(url: str, words: list[str]) -> None:
    """Run a command, and print to stderr its statements as JSON, each with its parameters."""
    asked: list[Any] = []

    @event.listens_for(Engine, "before_cursor_execute")
    def keep(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
        if statement.startswith(("SELECT", "WITH")):
            asked.append((statement, parameters))

    try:
        if words == [PAGE]:
            _page(url)
        else:
            from hpsearch.cli.main import main as hpsearch

            hpsearch([*words, "--storage", url])
    except SystemExit as ended:
        if ended.code:
            raise
    print(json.dumps(asked), file=sys.stderr)


def _page(url: str) -> None:
    from starlette.testclient import TestClient

    from hpsearch.store.store import Store
    from hpsearch.views.pages.site import site_of

    with closing(Store.open(url)) as store, TestClient(site_of(store, allow_changes=False)) as site:
        answer = site.get("/studies/1/trials")
    assert answer.status_code == 200, answer.text


def measured(url: str, name: str, words: list[str], repeats: int) -> dict[str, Any]:
    """A row of the table: medians over runs of a command."""
    call = [sys.executable, __file__, "--run", url, *words]
    walls, processors, asked = [], [], []
    for _ in range(repeats):
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.perf_counter()
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        walls.append(time.perf_counter() - began)
        if done.returncode != 0:
            raise SystemExit(f"{name} failed:\n{done.stderr}")
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        processors.append(now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime)
        asked = json.loads(done.stderr.splitlines()[-1])
    return {
        "command": name,
        "wall_s": statistics.median(walls),
        "processor_s": statistics.median(processors),
        "sql_ms": statistics.median(_sql_ms(url, asked) for _ in range(repeats)),
        "statements": len(asked),
    }


def _sql_ms(url: str, asked: list[Any]) -> float:
    """The milliseconds that a database takes for statements and for handing out their rows."""
    engine = create_engine(parse_url(url))
    with closing(engine.raw_connection()) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT 1")
        began = time.perf_counter()
        for statement, parameters in asked:
            cursor.execute(statement, parameters)
            cursor.fetchall()
        return (time.perf_counter() - began) * 1000


def with_optuna(seconds: float, trials: int, folder: Path) -> list[dict[str, Any]]:
    """Optuna's storage with as many of the trials as it loads in time: loading and two readings."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    url = f"sqlite:///{folder / 'optuna.db'}"
    study = optuna.create_study(storage=url, direction="maximize", study_name="study-0")
    space = {
        "learning_rate": optuna.distributions.FloatDistribution(1e-5, 1e-1, log=True),
        "depth": optuna.distributions.IntDistribution(1, 12),
    }
    draw = random.Random(0)
    began = time.perf_counter()
    loaded = 0
    while loaded < trials and time.perf_counter() - began < seconds:
        made = _trial(loaded, trials + 9, draw)
        params = {name: made.params[name] for name in space}
        values = {int(at): report.value for at, report in made.reports.items()}
        trial = optuna.trial.create_trial(
            params=params, distributions=space, value=made.value, intermediate_values=values
        )
        study.add_trial(trial)
        loaded += 1
    rows = [_peer_row(f"add_trial, {loaded:,} trials", time.perf_counter() - began)]
    for name in ("get_all_trials", "get_best_trial"):
        storage = optuna.storages.RDBStorage(url)
        study_id = storage.get_study_id_from_name("study-0")
        began = time.perf_counter()
        getattr(storage, name)(study_id)
        rows.append(_peer_row(f"{name}, {loaded:,} trials", time.perf_counter() - began))
    return rows


def _peer_row(name: str, wall_s: float) -> dict[str, Any]:
    row = {"database": "sqlite", "command": f"Optuna: {name}", "wall_s": wall_s}
    return row | {"processor_s": None, "sql_ms": None, "statements": None}


def main() -> None:
    """Fill the databases, and print what commands take on each."""
    if sys.argv[1:2] == ["--run"]:
        in_this_process(sys.argv[2], sys.argv[3:])
        return
    given = arguments(
        __doc__,
        {"studies": 4, "trials": 500, "peer": 5.0, "repeats": 1},
        studies=200,
        trials=5000,
        repeats=5,
        postgresql=str,
        database=Path,
        peer=600.0,
    )
    studies, trials = given.studies, given.trials
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        file = given.database or Path(folder) / "hpsearch.db"
        urls = {"sqlite": f"sqlite:///{file.absolute()}"}
        if given.postgresql:
            urls["postgresql"] = given.postgresql
        for database, url in urls.items():
            if not _is_filled(url):
                fill(url, studies, trials)
            for name, words in {**COMMANDS, PAGE: [PAGE]}.items():
                rows.append({"database": database, **measured(url, name, words, given.repeats)})
            print(f"{database}: {report_ms(url):.2f} ms for the commit of a report", flush=True)
        if given.peer > 0:
            rows += with_optuna(given.peer, studies * trials, Path(folder))
    title = (
        f"{studies:,} studies of {trials:,} trials with {REPORTS} reports, {os.cpu_count()} cores"
    )
    show(title, rows, given.json)


if __name__ == "__main__":
    main()
