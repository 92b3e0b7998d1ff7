"""`hpsearch run` and `hpsearch resume`: drive a study in this process until it ends."""

import shlex
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from hpsearch.brain.widening import refuse_unmeasured
from hpsearch.cli.launchers import launched_by, queued
from hpsearch.cli.options import BudgetLimits, RunOptions, worker_count
from hpsearch.cli.output import command, log_as_notes, note, submitted_by
from hpsearch.cli.results.best import print_result
from hpsearch.cli.studies.check import earlier_studies
from hpsearch.cli.studies.control import raise_budget
from hpsearch.domain.facts import CodeVerdict, RequestKind, Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.numbers import number as number_text
from hpsearch.domain.plugins.queued import refuse_queued
from hpsearch.domain.records import StudyRecord, StudyState
from hpsearch.errors import StudyExists, UserError
from hpsearch.running import loading
from hpsearch.running.checkpoint_folders import folder_of, folder_of_new
from hpsearch.running.creation.seal import seal_of
from hpsearch.running.creation.study import create_study, spec_of
from hpsearch.running.driver.loop import Driver, watched_by
from hpsearch.running.executors.cluster.address import refuse_unreachable
from hpsearch.running.study_run import on_ray, retries, versions
from hpsearch.running.study_run.ends import interruption_of
from hpsearch.running.study_run.file_changes import FileChanges, changes_between
from hpsearch.running.study_run.ownership import refuse_if_held
from hpsearch.running.study_run.signals import stopped_by_signals
from hpsearch.running.study_run.watching import prepared, watching
from hpsearch.running.study_run.workers import refuse_contradictions
from hpsearch.running.tracking.senders import install, missing, refuse_missing
from hpsearch.store.connecting.url import parse_url, refuse_in_memory
from hpsearch.store.reading.queries import find_study
from hpsearch.store.store import Store
from hpsearch.store.study_texts import content_of
from hpsearch.study_file.methods import refuse_unusable
from hpsearch.study_file.models import Resources, StudySpec
from hpsearch.study_file.reading import advice, load, origin_of
from hpsearch.study_file.text import configurations, with_budget
from hpsearch.study_file.trackers import NamedTracker, uninstalled
from hpsearch.views.live import LiveView, StudyPanel
from trials.descriptions.description import ASK

OF_OTHER_PARTS = ("task.validation", "task.test")
"""The keys whose data a run remarks on, as its values may mean nothing; `hpsearch check` remarks on
all."""


def run_study(
    study: Path, options: RunOptions, *, resume: bool = False, changed: bool = False
) -> None:
    """Create a study from its file and drive it; with `resume`, one on record goes on."""
    worker_count(options.workers)
    refuse_in_memory(parse_url(options.storage))
    prepared("", options.watches)
    remarks: list[tuple[str, str]] = []

    def remark(where: str, what: str) -> None:
        remarks.append((where, what))

    spec = load(study, inspect=partial(loading.inspect, remark=remark))
    refuse_contradictions(spec, study.name)
    for where, what in remarks:
        if where in OF_OTHER_PARTS:
            note(f"{study.name}: {where}: {what}")
    submitted_by(launched_by(str(spec.base.absolute()), spec.study, options.storage))
    is_stored = False
    if resume:
        with closing(Store.open(options.storage)) as store:
            is_stored = spec.study in store.study_names()
    refuse_queued(queued(options.storage, spec.study))
    if is_stored:
        note(f"study {spec.study} goes on as it is on record, whatever {study.name} says now")
        resume_study(spec.study, options, BudgetLimits(), base=spec.base, changed=changed)
        return
    refuse_asked(spec)
    refuse_missing(spec.track)
    known_good = configurations(options.enqueue or (), spec)
    home = folder_of_new(spec, options.checkpoints)
    if options.address is not None:
        refuse_unreachable(options.address)
    with closing(Store.open(options.storage)) as store:
        if spec.study in store.study_names():
            refuse_if_held(store, spec.study)
            raise _exists(store, spec, study)
        store.refuse_read_only()
        earlier = earlier_studies(store, spec)
        resources = _resources(options, spec)
        study_run = on_ray.StudyRun(spec, home, resources, options.address, known_good, spec.track)
        open_history = partial(create_study, store, spec, home.folder, home.mark.uid, earlier)
        _drive(store, study_run, open_history, options, len(known_good))


