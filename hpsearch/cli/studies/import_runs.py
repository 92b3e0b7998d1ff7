"""`hpsearch import`: past runs of other programs as a study."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from hpsearch.bridges import imported_study, sources
from hpsearch.bridges.imported_study import Destination, unit_of
from hpsearch.bridges.past_runs import Mapped, Misfits, PastRuns
from hpsearch.cli.output import note
from hpsearch.errors import StudyExists, UserError
from hpsearch.store.store import Store
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import load
from hpsearch.study_file.types import STUDY_NAME
from trials.contract import Unit


@dataclass(frozen=True)
class ImportOptions:
    """The options of the command line.

    Attributes:
        name: The new study's name.
        storage: The database's URL.
        mapped: The parts of a run, by column.
        unit: The unit of resources, as a text.
        space: A study file whose space the runs must lie in.
        dry_run: Whether to read and check only.
    """

    name: str
    storage: str
    mapped: Mapped
    unit: str | None = None
    space: Path | None = None
    dry_run: bool = False


def import_runs(source: str, options: ImportOptions) -> None:
    """Bring past runs in as a finished study, all of them or none.

    Raises:
        UserError: They cannot be read, or do not fit; says where.
        StudyExists: The name is taken.
    """
    name, unit = options.name, options.unit
    if not re.fullmatch(STUDY_NAME, name):
        raise UserError(f"--name {name}: use letters, digits, '.', '_' and '-', at most 100")
    if unit is not None and unit not in list(Unit):
        raise UserError(f"--unit {unit}: must be one of {', '.join(Unit)}")
    stated = None if options.space is None else load(options.space)
    misfits = Misfits(re.sub(r"://([^:@/]*):[^@/]*@", r"://\1:***@", source))
    found = sources.past_runs(source, _measured_as(options.mapped, stated), misfits)
    if stated is None:
        counted = unit_of(found, None if unit is None else Unit(unit))
        destination = Destination(name, imported_study.inferred(found.runs), counted)
    else:
        counted = unit_of(found, Unit(unit or stated.budget.per_trial.unit))
        imported_study.fit(found.runs, stated.space, misfits)
        misfits.refuse()
        destination = Destination(name, stated.space, counted, str(stated.task["kind"]))
    states = Counter(run.state.value for run in found.runs)
    counts = ", ".join(f"{number} {state}" for state, number in states.items())
    runs = f"{len(found.runs)} runs ({counts})"
    note(f"{found.kind}: {runs} of {found.source}")
    _print_mapping(found, destination)
    if options.dry_run:
        note("nothing was written: --dry-run")
        return
    with closing(Store.open(options.storage)) as store:
        try:
            imported_study.write(store, found, destination)
        except StudyExists as error:
            hint = f"choose another --name, or remove it: hpsearch rm {name}"
            raise StudyExists(error.message, hint) from error
    note(f"imported {runs} as study {name}")
    note(f"see the best: hpsearch best {name}")
    note(f"start a search from it: search: {{warm_start: [{name}]}} in the study file")


def _measured_as(mapped: Mapped, stated: StudySpec | None) -> Mapped:
    """The mapping with the objectives of a study file, where it names none."""
    if stated is None:
        return mapped
    metric = {each.metric: each.metric for each in stated.objectives}
    direction = tuple(each.direction for each in stated.objectives)
    return replace(mapped, metric=mapped.metric or metric, direction=mapped.direction or direction)


def _print_mapping(found: PastRuns, destination: Destination) -> None:
    measured = [f"{each.metric} ({each.direction})" for each in found.objectives]
    note(f"compared by {', '.join(measured)}")
    if found.resources:
        note(f"trained to {max(found.resources):g} {destination.unit.value} at most")
    how = "stated"
    if destination.task is None:
        how = "inferred from the runs; state it with --space if it was another"
    note(f"space, {how}:")
    for line in (*imported_study.lines(destination.space, found.runs), *found.notes):
        note(line)
