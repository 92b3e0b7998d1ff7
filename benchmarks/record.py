"""Record learning curves of real training: random configurations, each trained in full.

    python benchmarks/record.py [WORKLOAD ...] [--data DIR] [--minilm PATH] [--configurations N]
                                [--second-seeds M] [--folder DIR] [--device NAME]
                                [--pack] [--json FILE] [--quick]

A workload is a study file in `benchmarks/recorded`; without names, all of them. Its table is
written beside it, and its figures are printed. `simulate.py STUDY.yaml --curves TABLE.parquet` runs
a study on it, and `anytime.py --family recorded` races on all of them.

Each run is kept in DIR/raw when it has ended, and a command that is started again trains only what
is missing there and in the table. `--pack` trains nothing, and writes the tables of the runs that
there are.

DIR (--data) is a folder with public data, of which `banking77/train.csv` and `banking77/test.csv`
are used. PATH (--minilm) is a folder with a pretrained MiniLM, as `save_pretrained` writes it.
Seconds are processor time on a CPU, and time by the clock on a GPU. More is in
docs/measured/recorded-curves.md.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is imported: one thread per job

from recorded import data as recorded_data
from recorded.recording import SHARES, Entry, Recorder, Workload, pack, read_runs, summary, unpack
from tables import arguments, show, write

RECORDED = Path(__file__).parent / "recorded"
USUALLY = (150, 30)
"""How many configurations of a workload are trained, and how many of them with a second seed."""
COUNTS = {
    "images": (100, 100),
    "language-modelling": (100, 30),
    "token-tagging": (100, 30),
    "minilm-banking77": (64, 30),
    "text-lora": (22, 0),
    "text-slow": (39, 0),
    "images-few": (40, 0),
    "images-warmup": (40, 0),
    "lora-intents": (40, 0),
    "minilm-many-intents": (40, 0),
    "minilm-few-rows": (40, 0),
    "minilm-two-epochs": (40, 0),
    "scratch-warmup": (40, 0),
}
"""The same of single workloads: more where training takes little, fewer where it takes long."""
NAMES = frozenset(SHARES.values())
QUICK = "table-restarts"


def missing(workload: Workload, configurations: int, repeats: int) -> list[Entry]:
    """The runs that have no file yet: all first seeds, then the second ones."""
    first = [Entry(0, trial) for trial in range(configurations)]
    second = [Entry(1, trial) for trial in range(min(repeats, configurations))]
    return [entry for entry in [*first, *second] if not workload.run_file(entry).exists()]


def record(workload: Workload, entries: list[Entry], device: str) -> None:
    """Train these runs."""
    warnings.simplefilter("ignore")  # those of libraries do not concern the reader
    recorder = Recorder(workload, device)
    for entry in entries:
        run = recorder.record(entry)
        ended = run["failure"] or f"{run['reports'][-1]['seconds']:.1f} s"
        which = f"configuration {entry.trial}, seed {entry.seed}"
        print(f"{workload.name}: {which}: {ended}", file=sys.stderr, flush=True)


def workloads(given: Namespace, folder: Path) -> Iterator[Workload]:
    """The workloads that the command names."""
    written = {path.stem: path.read_text("utf-8") for path in RECORDED.glob("*.yaml")}
    known = sorted(name for name, text in written.items() if "kind: ask" not in text)
    for name in given.workloads or known:
        if name not in known:
            raise SystemExit(f"{name} is not a workload; known are {', '.join(known)}")
        yield Workload(RECORDED / f"{name}.yaml", folder)


def recorded(workload: Workload, table: Path, given: Namespace) -> None:
    """Make the data of a workload, and train what is missing: neither in `raw` nor in its table."""
    sources = recorded_data.Sources(given.data, given.minilm)
    recorded_data.make(workload.spec.task, workload.folder, sources)
    unpack(workload, table)
    configurations, repeats = COUNTS.get(workload.name, USUALLY)
    if given.configurations is not None:
        configurations = given.configurations
    if given.second_seeds is not None:
        repeats = given.second_seeds
    read_runs(workload)  # refuses those that the new ones would not belong to
    entries = missing(workload, configurations, repeats)
    record(workload, entries, given.device)


def main() -> None:
    """Record what is missing, write the tables, and print their figures."""
    given = arguments(
        __doc__,
        {"workloads": [QUICK], "configurations": 2, "second_seeds": 1},
        "workloads",
        data=Path,
        minilm=Path,
        configurations=int,
        second_seeds=int,
        folder=RECORDED,
        tables=RECORDED,
        device="cpu",
        pack=False,
    )
    if given.quick:
        with tempfile.TemporaryDirectory() as folder:
            run(given, Path(folder), Path(folder))
        return
    run(given, given.folder.absolute(), given.tables.absolute())


def run(given: Namespace, folder: Path, tables: Path) -> None:
    """Record in one folder, and write tables into another."""
    rows = []
    for workload in workloads(given, folder):
        file = tables / f"{workload.name}.parquet"
        if not given.pack:
            recorded(workload, file, given)
        table = pack(workload, file)
        if table is not None:
            rows.append(summary(workload, table))
    if not rows:
        raise SystemExit(f"{folder}: nothing is recorded")
    tell(rows, given.json)


def tell(rows: list[dict[str, Any]], json_file: Path | None) -> None:
    """Print the figures of workloads, and their rank correlations as a second table."""
    figures, correlations = [], []
    for row in rows:
        found = {name: value for name, value in row.items() if name.split("_")[-1] in NAMES}
        correlations.append({"workload": row["workload"], **found})
        figures.append({name: value for name, value in row.items() if name not in found})
    show("recorded workloads", figures, None)
    print()
    show("rank correlation with the objective at the end", correlations, None)
    write(rows, json_file)


if __name__ == "__main__":
    main()
