"""Changed code in a folder of its own, without the harness: what measures it, and what only that
may read.

A checkout has the files of a commit with patches on them. What git does not track, such as data, is
linked. Where the system has user namespaces (`unshare`), its processes can only read the original,
and see the harness and the history of git as empty.
"""

import hashlib
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from trials.contract import Code, ProgramFailed

CHUNK_BYTES = 1 << 20
PATIENCE_S = 900.0
"""The time that git may take, or what measures a trial."""

_CONFINE = """
set -e
home=$1 root=$2; shift 2
mount --bind "$home" "$home"
mount --rbind "$root" "$root"
mount -o remount,bind,ro "$root"
while [ "$1" != -- ]; do
  if [ -d "$1" ]; then mount -t tmpfs -o ro none "$1"; else mount --bind /dev/null "$1"; fi
  shift
done
shift
cd "$PWD"
exec unshare --user --mount "$@"
"""
"""Run by a shell in a mount namespace. The second one, within, cannot undo the mounts."""


def ended(
    words: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    given: str = "",
    patience_s: float = PATIENCE_S,
) -> subprocess.CompletedProcess[bytes]:
    """A short program that has ended. Raises ProgramFailed if it cannot start, or takes long."""
    try:
        return subprocess.run(  # noqa: S603 - what the study states, or fixed words
            words,
            cwd=folder,
            env=environment,
            input=given.encode(),
            capture_output=True,
            check=False,
            timeout=patience_s,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProgramFailed(f"{words[0]} cannot be asked: {error}") from error


def said(output: bytes) -> list[str]:
    """The lines that a program has printed; one that says so if there are none."""
    return output.decode(errors="replace").strip().splitlines() or ["it has printed nothing"]


def git(
    folder: Path, *words: str, given: str = "", patience_s: float = PATIENCE_S, **variables: str
) -> str:
    """What git prints in a folder. Raises ProgramFailed with what it says where it fails."""
    command = ["git", "-c", "core.autocrlf=false", "-c", "core.quotepath=false", *words]
    done = ended(command, folder, {**os.environ, **variables}, given, patience_s)
    if done.returncode:
        raise ProgramFailed(f"git {words[0]}: {said(done.stderr)[0]}")
    try:
        return done.stdout.decode()
    except UnicodeDecodeError as error:
        raise ProgramFailed(f"git {words[0]} prints what is no text: {error}") from error


def root_of(folder: Path) -> Path:
    """The folder of the work tree that a folder is in. Raises ProgramFailed if it is in none."""
    return Path(git(folder, "rev-parse", "--show-toplevel").rstrip("\n"))


def extract(root: Path, commit: str, to: Path, without: Iterable[str] = ()) -> None:
    """Write the files of a commit into a new or empty folder, and nothing into the repository."""
    to.mkdir(exist_ok=True)
    index = str(to.with_name(f"{to.name}.index"))
    git(root, "read-tree", commit, GIT_INDEX_FILE=index)
    for path in without:
        words = ("rm", "-r", "--cached", "--force", "--quiet", "--ignore-unmatch", path)
        git(root, *words, GIT_INDEX_FILE=index)
    git(root, "checkout-index", "--all", f"--prefix={to}/", GIT_INDEX_FILE=index)


def apply(tree: Path, patch: str) -> None:
    """Apply a patch in a folder that is no work tree. Raises ProgramFailed if it does not apply."""
    above = str(tree.parent)
    git(tree, "apply", "--whitespace=nowarn", "-", given=patch, GIT_CEILING_DIRECTORIES=above)


def digests(folder: Path, names: Iterable[str | Path], *wholes: "hashlib._Hash") -> dict[str, str]:
    """The SHA-256 of files, and of all files in folders, by their paths from a folder; those that
    are not there are left out. `wholes` go on with all that is read."""
    found: dict[str, str] = {}
    for name in names:
        place = folder / name
        files = [each for each in (place, *sorted(place.rglob("*"))) if each.is_file()]
        for path in files:
            alone = hashlib.sha256()
            with path.open("rb") as file:
                while chunk := file.read(CHUNK_BYTES):
                    for each in (alone, *wholes):
                        each.update(chunk)
            found[os.path.relpath(path, folder)] = alone.hexdigest()
    return found


def check_out(code: Code, folder: Path, harness: Iterable[str], home: Path) -> Path:
    """Make a checkout for the folder of a study file, below `home`, and return what that folder is
    in it."""
    root, tree = root_of(folder), home / "code"
    named = [folder.resolve() / name for name in harness]
    extract(root, code.commit, tree, [os.path.relpath(path, root) for path in named])
    try:
        for patch in code.patches:
            apply(tree, patch)
    except ProgramFailed as error:
        raise ProgramFailed(f"it does not apply to its base as that is by now: {error}") from None
    resolved = [path.resolve() for path in named]
    names = git(root, "ls-tree", "-r", "-z", "--name-only", code.commit).split("\0")
    tracked = (root / name for name in names if name)
    _link(root, tree, {*named, *resolved, *tracked, root / ".git", home.parent.parent})
    return tree / folder.resolve().relative_to(root)


def _link(original: Path, copy: Path, hidden: set[Path]) -> None:
    """Link what is in a folder but for what is hidden, or stands in its copy already."""
    above = {folder for path in hidden for folder in path.parents}
    ahead = [(original, copy)]
    while ahead:
        original, copy = ahead.pop()
        for each in original.iterdir():
            there = copy / each.name
            if each in hidden or (os.path.lexists(there) and not there.is_dir()):
                continue
            if each not in above and not there.exists():
                there.symlink_to(each)
            elif each.is_dir() and not each.is_symlink():
                there.mkdir(exist_ok=True)
                ahead.append((each, there))


def confined(words: Sequence[str], folder: Path, harness: Iterable[str], home: Path) -> list[str]:
    """A command that only sees what belongs to its checkout below `home`; the command itself where
    this system has no namespaces for that."""
    root = root_of(folder)
    history = Path(git(folder, "rev-parse", "--path-format=absolute", "--git-common-dir").strip())
    hidden = [str((folder / name).resolve()) for name in harness]
    places = [str(home), str(root), *hidden, str(history), "--"]
    places += [f"--map-user={os.getuid()}", f"--map-group={os.getgid()}"]
    begin = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _CONFINE, "sh", *places]
    works = False
    with suppress(ProgramFailed):
        works = ended([*begin, "true"], home, os.environ).returncode == 0
    return [*begin, *words] if works else list(words)
