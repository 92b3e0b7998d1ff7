"""What studies come from: past runs of other programs, and their searches as study files."""

from pathlib import Path

from hpsearch.domain.plugins.door import named, offers_of, taking
from hpsearch.domain.plugins.offers import SourcePlugin
from hpsearch.errors import SpecError, UserError
from hpsearch.running.creation.past_runs import Mapped, PastRuns, Problems, finish
from hpsearch.study_file.reading import parse
from hpsearch.study_file.starters.draft import StudyDraft


def source_of(source: str, use: str) -> SourcePlugin:
    """The plugin of a source, for `runs`, `draft` or `copy`. Raises UserError without one."""
    able = [each for each in offers_of(SourcePlugin).values() if getattr(each, use)]
    plugin = taking(source, able)
    if plugin is not None:
        return plugin
    if Path(source).suffix.lower() in (".db", ".sqlite", ".sqlite3"):
        raise UserError(f"{source} is a database", f"name it by its URL: sqlite:///{source}")
    known = " or ".join(each.what for each in able)
    known += ", or a shell's script with loops; a command goes to --command" * (use == "draft")
    raise UserError(f"{source} is not a source that is known", f"give {known}")


def past_runs(source: str, mapped: Mapped) -> PastRuns:
    """The past runs of a source. Raises UserError, which says where something does not fit."""
    problems: Problems = {}
    found: PastRuns = named(source_of(source, "runs").runs)(source, mapped, problems)
    finish(found, problems)
    return found


def translated(source: str, study: str | None, folder: Path) -> tuple[str, list[str]]:
    """The study file, in a folder, that the search of another program becomes under the name of a
    study, and lines for a person. Raises UserError if there is nothing to search."""
    if "://" in source:
        hint = "name the script; hpsearch import takes its trials"
        raise UserError(f"{source} holds trials, and not what they are of", hint)
    draft: StudyDraft = named(source_of(source, "draft").draft)(source, study, folder)
    text = draft.text()
    lines = list(draft.remarks)
    try:
        parse(text, base=folder)
    except SpecError as error:
        lines.append("it still needs a hand before it passes the check:")
        lines += [f"  {problem}" for problem in error.problems]
    return text, lines