def _exists(store: Store, spec: StudySpec, file: Path) -> StudyExists:
    what = f"study {spec.study} is already in {store.display_url}"
    changes = changes_between(spec_of(store.find_study(spec.study)), spec)
    resume = command(f"resume {shlex.quote(spec.study)}")
    if changes.refused:
        differs = ", ".join(changes.refused)
        hint = f"give the new study another name, as {differs} differs - or continue the old one"
        return StudyExists(what, f"{hint}: {resume}")
    others = [*changes.allowed, *changes.widened]
    if others:
        what += f", with another {', '.join(others)}"
        resume += f" --from {shlex.quote(str(file))}"
    return StudyExists(what, f"continue it with: {resume} - or give the new study another name")


def resume_study(
    name: str,
    options: RunOptions,
    limits: BudgetLimits,
    base: Path | None = None,
    finish: int | None = None,
    source: Path | None = None,
    retry: str | None = None,
    *,
    changed: bool = False,
) -> None:
    """Continue an interrupted study from the database alone, or a finished one with more budget;
    one that runs elsewhere goes on there. `base` is the folder of its data and modules from now on;
    None for the one on record. The trial `finish` is trained to its end. `source` is a study file
    with other settings of how trials are read and run. The failed trials that `retry` names run
    again. Code and data may have changed if `changed`, and where trials are retried."""
    worker_count(options.workers)
    prepared(name, options.watches)
    budget = limits.given
    with closing(Store.open(options.storage, create=False)) as store:
        only_raises = budget and finish is None and options.changes_nothing_else
        only_raises = only_raises and source is None and retry is None and not changed
        if only_raises and _runs_elsewhere(store, name):
            raise_budget(store, name, budget)
            return
        refuse_if_held(store, name)
        refuse_queued(queued(options.storage, name))
        history = store.load(name)
        study = history.study
        submitted_by(launched_by(study.base, name, options.storage))
        _refuse_imported(study)
        former = spec_of(study)
        changes = _changes(former, source)
        study.spec = with_budget(changes.text, budget)
        had = {} if retry is None else _attempts_of(store, history, retry)
        if base is not None:
            study.base = str(base.absolute())
        spec = spec_of(study)
        refuse_asked(spec)
        if changes.widened:
            refuse_unmeasured(history, spec)
        if had:
            retries.refuse_used_up(spec, history)
        refuse_unusable(spec.search.sampler, spec.search.pruner)
        known_good = configurations(options.enqueue or (), spec)
        _refuse_too_few(spec, history, is_raised="trials" in budget, enqueues=bool(known_good))
        home = folder_of(spec, study, options.checkpoints)
        goes_on = budget or known_good or had or changes.allowed or changes.widened
        if finish is not None:
            _note_finish(spec, history, finish)
        elif study.state is StudyState.FINISHED and not (goes_on or _has_revisions(store, history)):
            note(f"study {name} has already ended: {study.reason}")
            note(f"to continue it, raise a limit: hpsearch resume {name} --trials N")
            return
        seal = seal_of(spec)
        if not changed and not had:
            versions.refuse_changed(store, history, seal)
        resources, trackers = _resources(options, spec), _installed(spec)
        study_run = on_ray.StudyRun(
            *(spec, home, resources, options.address, known_good, trackers),
            finish=finish,
            retry=list(had),
            changes=changes.allowed,
            widened=changes.widened,
            former=former if changes.widened else None,
            seal=seal,
        )
        further = len(study.enqueued) + len(known_good)
        drawn = sum(trial.role in (Role.SEARCH, Role.PROPOSED) for trial in history.trials)
        _drive(store, study_run, lambda: history, options, further, drawn)
        if finish is not None:
            _refuse_unfinished(history, finish)
        retries.refuse_idle(history, had)


def _changes(former: StudySpec, source: Path | None) -> FileChanges:
    if source is None:
        return FileChanges(former.text)
    changes = changes_between(former, load(source, inspect=loading.inspect))
    changes.refuse(former.study)
    for key, text in changes.allowed.items():
        note(f"{key} {text}")
    return changes


def _attempts_of(store: Store, history: History, retry: str) -> dict[int, int]:
    """The number of attempts that each trial has had which is to run again."""
    with store.reading() as connection:
        chosen = retries.chosen(connection, history, retry)
    return {number: len(history.trials[number].attempts) for number in chosen}


def _has_revisions(store: Store, history: History) -> bool:
    """True if a change of the study's code waits for its test, or for more of it."""
    asked = any(each.kind is RequestKind.REVISE for each in store.waiting(history.study.id))
    return asked or any(each.verdict is CodeVerdict.OPEN for each in history.revisions)


