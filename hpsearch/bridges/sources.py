"""The program that a source belongs to, and its past runs or study file."""

from pathlib import Path

from hpsearch.bridges import tables
from hpsearch.bridges.optuna import script, storages
from hpsearch.bridges.past_runs import Mapped, PastRuns, Problems, settle
from hpsearch.bridges.wandb.translate import translate as translate_wandb
from hpsearch.errors import SpecError, UserError
from hpsearch.study_file.reading import parse

KINDS = "a .csv, .tsv or .parquet file, or the URL of an Optuna storage"


def past_runs(source: str, mapped: Mapped) -> PastRuns:
    """The past runs of a source. Raises UserError if they cannot be read, or something does not
    fit, and says where."""
    problems: Problems = {}
    suffix = Path(source).suffix.lower()
    if "://" in source:
        found = storages.read(source, mapped)
    elif suffix in tables.SUFFIXES:
        found = tables.read(source, mapped, problems)
    elif suffix in (".db", ".sqlite", ".sqlite3"):
        raise UserError(f"{source} is a database", f"name it by its URL: sqlite:///{source}")
    else:
        raise UserError(f"{source} is not a source that is known", f"give {KINDS}")
    settle(found, problems)
    return found


def translated(source: str, study: str | None, folder: Path) -> tuple[str, list[str]]:
    """The study file, in a folder, that a W&B sweep, or a script of Optuna with its arguments,
    becomes under the name of a study, and lines for a person.

    Raises:
        UserError: The source cannot be read, or has nothing to search.
        SpecError: It is YAML with mistakes.
    """
    words = script.words_of(source)
    if "://" in source:
        hint = "name the script; hpsearch import takes its trials"
        raise UserError(f"{source} holds trials, and not what they are of", hint)
    if words is not None:
        draft = script.translate(words, study, folder)
    else:
        draft = translate_wandb(source, study)
    text = draft.text()
    lines = list(draft.remarks)
    try:
        parse(text, base=folder)
    except SpecError as error:
        lines.append("it still needs a hand before it passes the check:")
        lines += [f"  {problem}" for problem in error.problems]
    return text, lines
