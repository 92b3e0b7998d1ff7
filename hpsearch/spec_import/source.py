"""Which program a file belongs to, and the study that it becomes."""

from __future__ import annotations

from pathlib import Path

from hpsearch.errors import UserError
from hpsearch.spec_import import optuna_code, wandb_sweep
from hpsearch.spec_import.draft import StudyDraft, yaml_document
from hpsearch.spec_import.python_code import Code
from hpsearch.study_file.text.yaml_source import text_of

KNOWN = "a sweep of W&B, or Python code of Optuna"


def draft_of(path: Path) -> StudyDraft:
    """The study that a file becomes.

    Raises:
        UserError: The file cannot be read, or is none of what is known.
        SpecError: It is YAML with mistakes.
    """
    text = text_of(path)
    if path.suffix == ".py":
        return _of_code(path, text)
    if path.suffix in (".yaml", ".yml", ".json"):
        return _of_yaml(path, text)
    raise UserError(f"{path} is not a .yaml or .py file", f"name {KNOWN}")


def _of_code(path: Path, text: str) -> StudyDraft:
    try:
        code = Code(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        place = path.name if line is None else f"{path.name}:{line}"
        raise UserError(f"{place} is not Python: {getattr(error, 'msg', error)}") from None
    found = optuna_code.draft(code, path.stem)
    if found is None:
        what = f"{path} does not call suggest_float or the like"
        raise UserError(what, "name the file with the objective in it")
    return found


def _of_yaml(path: Path, text: str) -> StudyDraft:
    document, lines = yaml_document(text, path.name)
    if "parameters" in document:
        return wandb_sweep.draft(document, lines)
    if "study" in document:
        raise UserError(f"{path} is a study file already", f"check it with: hpsearch check {path}")
    what = f"{path} has no parameters, as a sweep of W&B has"
    raise UserError(what, f"name {KNOWN}")
