"""Studies of the programs in a folder that a person grants to agents; hpsearch trains them.

Whoever may start the programs of a folder may run what is in it. So a study names nothing outside;
what a program makes of its arguments is its own.
"""

import os
import re
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Any

from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyState
from hpsearch.errors import StudyExists, UserError
from hpsearch.running import loading
from hpsearch.running.study_run.ownership import release_if_dead
from hpsearch.store import owners
from hpsearch.store.connecting.url import file_of, parse_url
from hpsearch.store.store import Store
from hpsearch.store.study_texts import content_of
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse

DRIVER = (sys.executable, "-Pc", "from hpsearch.cli.main import main; main()", "resume", "--quiet")
INTERPRETERS = ("python", "python3", sys.executable, "sh", "bash", "Rscript", "julia")
HINT = "name programs and data of the folder, as in run: python train.py, or run: ./train.sh"
WAIT_S = 30.0  # in which most mistakes of a driver show
_BETWEEN = re.compile(r"[\s=:,;'\"(\[<>|@+&]+|\{\{|^-\w+")  # the parts of a text that may be paths
_JOINED = re.compile(r"[^=]\{|\}.")  # in a word: a placeholder with more beside it than --flag=
_PLAIN = re.compile(r"\w(.*\w)?", re.DOTALL)  # what makes no path of . and /, or nothing and /
_NO_PATHS = ("kind", "run", "measure", "report", "resource")


def read_in(folder: Path, spec: StudySpec) -> StudySpec:
    """A study file as one of a folder, an absolute path without links. Raises UserError if it names
    what is outside, and SpecError with the mistakes in its task."""
    task, content = spec.task, content_of(spec.text)
    lines = [task[key].replace("\\\n", " ") for key in ("run", "measure") if key in task]
    named = [each for key, each in task.items() if key not in _NO_PATHS]
    named += [content.get(key) for key in ("settings", "space", "enqueue", "checkpoints")]
    values = [*spec.settings.values(), *(getattr(p, "choices", ()) for p in spec.space.values())]
    work = folder / task.get("cwd", ".")
    is_function = ":" in task["kind"]
    if is_function:
        lines.append(f"./{task['kind'].partition(':')[0].replace('.', '/')}.py")
    for words in map(shlex.split, lines):
        is_script = words[0] in INTERPRETERS  # another bare word is not looked for in the folder
        program, *others = words[is_script:] or [""]
        if not (is_script or "/" in program) or not (work / program).is_file():
            raise UserError(f"{program!r} is no program of {folder}", HINT)
        named += [program, others]
        loose = [each for each in _texts(values) if not _PLAIN.fullmatch(each)]
        if loose and any(_JOINED.search(each.replace("{folder}", "")) for each in words):
            raise UserError(f"{loose[0]!r} may lead out of {folder} as part of a word", HINT)
    for text in _texts(named):
        for part in (text, *_BETWEEN.split(text)):
            places = [(place / part).resolve() for place in (folder, work)]
            is_within = all(each.is_relative_to(folder) for each in places)
            if part.startswith(("~", "$")) or not is_within:
                raise UserError(f"{part} leads out of {folder}, which is granted", HINT)
    if task.get("trust_remote_code"):
        raise UserError("trust_remote_code runs what is not in the granted folder")
    inspect = None if is_function else loading.inspect  # which would import it here
    return parse(spec.text, base=folder, name="spec", inspect=inspect)


def drive(store: Store, url: str, spec: StudySpec) -> str:
    """Let a driver, which outlives this process, go on with a study, and return what is told of it.
    Raises StudyExists if the study is another one, and UserError if its driver ends in error."""
    name, record = spec.study, store.find_study(spec.study)
    if (record.base, record.spec) != (str(spec.base), spec.text):
        raise StudyExists(f"study {name} has another study file or another folder", "rename it")
    if _is_driven(store, name):
        return "its driver goes on"
    release_if_dead(store, name)
    is_idle = all(each.state is not State.RUNNING for each in store.load(name).trials)
    beside = file_of(parse_url(url)) or spec.base / "hpsearch"
    log = beside.with_name(f"{beside.name}.{name}.log").absolute()
    given: dict[str, Any] = {"env": {**os.environ, "HPSEARCH_STORAGE": url}, "stdin": DEVNULL}
    with log.open("ab") as output:
        flock(output, LOCK_SH)  # until the driver has ended
        # All of its budget counts from now on, unless its driver does nothing.
        record.state, record.reason, record.ended = StudyState.RUNNING, None, None
        store.commit(record.id, Changes(study=record))
        driver = Popen(  # noqa: S603 - fixed words, and the name of a study
            [*DRIVER, name], stdout=output, stderr=output, start_new_session=True, **given
        )
    until = time.monotonic() + WAIT_S
    while driver.poll() is None and time.monotonic() < until and not _is_driven(store, name):
        time.sleep(0.2)
    if driver.returncode:
        with log.open("ab") as output, suppress(BlockingIOError):
            flock(output, LOCK_EX | LOCK_NB)  # unless another one is about to begin
            if is_idle and store.find_study(name) == record:
                record.state, record.ended = StudyState.INTERRUPTED, time.time()
                store.commit(record.id, Changes(study=record))
        end = "\n".join(log.read_text(errors="replace").splitlines()[-5:])
        raise UserError(f"its driver ended:\n{end}", f"its log is {log}")
    return f"a driver trains it: read status; its log is {log}"


def _is_driven(store: Store, name: str) -> bool:
    lease = store.holder(name)
    return lease is not None and lease.live and not owners.is_dead(lease.owner)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        parts = [*value, *value.values()] if isinstance(value, dict) else value
        for each in parts:
            yield from _texts(each)