def _note_finish(spec: StudySpec, history: History, number: int) -> None:
    if on_ray.can_continue(history, number):
        total = spec.budget.per_trial.total
        at = f"{number_text(history.trials[number].trains_from)} of {number_text(total)}"
        note(f"trial {number} trains on from {at} {spec.budget.per_trial.unit.value}")
    else:
        note(f"trial {number} has no checkpoint, so it trains from the start")


def _refuse_unfinished(history: History, number: int) -> None:
    trial = history.trials[number]
    if trial.state is State.COMPLETE:
        note(f"trial {number} is complete, with {number_text(trial.value)}")
        return
    if trial.state is State.FAILED:
        raise UserError(f"trial {number} failed ({trial.error_kind}: {trial.error_text})")
    raise UserError(
        f"trial {number} was not trained to its end: {history.study.reason}",
        "raise the limit in the same command, with --gpu-hours, --cost or --wall-clock",
    )


def _runs_elsewhere(store: Store, name: str) -> bool:
    """True if a driver, or processes that ask for its trials, work on the study."""
    with store.reading() as connection:
        study = find_study(connection, name)
    return study.driver is not None or (study.is_asked and study.state is StudyState.RUNNING)


def _resources(options: RunOptions, spec: StudySpec) -> Resources:
    workers = worker_count(options.workers)
    update = {} if workers is None else {"workers": workers}
    return spec.resources.model_copy(update=update)


def _drive(
    store: Store,
    study_run: on_ray.StudyRun,
    open_history: Callable[[], History],
    options: RunOptions,
    *beside: int,
) -> None:
    """Drive a study, watched, and say how it ended; `beside` is for `advice` on its file."""
    log_as_notes()
    name = study_run.spec.study
    resume = command(f"resume {name}")
    with watching(prepared(name, options.watches)) as watches:
        note(f"study {name} in {store.display_url}")
        if store.caution is not None:
            note(store.caution)
        note(f"checkpoints in {study_run.home.folder}")
        for line in advice(study_run.spec, *beside):
            note(line)
        view = LiveView(StudyPanel(store, name), quiet=options.quiet)
        with view, stopped_by_signals(resume) as stop:

            def begins(driver: Driver) -> None:
                stop(driver)
                watches.begins(driver)

            watch = watched_by(watches.watch, view.watch)
            study = on_ray.drive(store, study_run, open_history, watch, begins)
        watches.ended(study)
    if study.state is StudyState.INTERRUPTED:
        raise interruption_of(study, resume)
    if study.state is StudyState.FAILED:
        see = f"see what happened with: hpsearch trials {name}"
        hint = f"{see} - mend it, then: hpsearch resume {name} --retry failed"
        raise UserError(f"study {name} gave up: {study.reason}", hint)
    note(f"study {name} has ended: {study.reason}")
    print_result(store, name, command)


def _installed(spec: StudySpec) -> list[NamedTracker]:
    """The trackers of a study whose packages are installed; the others are named in notes."""
    gone = uninstalled(content_of(spec.text).get("track"))
    if gone:
        what = f"no plugin that is installed offers {' or '.join(gone)}"
        note(f"track: {what}; the study goes on without - see hpsearch --version")
    absent = missing(spec.track)
    if absent:
        names = ", ".join(absent)
        note(f"track: the study goes on without {names}, not installed here: {install(absent)}")
    return [tracker for tracker in spec.track if tracker.kind not in absent]


def refuse_asked(spec: StudySpec) -> None:
    if spec.task["kind"] == ASK.kind:
        raise UserError(
            f"study {spec.study} has no task to train: its trials are asked for in Python",
            f'hpsearch.create(url, "study.yaml") or hpsearch.resume(url, "{spec.study}"), then '
            "study.ask() - or give the study file a task",
        )


def _refuse_imported(study: StudyRecord) -> None:
    if origin_of(content_of(study.spec)) is not None:
        raise UserError(
            f"study {study.name} was {study.reason}; it cannot be resumed",
            f"start a study of your own from it: search: {{warm_start: [{study.name}]}}",
        )


def _refuse_too_few(spec: StudySpec, history: History, *, is_raised: bool, enqueues: bool) -> None:
    """Refuse a limit below the trials that have started, or with no room for what is enqueued."""
    started = history.searched
    limit = spec.budget.trials
    if limit is not None and is_raised and limit < started:
        raise UserError(
            f"study {spec.study} has already started {started} trials, more than --trials {limit}",
            f"give a number above {started} for new trials, or leave --trials out",
        )
    if limit is not None and enqueues and limit <= started:
        raise UserError(
            f"study {spec.study} has tried all its {limit} trials, so nothing can be enqueued",
            "raise the limit with --trials",
        )
