"""Options of sbatch, read as sbatch reads them: in full, abbreviated, or a letter."""

from collections.abc import Sequence
from dataclasses import dataclass

from hpsearch.errors import UserError

_WITH_VALUE = """
account=A acctg-freq array=a batch bb bbf begin=b chdir=D cluster-constraint clusters=M comment
constraint=C container container-id core-spec=S cores-per-socket cpu-freq cpus-per-gpu
cpus-per-task=c deadline delay-boot dependency=d distribution=m error=e exclude=x export export-file
extra extra-node-info=B gid gpu-bind gpu-freq gpus=G gpus-per-node gpus-per-socket gpus-per-task
gres gres-flags hint input=i job-name=J licenses=L mail-type mail-user mcs-label mem mem-bind
mem-per-cpu mem-per-gpu mincpus network nodefile=F nodelist=w nodes=N ntasks=n ntasks-per-core
ntasks-per-gpu ntasks-per-node ntasks-per-socket open-mode output=o partition=p power prefer
priority profile qos=q reservation segment signal sockets-per-node switches tasks-per-node
thread-spec threads-per-core time=t time-min tmp tres-bind tres-per-task uid wait-all-nodes wckey
wrap
"""
_ALONE = """
contiguous exclusive get-user-env help=h hold=H ignore-pbs nice no-kill=k no-requeue overcommit=O
oversubscribe=s parsable propagate quiet=Q reboot requeue spread-job stepmgr test-only usage
use-min-nodes verbose=v version=V wait=W
"""
"""The options without a value, or with one only behind ``=``."""
_REFUSED = {
    "address": "send it to a Ray cluster with: ray job submit (docs/cluster.md)",
    "clusters": "name the cluster for all commands of SLURM: export SLURM_CLUSTERS=NAME",
    "help": "see: hpsearch submit --help, and sbatch --help",
    "test-only": "--dry-run prints the script and the calls of sbatch",
    "usage": "see: hpsearch submit --help, and sbatch --help",
    "version": "see: sbatch --version",
    "wait": "follow the study with: hpsearch status NAME --watch",
    "wrap": "lines to run before the study go into a file: --prelude FILE",
}


_PAIRS = [word.partition("=")[::2] for word in (_WITH_VALUE + _ALONE).split()]
_LETTERS = {letter: name for name, letter in _PAIRS if letter}
_KNOWN = {name for name, _ in _PAIRS}
_VALUED = {word.partition("=")[0] for word in _WITH_VALUE.split()}


@dataclass(frozen=True)
class SbatchOption:
    """An option with its name in full, its value if it has one, and the words that give it."""

    name: str
    value: str | None
    words: tuple[str, ...]


def read_options(words: Sequence[str]) -> list[SbatchOption]:
    """The options in the words of a command line. Raises UserError for what sbatch would take for
    something else than an option, and for options that a study cannot have."""
    found = []
    left = list(words)
    while left:
        word = left.pop(0)
        name, value = _split(word)
        if not word.startswith("--") and value and name in _KNOWN - _VALUED and name != "no-kill":
            left.insert(0, f"-{value}")  # several letters together
            word, value = word[:2], None
        given = [word]
        if value is None and name in _VALUED:
            if not left:
                raise UserError(f"{word} needs a value", f"for example: --{name}=VALUE")
            value = left.pop(0)
            given.append(value)
        if name in _REFUSED:
            raise UserError(f"a study is not submitted with --{name}", _REFUSED[name])
        found.append(SbatchOption(name, value, tuple(given)))
    return found


def _split(word: str) -> tuple[str, str | None]:
    """The name in full of the option that a word begins, and the value in the same word."""
    if word.startswith("--") and len(word) > 2:
        start, equals, value = word[2:].partition("=")
        return _in_full(start), value if equals else None
    if word.startswith("-") and word[1:2] in _LETTERS:
        return _LETTERS[word[1]], word[2:] or None
    raise UserError(
        f"'{word}' is not an option of sbatch",
        "a value with spaces goes in quotes, and one that may be left out behind =, as in "
        "--exclusive=user",
    )


def _in_full(start: str) -> str:
    if start in _KNOWN:
        return start
    names = sorted(name for name in _KNOWN if name.startswith(start))
    if len(names) > 1:
        listed = ", ".join(f"--{name}" for name in names)
        raise UserError(f"--{start} may be each of {listed}", "write the option out in full")
    return names[0] if names else start  # a plug-in of SLURM may have it
