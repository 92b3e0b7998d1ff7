"""A change of a command's code, as it comes from others: made plain, or refused."""

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from hpsearch.domain.records import Revision, kept_before
from hpsearch.errors import UserError
from hpsearch.running.creation.seal import seal_of
from hpsearch.running.creation.study import spec_of
from hpsearch.running.study_run.versions import refuse_changed
from hpsearch.store.store import Store
from hpsearch.study_file.models import StudySpec
from trials.contract import ProgramFailed
from trials.descriptions.command import harness_of
from trials.descriptions.command_line import SEED, CommandLine
from trials.tasks.command.checkout import apply, digests, extract, git, root_of

MOST_BYTES = 1 << 20
_NO_FILES = ("120000", "160000")  # the modes of git for links and submodules


def revision_of_study(
    store: Store, name: str, why: str, *, patch: str | None = None, commit: str = "HEAD"
) -> dict[str, Any]:
    """As `revision_content`, of a study in a database. Also raises UserError if its code is not
    that of its version."""
    history = store.load(name)
    spec = spec_of(history.study)
    refuse_changed(store, history, seal_of(spec))
    return revision_content(spec, history.revisions, why, patch=patch, commit=commit)


def revision_content(
    spec: StudySpec,
    before: Sequence[Revision],
    why: str,
    *,
    patch: str | None = None,
    commit: str = "HEAD",
) -> dict[str, Any]:
    """The content of the request that asks for the test of a change: a patch on the base, or else
    what a commit has that the base has not. The base is the commit that is checked out, with what
    was kept on it `before`. Raises UserError if the study cannot test any, or the change does not
    apply or reaches for the harness."""
    harness, begin = _harness(spec), None
    try:
        root = root_of(spec.base)
        begin = _head(root, spec.base)
        kept = [each.patch for each in kept_before(before, begin)]
        with tempfile.TemporaryDirectory(prefix="hpsearch-") as made:
            tree = Path(made, "code")
            extract(root, begin, tree)
            git(tree, "init", "--quiet")
            for each in kept:
                apply(tree, each)
            base = _written(tree)
            if patch is None:
                git(tree, "rm", "-r", "--force", "--quiet", "--ignore-unmatch", ".")
                extract(root, commit, tree)
            else:
                apply(tree, patch if patch.endswith("\n") else f"{patch}\n")
            compared = ("diff-tree", "-r", "--no-renames", "--full-index", base, _written(tree))
            text = git(tree, *compared, "--patch", "--binary")
            found = git(tree, *compared, "--raw", "-z")
        problem = next(_problems(text, found, spec, root, harness), None)
    except ProgramFailed as error:
        problem = str(error)
    if problem is not None:
        hint = None if begin else f"commit the code to a git repository in {spec.base}"
        raise UserError(f"the change is not tested: {problem}", hint)
    return {"why": why, "commit": begin, "patch": text, "harness": digests(spec.base, harness)}


def _harness(spec: StudySpec) -> list[str]:
    task = spec.task
    if task["kind"] != "command" or "measure" not in task:
        what = "changed code would measure itself: the study has no measure"
        example = "task: {run: python train.py --out {folder}, measure: python measure.py {folder}}"
        raise UserError(what, f"as in {example} of a command (docs/revisions.md)")
    if len(spec.objectives) > 1:
        raise UserError("a change is tested by one objective, and the study has several")
    if SEED not in CommandLine(task["run"]).names:
        raise UserError("runs are compared seed by seed", "pass {seed} to the program in task.run")
    return harness_of(task, spec.base)


def _head(root: Path, folder: Path) -> str:
    changed = git(folder, "status", "--porcelain", "--untracked-files=no", ".").splitlines()
    if changed:
        raise ProgramFailed(f"{changed[0][3:]} is not committed, so the base is no commit")
    return git(root, "rev-parse", "HEAD").strip()


def _written(tree: Path) -> str:
    git(tree, "add", "--all", "--force", ".")
    return git(tree, "write-tree").strip()


def _problems(
    text: str, found: str, spec: StudySpec, root: Path, harness: Sequence[str]
) -> Iterator[str]:
    """What is wrong with a patch, by its text and by what `git diff-tree --raw -z` says of it."""
    folder = spec.base.resolve().relative_to(root)
    facts = found.split("\0")[:-1]
    if not facts:
        yield "it is empty"
    if len(text.encode()) > MOST_BYTES:
        yield f"it is larger than {MOST_BYTES >> 20} MiB"
    for modes, name in zip(facts[::2], facts[1::2], strict=True):
        path = PurePosixPath(name)
        if not path.is_relative_to(folder):
            yield f"{name} is outside of {folder}"
        elif any(path.is_relative_to(folder / each) for each in harness):
            yield f"{name} belongs to the harness, which measures it"
        if modes.split()[1] in _NO_FILES:
            yield f"{name} is a link"
    place = spec.task.get("cwd", ".")
    names = {*harness, *(os.path.relpath(each, place) for each in harness)}
    for line in text.splitlines():
        is_added = line.startswith("+") and not line.startswith("+++ ")
        named = [name for name in names if is_added and _named_in(name, line)]
        if named:
            yield f"it names {named[0]}, which belongs to the harness: {line[1:].strip()[:80]}"


def _named_in(name: str, line: str) -> bool:
    """True if a line names a path: a word alone, such as `data`, only as part of one, or as a
    whole text."""
    around = (r"(?<![\w.-])", r"(?![\w-])") if set("/.") & set(name) else ("[\"'/]", "[\"'/]")
    return re.search(re.escape(name).join(around), line) is not None
