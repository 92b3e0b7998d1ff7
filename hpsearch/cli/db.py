"""The commands of `hpsearch db`: `upgrade`, `check`, `backup` and `tidy`."""

import shlex
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from pydantic_core import PydanticCustomError
from sqlalchemy import URL

from hpsearch.cli.output import note, whole_file
from hpsearch.domain.numbers import count, duration, moment, size
from hpsearch.errors import StudyHeld, UserError
from hpsearch.store import schema
from hpsearch.store.audit.checkpoints import unusable
from hpsearch.store.audit.invariants import Violation, violations
from hpsearch.store.connecting.url import file_of, parse_url, refuse_in_memory
from hpsearch.store.reading.queries import find_study, study_heads
from hpsearch.store.store import Store, upgrade
from hpsearch.store.upkeep import backup, shrinking, thinning
from hpsearch.study_file.types import seconds_of

_OF_A_COPY = (
    "results are read from it as before, and its trials go on from what is left, or begin anew"
)


def upgrade_database(storage: str) -> None:
    """Bring the database to this program's schema version; create the tables if it is empty."""
    before = upgrade(storage)
    if before is None:
        note(f"created the tables of schema {schema.VERSION}")
    elif before == schema.VERSION:
        note(f"the database is already at schema {schema.VERSION}")
    else:
        note(f"upgraded the database from schema {before} to {schema.VERSION}")


def check_database(name: str | None, storage: str) -> None:
    """Check the tables of one study or of all, and the checkpoints that they name. Raises UserError
    with all problems that were found."""
    with closing(Store.open(storage, create=False)) as store:
        if store.caution is not None:
            note(store.caution)
        with store.reading() as connection:
            study_id = None if name is None else find_study(connection, name).id
            found = violations(connection, study_id)
            copied = backup.unchanged_since_copied(connection)
        gone = unusable(store, name)
    for study, at in copied.items():
        trials = sum(each.study == study for each in gone)
        if trials:
            named = f"checkpoints that {count(trials, 'trial')} of {study} named"
            note(f"{named} have gone since this copy was made, {moment(at)}: {_OF_A_COPY}")
    found += [each for each in gone if each.study not in copied]
    _refuse_problems(found)
    note("no problems found")


def _refuse_problems(found: Sequence[Violation]) -> None:
    if found:
        problems = "".join(f"\n  {each}" for each in found)
        raise UserError(f"{count(len(found), 'problem')} found:{problems}")


def backup_database(to: Path, storage: str) -> None:
    """Copy an SQLite database to a new file, and check the copy. Studies may run meanwhile."""
    began = time.monotonic()
    url = parse_url(storage)
    refuse_in_memory(url)
    if file_of(url) is None:
        raise UserError("PostgreSQL makes backups itself, while studies run", _pg_dump(url, to))
    if to.exists():
        raise UserError(f"{to} already exists", "choose another name")
    with whole_file(to) as unfinished:
        unfinished.unlink(missing_ok=True)
        copied = backup.copy(url, unfinished)
    took = duration(time.monotonic() - began)
    note(f"copied the database to {to}: {size(to.stat().st_size)} in {took}")
    for study in copied.running:
        note(f"study {study} goes on, and removes checkpoints that the copy names: {_OF_A_COPY}")
    _refuse_problems(copied.violations)
    note("no problems found in the copy")


def _pg_dump(url: URL, to: Path) -> str:
    """The command that copies a database of PostgreSQL; it asks for the password, or finds it."""
    plain = url._replace(drivername="postgresql", password=None).render_as_string()
    return f"pg_dump --format=custom --file={shlex.quote(str(to))} {shlex.quote(plain)}"


def tidy_database(storage: str, older_than: str | None, *, dry_run: bool) -> None:
    """Give the unused space of a database back, after thinning the reports of old studies if an age
    is given."""
    try:
        age_s = None if older_than is None else seconds_of(older_than)
    except PydanticCustomError as error:
        raise UserError(f"--older-than: {error.message()}", "for example: 90d") from None
    with closing(Store.open(storage, create=False)) as store:
        if age_s is not None:
            _thin(store, time.time() - age_s, dry_run=dry_run)
        with store.reading() as connection:
            driven = [study.name for study in study_heads(connection) if study.driver is not None]
    url = parse_url(storage)
    file = file_of(url)
    if file is None:
        note("PostgreSQL uses the space of what is gone again by itself")
    elif dry_run or driven:
        unused = size(shrinking.unused(url))
        note(f"{file}: {size(file.stat().st_size)}, of which {unused} are unused")
        if driven:
            note(f"it keeps its size while somebody works on {driven[0]}: new rows fill the space")
    else:
        before = size(file.stat().st_size)
        shrinking.shrink(url)
        left = shrinking.cut_log(url, file)
        if left is not None:
            kept = f"{file}-wal keeps {size(left)} while a program reads for long"
            note(f"{kept}; see which: fuser {file}")
        note(f"{file}: {size(file.stat().st_size)}, {before} before")


def _thin(store: Store, moment: float, *, dry_run: bool) -> None:
    with store.reading() as connection:
        studies = thinning.finished_before(connection, moment)
    for study in studies:
        planned = thinning.thinning_of(store, study)
        what = f"{planned.going} of {count(planned.before, 'report')}"
        if dry_run:
            note(f"{study.name}: {what} would go")
            continue
        try:
            thinning.thin(store, planned)
        except StudyHeld as held:
            note(held.message)
        else:
            note(f"{study.name}: removed {what}")
    if not studies:
        note("no study finished that long ago")
