"""`hpsearch import`: past runs of other programs as a study."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpsearch.cli.output import note
from hpsearch.errors import StudyExists, UserError
from hpsearch.importing import columns, optuna_study, table_runs, tables, tune_folder, wandb_runs
from hpsearch.importing import space as spaces
from hpsearch.importing.columns import Mapped
from hpsearch.importing.runs import Misfits, PastRuns, begin_at_one, check
from hpsearch.importing.writer import Destination, unit_of, write
from hpsearch.store.store import Store
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import load
from hpsearch.study_file.types import STUDY_NAME

KINDS = "a .csv, .tsv or .parquet file, .jsonl of W&B, a folder of Ray Tune or W&B, or a URL"


@dataclass(frozen=True)
class ImportOptions:
    """What the command line says.

    Args:
        name: The new study's name.
        storage: The database's URL.
        study: The name of a study of Optuna's.
        mapping: A mapping file.
        space: A study file whose space the runs must lie in.
        params: `NAME=COLUMN,...`, perhaps several times.
        metric: `NAME=COLUMN`, once for each objective.
        direction: Minimize or maximize, once for each objective.
        others: The other keys of a mapping by name; None for what is not given.
        dry_run: Whether to read and check only.
    """

    name: str
    storage: str
    study: str | None
    mapping: Path | None
    space: Path | None
    params: list[str] | None
    metric: list[str] | None
    direction: list[str] | None
    others: dict[str, str | None]
    dry_run: bool = False

    def mapped(self) -> Mapped:
        """Which column is what: the mapping file, with what options state in its place."""
        stated: dict[str, Any] = dict(self.others)
        stated["params"] = columns.all_pairs("--params", self.params) if self.params else None
        stated["metric"] = columns.all_pairs("--metric", self.metric) if self.metric else None
        stated["direction"] = self.direction or None
        base = columns.load(self.mapping) if self.mapping else Mapped()
        return base.with_options(stated)


def import_runs(source: str, options: ImportOptions) -> None:
    """Bring past runs in as a finished study, all of them or none.

    Raises:
        UserError: They cannot be read, or do not fit; says where.
        StudyExists: The name is taken.
    """
    if not re.fullmatch(STUDY_NAME, options.name):
        raise UserError(
            f"--name {options.name}: use letters, digits, '.', '_' and '-', at most 100"
        )
    mapped = options.mapped()
    stated = None if options.space is None else load(options.space)
    if stated is not None:
        mapped = _measured_as(mapped, stated)
    misfits = Misfits(_shown(source))
    found = _read(source, options.study, mapped, misfits)
    check(found, misfits)
    begin_at_one(found)
    unit = unit_of(found, mapped.resource_unit() or _unit_in(stated))
    if stated is None:
        space = spaces.inferred(found.runs)
    else:
        space = dict(stated.space)
        spaces.fit(found.runs, space, misfits)
        misfits.refuse()
    task = None if stated is None else str(stated.task["kind"])
    destination = Destination(options.name, space, unit, task)
    _tell(found, destination, inferred=stated is None)
    if options.dry_run:
        note("nothing was written: --dry-run")
        return
    with closing(Store.open(options.storage)) as store:
        _write(store, found, destination)
    note(f"imported {_count(found)} as study {options.name}")
    note(f"see the best: hpsearch best {options.name}")
    note(f"start a search from it: search: {{warm_start: [{options.name}]}} in the study file")


def _write(store: Store, found: PastRuns, destination: Destination) -> None:
    try:
        write(store, found, destination)
    except StudyExists as error:
        hint = f"choose another --name, or remove it: hpsearch rm {destination.name}"
        raise StudyExists(error.message, hint) from error


def _shown(source: str) -> str:
    """The source for people: without the password of a URL."""
    return re.sub(r"://([^:@/]*):[^@/]*@", r"://\1:***@", source)


def _unit_in(stated: StudySpec | None) -> Any:
    """The unit of a study file, if resources have no other."""
    return None if stated is None else stated.budget.per_trial.unit


def _measured_as(mapped: Mapped, stated: StudySpec) -> Mapped:
    """The mapping with the objectives of a study file, where it names none."""
    update: dict[str, Any] = {}
    if mapped.metric is None:
        update["metric"] = {each.metric: each.metric for each in stated.objectives}
    if mapped.direction is None:
        update["direction"] = [each.direction for each in stated.objectives]
    return mapped.model_copy(update=update)


def _read(source: str, study: str | None, mapped: Mapped, misfits: Misfits) -> PastRuns:
    """The runs of a source, by the reader of its kind."""
    path = Path(source)
    if "://" in source or optuna_study.is_journal(path):
        return optuna_study.read(source, study, mapped, misfits)
    if study is not None:
        raise UserError("--study is for a storage of Optuna's", "leave it out")
    suffix = path.suffix.lower()
    if suffix in tables.SUFFIXES:
        return table_runs.read(path, mapped, misfits)
    if suffix == ".jsonl":
        return wandb_runs.read(path, mapped, misfits)
    if not path.exists():
        raise UserError(f"{source}: there is nothing of this name", f"give {KINDS}")
    if path.is_dir() and tune_folder.is_experiment(path):
        return tune_folder.read(path, mapped, misfits)
    if path.is_dir() and wandb_runs.is_wandb(path):
        return wandb_runs.read(path, mapped, misfits)
    if path.is_dir():
        what = f"{source} has no folders of trials (params.json) or of W&B runs (run-*)"
        raise UserError(what, "name the folder of the experiment itself")
    if suffix in (".db", ".sqlite", ".sqlite3"):
        raise UserError(f"{source} is a database", f"name it by its URL: sqlite:///{source}")
    raise UserError(f"{source} is not a source that is known", f"give {KINDS}")


def _count(found: PastRuns) -> str:
    states = Counter(run.state.value for run in found.runs)
    told = ", ".join(f"{number} {state}" for state, number in states.items())
    return f"{len(found.runs)} runs ({told})"


def _tell(found: PastRuns, destination: Destination, *, inferred: bool) -> None:
    """Print what was understood, for a person to check."""
    measured = [f"{each.metric} ({each.direction})" for each in found.objectives]
    longest = max((at for run in found.runs for at in run.curve), default=None)
    note(f"{found.kind}: {_count(found)} of {found.source}")
    note(f"compared by {', '.join(measured)}")
    if longest is not None:
        note(f"trained to {longest:g} {destination.unit.value} at most")
    how = (
        "inferred from the runs; state it with --space if it was another" if inferred else "stated"
    )
    note(f"space, {how}:")
    for line in spaces.lines(destination.space, found.runs):
        note(line)
    for text in found.notes:
        note(text)
