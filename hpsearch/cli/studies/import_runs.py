"""`hpsearch import`: past runs of other programs as a study."""

import re
from collections import Counter
from contextlib import closing

from hpsearch.cli.options import RunColumns
from hpsearch.cli.output import note
from hpsearch.errors import StudyExists, UserError
from hpsearch.running.creation import past_runs, sources
from hpsearch.running.creation.past_runs import Mapped, PastRuns, pairs
from hpsearch.store.store import Store
from hpsearch.study_file.space import Space
from hpsearch.study_file.types import STUDY_NAME


def import_runs(
    source: str, name: str, columns: RunColumns, storage: str, *, dry_run: bool
) -> None:
    if not re.fullmatch(STUDY_NAME, name):
        raise UserError(f"--name {name}: use letters, digits, '.', '_' and '-', at most 100")
    mapped = Mapped(
        pairs("--params", columns.params or ()),
        pairs("--metric", columns.metric or ()),
        tuple(columns.direction or ()),
        columns.run,
        columns.state,
        columns.study,
    )
    found = sources.past_runs(source, mapped)
    space = past_runs.inferred(found.runs)
    states = Counter(run.state.value for run in found.runs)
    counts = ", ".join(f"{number} {state}" for state, number in states.items())
    runs = f"{len(found.runs)} runs ({counts})"
    note(f"{found.kind}: {runs} of {found.source}")
    _print_understood(found, space)
    if dry_run:
        note("nothing was written: --dry-run")
        return
    with closing(Store.open(storage)) as store:
        try:
            past_runs.write(store, found, name, space)
        except StudyExists as error:
            hint = f"choose another --name, or remove it: hpsearch rm {name}"
            raise StudyExists(error.message, hint) from error
    note(f"imported {runs} as study {name}")
    note(f"see the best: hpsearch best {name}")
    note(f"start a search from it: search: {{warm_start: [{name}]}} in the study file")


def _print_understood(found: PastRuns, space: Space) -> None:
    measured = [f"{each.metric} ({each.direction})" for each in found.objectives]
    note(f"compared by {', '.join(measured)}")
    if found.steps > 1:
        note(f"trained for {found.steps:g} steps at most")
    note("space, inferred from the runs:")
    for line in (*past_runs.lines(space, found.runs), *found.notes):
        note(line)
