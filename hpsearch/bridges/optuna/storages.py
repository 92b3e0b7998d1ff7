"""Stock storages of Optuna, opened to be read: a database, or the file of a journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import create_engine, inspect
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from hpsearch.errors import UserError
from hpsearch.store.connecting.url import display
from trials.settings import nearest

if TYPE_CHECKING:
    import optuna

_TABLES = ("studies", "study_directions", "trial_params", "version_info")
"""Some tables of Optuna's databases that those of other programs have not."""


def is_storage(source: str) -> bool:
    """True for a URL, and for a journal of Optuna's: lines of JSON, an operation each."""
    if "://" in source:
        return True
    try:
        with Path(source).open(encoding="utf-8") as file:
            first = json.loads(file.readline(1_000_000))
    except (OSError, ValueError):
        return False
    return isinstance(first, dict) and "op_code" in first


def opened_study(source: str, name: str | None) -> tuple[optuna.study.Study, str]:
    """A study in a storage of Optuna's, and the storage as it may be shown.

    Args:
        source: A database URL, or the path of a journal.
        name: The study's name; None if it is the only one.

    Raises:
        UserError: There is no such storage or study.
    """
    import optuna

    storage, shown = _storage(source)
    names = optuna.get_all_study_names(storage)
    if not names:
        raise UserError(f"{shown} has no studies")
    if name is None and len(names) > 1:
        raise UserError(f"{shown} has {len(names)} studies", f"name one: {', '.join(names[:20])}")
    if name is not None and name not in names:
        raise UserError(f"{shown} has no study {name}; {nearest(name, names)}")
    return optuna.load_study(study_name=name or names[0], storage=storage), shown


def _storage(source: str) -> tuple[optuna.storages.BaseStorage, str]:
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend

    if "://" not in source:
        return JournalStorage(JournalFileBackend(source)), source
    try:
        url = make_url(source)
        shown = display(url)
    except ArgumentError:
        raise UserError(f"{source.partition('@')[0]} is not the URL of a database") from None
    _refuse_others(url, shown)
    try:
        return RDBStorage(source, skip_table_creation=True), shown
    except (RuntimeError, SQLAlchemyError) as error:
        what = f"Optuna cannot read {shown}: {error}"
        raise UserError(what, "an older database needs: optuna storage upgrade") from None


def _refuse_others(url: URL, shown: str) -> None:
    """Refuse a database that Optuna did not make, which it would fill with its tables."""
    file = url.database
    if url.get_backend_name() == "sqlite" and (not file or not Path(file).is_file()):
        raise UserError(f"there is no database at {shown}", "check the path in the URL")
    try:
        engine = create_engine(url)
        names = inspect(engine).get_table_names()
        engine.dispose()
    except (SQLAlchemyError, ImportError) as error:
        first_line = str(error).partition("\n")[0]
        raise UserError(f"{shown} cannot be read: {first_line}") from None
    if not all(name in names for name in _TABLES):
        what = f"{shown} is not a database of Optuna's"
        if "attempts" in names:
            what += ": it is one of hpsearch, whose studies warm_start can name as they are"
        raise UserError(what)
