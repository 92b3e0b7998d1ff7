"""The versions of a study: with which code, data and study file its trials were trained.

A version goes on while all that it is sealed with stays as it is (`creation.seal`). Code or data
that have changed begin the next one, once somebody says that they mean it. A trial is of the
version that its latest attempt ran: one that waited goes on from its checkpoint.
"""

from collections.abc import Sequence
from pathlib import Path

from hpsearch.domain.history import History
from hpsearch.domain.records import Environment, Version
from hpsearch.errors import UserError
from hpsearch.running.creation.seal import Seal, differing
from hpsearch.running.creation.study import revision_of
from hpsearch.store.owners import person
from hpsearch.store.reading.attempts import environments_of
from hpsearch.store.reading.queries import find_study
from hpsearch.store.store import Store
from trials.settings import some


def changed_files(
    versions: Sequence[Version], sessions: Sequence[Environment], seal: Seal | None
) -> list[str]:
    """The files that are not as in the newest version of a study; one without any was begun by an
    older hpsearch, and its latest session tells."""
    if seal is None:
        return []
    if versions:
        return differing(versions[-1].files, seal.binding)
    return differing((sessions[-1].files if sessions else None) or {}, seal.binding)


def sessions_of(store: Store, name: str) -> list[Environment]:
    with store.reading() as connection:
        return environments_of(connection, find_study(connection, name))


def refuse_changed(store: Store, history: History, seal: Seal) -> None:
    """Raise UserError if a study's code or data have changed."""
    files = changed_files(history.versions, sessions_of(store, history.study.name), seal)
    if files:
        name, verb = history.study.name, "differs" if len(files) == 1 else "differ"
        now = f"version {history.version} of {name}, so trials would not compare"
        following = f"hpsearch resume {name} --changed begins version {history.version + 1}"
        raise UserError(f"{some(files)} {verb} from {now}", f"put it back, or: {following}")


def begin_due(
    history: History,
    sessions: Sequence[Environment],
    seal: Seal | None,
    now: float,
    changes: Sequence[str] = (),
) -> list[str]:
    """Begin the first version of a study, or the next one where its code or data have changed, or
    what `changes` names. A study without a seal says by itself that its code has changed. Returns
    what is not as in the version before, in phrases."""
    files = changed_files(history.versions, sessions, seal)
    verb = "has" if len(files) == 1 else "have"
    found = [*changes, *([f"{some(files)} {verb} changed"] if files else [])]
    study, bound = history.study, {} if seal is None else dict(seal.binding)
    revision = revision_of(Path(study.base)) if study.base else None
    if not history.versions:
        first = (sessions[-1].files if sessions and found else None) or bound
        was = sessions[-1].revision if sessions and found else revision
        history.add_version(Version(1, study.created, person(), [], study.spec, was, False, first))
    if found:
        number = history.version + 1
        is_other = bool(files) or seal is None
        new = Version(number, now, person(), found, study.spec, revision, is_other, bound)
        history.add_version(new)
    return found
