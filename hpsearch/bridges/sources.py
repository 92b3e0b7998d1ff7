"""Which program a source belongs to, and what its folder makes of it."""

from __future__ import annotations

from pathlib import Path

from hpsearch.bridges.optuna.read import is_storage
from hpsearch.bridges.optuna.read import read as read_optuna
from hpsearch.bridges.optuna.translate import translate as translate_optuna
from hpsearch.bridges.past_runs import Mapped, Misfits, PastRuns, settle
from hpsearch.bridges.ray_tune.read import is_experiment
from hpsearch.bridges.ray_tune.read import read as read_ray_tune
from hpsearch.bridges.tables.read import SUFFIXES
from hpsearch.bridges.tables.read import read as read_table
from hpsearch.bridges.wandb.translate import translate as translate_wandb
from hpsearch.errors import SpecError, UserError
from hpsearch.study_file.reading import parse

KINDS = "a .csv, .tsv or .parquet file, a folder of Ray Tune, or the URL of an Optuna storage"


def past_runs(source: str, mapped: Mapped, misfits: Misfits) -> PastRuns:
    """The past runs of a source. Raises UserError if they cannot be read, or something does not
    fit, and says where."""
    path = Path(source)
    suffix = path.suffix.lower()
    if is_storage(source):
        found = read_optuna(source, mapped, misfits)
    elif mapped.study is not None:
        raise UserError("--study is for a storage of Optuna's", "leave it out")
    elif suffix in SUFFIXES:
        found = read_table(source, mapped, misfits)
    elif path.is_dir() and is_experiment(path):
        found = read_ray_tune(source, mapped, misfits)
    else:
        raise _unknown(source, path)
    settle(found, misfits)
    return found


def _unknown(source: str, path: Path) -> UserError:
    if not path.exists():
        return UserError(f"{source}: there is nothing of this name", f"give {KINDS}")
    if path.is_dir():
        what = f"{source} has no folders of trials (params.json)"
        return UserError(what, "name the folder of the experiment itself")
    if path.suffix.lower() in (".db", ".sqlite", ".sqlite3"):
        return UserError(f"{source} is a database", f"name it by its URL: sqlite:///{source}")
    return UserError(f"{source} is not a source that is known", f"give {KINDS}")


def translated(source: str, study: str | None) -> tuple[str, list[str]]:
    """The study file that a W&B sweep or a study of Optuna's becomes, and lines for a person. The
    name is that of the study; for a storage, that of a study in it.

    Raises:
        UserError: The source cannot be read, or has nothing to search.
        SpecError: It is YAML with mistakes.
    """
    is_optuna = is_storage(source)
    draft = translate_optuna(source, study) if is_optuna else translate_wandb(source, study)
    text = draft.text()
    lines = [str(remark) for remark in draft.remarks]
    try:
        parse(text, base=Path())
    except SpecError as error:
        lines.append("it still needs a hand before it passes the check:")
        lines += [f"  {problem}" for problem in error.problems]
    return text, lines
