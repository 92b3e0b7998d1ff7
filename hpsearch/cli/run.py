"""run and resume: drive a study in this process, watched, until it ends or is interrupted."""

from __future__ import annotations

import os
import signal
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from hpsearch import wiring
from hpsearch.advice import advice
from hpsearch.cli.best import gained_by
from hpsearch.cli.enqueue import configurations
from hpsearch.cli.output import log_as_notes, note
from hpsearch.confirmation import CONFIRM
from hpsearch.driver import Driver
from hpsearch.errors import Interrupted, StudyExists, UserError
from hpsearch.executors.address import refuse_unreachable
from hpsearch.records import History, StudyState
from hpsearch.spec import Resources, StudySpec
from hpsearch.spec_edit import with_budget
from hpsearch.spec_file import load
from hpsearch.store.queries import find_study
from hpsearch.store.store import Store
from hpsearch.store.url import display, parse_url
from hpsearch.views.live import LiveView


def run(
    path: Path,
    storage: str,
    address: str | None,
    workers: int | str | None,
    checkpoints: str | None,
    enqueue: list[str],
    quiet: bool,
) -> None:
    """Create a study from its file and drive it.

    Raises:
        StudyExists: A study of that name is in the database; it is resumed by name instead.
        Interrupted: It was stopped by a signal or a request, with everything saved.
    """
    spec = load(path)
    known_good = configurations(enqueue, spec.space)
    folder = wiring.checkpoint_folder(spec, checkpoints)
    if address is not None:
        refuse_unreachable(address)
    with closing(Store.open(storage)) as store:
        if spec.study in store.study_names():
            wiring.refuse_if_held(store, spec.study)
            raise StudyExists(
                f"study {spec.study} is already in {store.display_url}",
                f"continue it with: hpsearch resume {spec.study}{_option(storage)} - or give the new one another name",
            )
        take_up = partial(wiring.create_study, store, spec, folder)
        _drive(store, spec, take_up, storage, address, _resources(spec, workers), folder, known_good, quiet)


def resume(
    name: str,
    storage: str,
    address: str | None,
    workers: int | str | None,
    checkpoints: str | None,
    enqueue: list[str],
    budget: Mapping[str, float | str],
    quiet: bool,
) -> None:
    """Continue a study from the database alone: one that was interrupted, or with more budget one that has ended.

    Args:
        budget: Limits that the study file is given in the place of its own.

    Raises:
        SpecError: The new budget is none.
        StudyNotFound: No study of that name is in the database.
        StudyHeld: Another driver owns it.
        Interrupted: It was stopped by a signal or a request, with everything saved.
    """
    with closing(Store.open(storage, create=False)) as store:
        wiring.refuse_if_held(store, name)
        history = store.load(name)
        if not history.study.spec:
            raise UserError(f"study {name} was made through Optuna and has no study file to resume from")
        if budget:
            history.study.spec = with_budget(history.study.spec, budget)
        spec = wiring.spec_of(history.study)
        if "trials" in budget:
            _refuse_fewer(spec, history)
        known_good = configurations(enqueue, spec.space)
        if known_good and not _has_room(spec, history):
            raise UserError(f"study {name} has tried all its {spec.budget.trials} trials, so nothing can be enqueued")
        folder = wiring.checkpoint_folder(spec, checkpoints or history.study.user_attrs.get(wiring.CHECKPOINTS))
        if history.study.state is StudyState.FINISHED and not budget and not enqueue:
            note(f"study {name} has ended already: {history.study.reason}")
            note(f"it goes on where it is given more, such as: hpsearch resume {name} --trials N{_option(storage)}")
            return
        _drive(store, spec, lambda: history, storage, address, _resources(spec, workers), folder, known_good, quiet)


def _drive(
    store: Store,
    spec: StudySpec,
    take_up: Callable[[], History],
    storage: str,
    address: str | None,
    resources: Resources,
    checkpoints: str,
    enqueue: list[dict[str, Any]],
    quiet: bool,
) -> None:
    log_as_notes()
    name = spec.study
    note(f"study {name} in {store.display_url}")
    for line in advice(spec):
        note(line)
    resume = f"hpsearch resume {name}{_option(storage)}"
    with LiveView(quiet=quiet) as view, _signals(resume) as on_driver:
        study = wiring.drive(
            store,
            spec,
            take_up,
            address=address,
            resources=resources,
            checkpoints=checkpoints,
            watch=view.watch,
            on_driver=on_driver,
            enqueue=enqueue,
        )
    if study.state is StudyState.INTERRUPTED:
        raise Interrupted(f"interrupted; everything is saved. Go on with: {resume}")
    if study.state is StudyState.FAILED:
        raise UserError(
            f"study {name} gave up: {study.reason}", f"see what happened with: hpsearch trials {name}{_option(storage)}"
        )
    note(f"study {name} has ended: {study.reason}")
    with store.reading() as connection:
        if (gained := gained_by(connection, find_study(connection, name))) is not None:
            note(gained)
    note(f"the best configurations: hpsearch best {name}{_option(storage)}")


def _refuse_fewer(spec: StudySpec, history: History) -> None:
    """Refuse a number of trials below that of those which have begun: they cannot be taken back."""
    begun = _searched(history)
    if spec.budget.trials is not None and spec.budget.trials < begun:
        raise UserError(
            f"study {spec.study} has begun {begun} trials already, more than --trials {spec.budget.trials}",
            f"give it more than {begun} for new ones, or leave --trials out",
        )


def _has_room(spec: StudySpec, history: History) -> bool:
    """Whether the study may try another configuration."""
    return spec.budget.trials is None or _searched(history) < spec.budget.trials


def _searched(history: History) -> int:
    """How many configurations have begun; repeats of one do not count."""
    return sum(trial.role != CONFIRM for trial in history.trials)


def _resources(spec: StudySpec, workers: int | str | None) -> Resources:
    """The study file's resources, with what --workers says about how many."""
    return spec.resources if workers is None else spec.resources.model_copy(update={"workers": workers})


def _option(storage: str) -> str:
    """The --storage option for a command that is suggested, where it needs one; without the password."""
    if storage in ("sqlite:///hpsearch.db", os.environ.get("HPSEARCH_STORAGE")):
        return ""
    return f" --storage {display(parse_url(storage))}"


@contextmanager
def _signals(resume: str) -> Iterator[Callable[[Driver], None]]:
    """Let Ctrl-C (or SIGTERM) stop the driver: the first one saves everything, the second one ends it at once."""
    driver: list[Driver] = []
    heard = 0

    def on_signal(number: int, frame: types.FrameType | None) -> None:
        nonlocal heard
        heard += 1
        if heard > 1 or not driver:
            raise KeyboardInterrupt
        driver[0].request_stop()
        os.write(2, b"\nstopping: workers save their state; once more to stop at once\n")

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield driver.append
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted at once, as of the last report. Go on with: {resume}") from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
