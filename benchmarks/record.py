"""Record learning curves of real training: random configurations, each trained in full.

    python benchmarks/record.py [WORKLOAD ...] [--data DIR] [--minilm PATH] [--configurations N]
                                [--second-seeds M] [--jobs J] [--folder DIR] [--device NAME]
                                [--pack] [--json FILE] [--quick]

A workload is a study file in `benchmarks/recorded`; without names, all of them. Its table is
written beside it, and its figures are printed. `hpsearch simulate STUDY.yaml --curves
TABLE.parquet` runs a study on it, and `anytime.py --family recorded` races on all of them.

Each run is kept in DIR/raw when it has ended, and a command that is started again trains only what
is missing there and in the table. Several commands may work on the same folder. `--pack` trains
nothing, and writes the tables of the runs that there are.

DIR (--data) is a folder with public data, of which `banking77/train.csv` and `banking77/test.csv`
are used. PATH (--minilm) is a folder with a pretrained MiniLM, as `save_pretrained` writes it.
Seconds are processor time on a CPU, and time by the clock on a GPU. More is in
docs/measured/recorded-curves.md.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is imported: one thread per job

from recorded import data as recorded_data
from recorded.recording import SHARES, Entry, Recorder, Workload, pack, read_runs, summary, unpack
from tables import show

RECORDED = Path(__file__).parent / "recorded"
USUALLY = (150, 30)
"""How many configurations of a workload are trained, and how many of them with a second seed."""
COUNTS = {
    "table-cancer": (600, 600),
    "table-diabetes": (600, 600),
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
QUICK, QUICK_CONFIGURATIONS, QUICK_REPEATS = "table-diabetes", 2, 1


def missing(workload: Workload, configurations: int, repeats: int) -> list[Entry]:
    """The runs that have no file yet: all first seeds, then the second ones."""
    first = [Entry(0, trial) for trial in range(configurations)]
    second = [Entry(1, trial) for trial in range(min(repeats, configurations))]
    return [entry for entry in [*first, *second] if not workload.run_file(entry).exists()]


def record(workload: Workload, entries: list[Entry], device: str) -> None:
    """Train what no other process trains, in this process."""
    warnings.simplefilter("ignore")  # those of libraries do not concern the reader
    with closing(Recorder(workload, device)) as recorder:
        for entry in entries:
            run = recorder.record(entry)
            if run is None:
                continue
            last = run["reports"][-1]
            ended = run["failure"] or f"{last['seconds']:.1f} s"
            which = f"configuration {entry.trial}, seed {entry.seed}"
            print(f"{workload.name}: {which}: {ended}", file=sys.stderr, flush=True)


def record_as_child(workload: Workload, entries: list[Entry], device: str) -> None:
    """The same in a process of its own, which ends with the one that started it, however that
    ends."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    record(workload, entries, device)


def record_in_parallel(workload: Workload, entries: list[Entry], device: str, jobs: int) -> None:
    """Train in several processes, which take what the others have not begun.

    Raises:
        SystemExit: One of them failed.
    """
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=record_as_child, args=(workload, entries, device), daemon=True)
        for _ in range(jobs)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        raise SystemExit(f"{workload.name}: a recording failed; see above")


def workloads(arguments: argparse.Namespace, folder: Path) -> Iterator[Workload]:
    """The workloads that the command names."""
    known = sorted(path.stem for path in RECORDED.glob("*.yaml"))
    for name in arguments.workloads or known:
        if name not in known:
            raise SystemExit(f"{name} is not a workload; known are {', '.join(known)}")
        yield Workload(RECORDED / f"{name}.yaml", folder)


def recorded(workload: Workload, table: Path, arguments: argparse.Namespace) -> None:
    """Make the data of a workload, and train what is missing: neither in `raw` nor in its table."""
    sources = recorded_data.Sources(arguments.data, arguments.minilm)
    recorded_data.make(workload.spec.task, workload.folder, sources)
    unpack(workload, table)
    configurations, repeats = COUNTS.get(workload.name, USUALLY)
    if arguments.configurations is not None:
        configurations = arguments.configurations
    if arguments.second_seeds is not None:
        repeats = arguments.second_seeds
    read_runs(workload)  # refuses those that the new ones would not belong to
    entries = missing(workload, configurations, repeats)
    if arguments.jobs == 1:
        record(workload, entries, arguments.device)
    else:
        record_in_parallel(workload, entries, arguments.device, arguments.jobs)


def main() -> None:
    """Record what is missing, write the tables, and print their figures."""
    arguments = arguments_given()
    if arguments.quick:
        with tempfile.TemporaryDirectory() as folder:
            run(arguments, Path(folder), Path(folder))
        return
    run(arguments, arguments.folder.absolute(), arguments.tables.absolute())


def run(arguments: argparse.Namespace, folder: Path, tables: Path) -> None:
    """Record in one folder, and write tables into another."""
    rows = []
    for workload in workloads(arguments, folder):
        file = tables / f"{workload.name}.parquet"
        if not arguments.pack:
            recorded(workload, file, arguments)
        table = pack(workload, file)
        if table is not None:
            rows.append(summary(workload, table))
    if not rows:
        raise SystemExit(f"{folder}: nothing is recorded")
    tell(rows, arguments.json)


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
    if json_file is not None:
        json_file.write_text(json.dumps({"rows": rows}, indent=2) + "\n")


def arguments_given() -> argparse.Namespace:
    """The parsed command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("workloads", nargs="*", metavar="WORKLOAD", help="names of study files; all by default")
    add("--data", type=Path, metavar="DIR", help="folder with public data")
    add("--minilm", type=Path, metavar="PATH", help="folder of a pretrained MiniLM")
    add("--configurations", type=int, metavar="N", help=f"of each workload (usually {USUALLY[0]})")
    add("--second-seeds", type=int, metavar="M", help=f"so many twice (usually {USUALLY[1]})")
    add("--jobs", type=int, default=1, help="processes that train side by side")
    add("--folder", type=Path, default=RECORDED, metavar="DIR", help="for data/ and raw/")
    add("--tables", type=Path, default=RECORDED, metavar="DIR", help="for the tables")
    add("--device", default="cpu", help="a torch device name")
    add("--pack", action="store_true", help="train nothing, write the tables")
    add("--json", type=Path, metavar="FILE", help="file for the printed rows")
    add("--quick", action="store_true", help=f"{QUICK_CONFIGURATIONS} configurations of {QUICK}")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.workloads = [QUICK]
        arguments.configurations = QUICK_CONFIGURATIONS
        arguments.second_seeds = QUICK_REPEATS
    return arguments


if __name__ == "__main__":
    main()
