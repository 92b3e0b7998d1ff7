"""`hpsearch reproduce`: train a trial again, and say whether it is the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from hpsearch.brain.trial_log import lacking
from hpsearch.cli.opening import chosen_study, reading
from hpsearch.cli.output import TreeFormat, emit_json, emit_yaml, note
from hpsearch.cli.reproduce.aside import results_apart
from hpsearch.cli.reproduce.causes import causes, of_chance, of_the_course
from hpsearch.cli.reproduce.comparison import Comparison
from hpsearch.cli.reproduce.course import OF_THE_MACHINE, RecordedCourse, course_of
from hpsearch.cli.reproduce.training import Job, Repeated, train
from hpsearch.cli.reproduce.verdict import Wanted, line_of, verdict
from hpsearch.cli.results.show import name_and_number
from hpsearch.creation.environment import environment
from hpsearch.domain import events as ev
from hpsearch.domain.records import Environment
from hpsearch.errors import Interrupted, UserError
from hpsearch.store.reading.queries import (
    StudyHead,
    TrialDetail,
    memory_of,
    recorded_arithmetic,
    session_at,
    trial_detail,
)
from hpsearch.study_file.advice import code_that_runs
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse, refusal
from hpsearch.study_run.workers import worker_config
from hpsearch.terminal.escapes import escaped
from hpsearch.words.estimates import continued
from hpsearch.words.numbers import number as shown
from trials.contract import Report, Setup, TaskError
from trials.descriptions.builtin import describe
from trials.loop import memory_facts
from trials.running import arithmetic
from trials.running.arithmetic import Arithmetic
from trials.running.interruption import Interruption

CPU = "CPU"
"""What a session's device is called that has no GPU."""


@dataclass(frozen=True)
class _Record:
    """What the database has of a trial.

    Args:
        study: Its study.
        spec: The study file.
        detail: The trial.
        session: What it ran on; None if that is not recorded.
        arithmetic: How it computed; None if that is not recorded.
        memory: What the study's workers have learnt of memory.
    """

    study: StudyHead
    spec: StudySpec
    detail: TrialDetail
    session: Environment | None
    arithmetic: Arithmetic | None
    memory: memory_facts.Facts


def reproduce_trial(words: list[str], wanted: Wanted, format_: TreeFormat, storage: str) -> bool:
    """Train a trial again, and print whether it is the same.

    Args:
        words: The trial's number, after the study's name where one is given.
        wanted: How far, and what counts as the same.
        format_: How to print it.
        storage: The database's URL.

    Returns: Whether it is the same.

    Raises:
        UserError: There is no such trial, or it cannot be trained again.
        Interrupted: A signal stopped it.
    """
    name, number = name_and_number(words, "reproduce")
    record = _read(name, number, storage)
    course = course_of(record.detail, wanted.until)
    _refuse(record, course, wanted)
    comparison = Comparison(course, wanted.metric)
    talks = format_ is TreeFormat.TABLE
    found = _repeat(record, comparison, wanted.tolerance if talks else None)
    same = comparison.is_same(wanted.tolerance)
    if talks:
        told = verdict(record.detail, comparison, wanted, found)
        print("\n".join(map(escaped, told)))  # noqa: T201 - this is the result
        return same
    plain = {
        "study": record.study.name,
        "trial": number,
        "same": same,
        "until": course.end,
        **comparison.as_plain(),
        "causes": found,
    }
    (emit_yaml if format_ is TreeFormat.YAML else emit_json)(plain)
    return same


def _read(name: str | None, number: int, storage: str) -> _Record:
    with reading(storage) as connection:
        study = chosen_study(connection, name)
        detail = trial_detail(connection, study, number)
        began = min((float(each["started"]) for each in detail.attempts), default=math.inf)
        session = session_at(connection, study, began)
        recorded = recorded_arithmetic(connection, study, number)
        memory = memory_of(connection, study)
    if not study.spec or study.base is None:
        message = f"study {study.name} was not made from a study file"
        raise UserError(message, "there is nothing that could train its trials again")
    spec = parse(study.spec, base=Path(study.base), name=f"{study.name} (study file)")
    return _Record(study, spec, detail, session, recorded, memory)


def _refuse(record: _Record, course: RecordedCourse, wanted: Wanted) -> None:
    """Refuse a trial with which nothing can be compared.

    Raises:
        UserError: It is one.
    """
    if wanted.until is not None and not wanted.until > 0:
        raise UserError(f"--until is {wanted.until:g}", "give a resource above 0")
    trial, study = record.detail.trial, record.study
    if trial.continues is not None:
        message = f"trial {trial.number} of {study.name} {continued(trial)}"
        raise UserError(message, "what began with another trial's checkpoint is not trained again")
    if not course.reports and course.error is None:
        first = min((float(each["resource"]) for each in record.detail.reports), default=None)
        if first is not None:
            message = f"trial {trial.number} of {study.name} reported at {shown(first)} first"
            raise UserError(message, f"--until must not be less, and is {shown(wanted.until)}")
        why = "its worker or its machine failed" if trial.error_kind in OF_THE_MACHINE else ""
        message = f"trial {trial.number} of {study.name} ({trial.state.value}) has reported nothing"
        raise UserError(message, why or "choose another, or wait for its first report")
    if wanted.metric is None or not course.reports:
        return
    known = dict.fromkeys(name for metrics in course.reports.values() for name in metrics)
    if wanted.metric not in known:
        message = f"no report of trial {trial.number} has a metric {wanted.metric!r}"
        raise UserError(message, f"its metrics are: {', '.join(known)}")


# ----------------------------------------------------------------------------------------- training


def _repeat(record: _Record, comparison: Comparison, tolerance: float | None) -> list[str]:
    """Train the trial again, compare it, and tell why it may differ.

    Args:
        record: The trial.
        comparison: Told of each report, and of the end.
        tolerance: By what share reports may differ that are printed as the same; None to print
            nothing.
    """
    spec, study = record.spec, record.study
    for line in code_that_runs(spec):
        note(line)
    outcome = Repeated()
    try:
        with results_apart() as results, Interruption() as interruption:
            job, found = _job(record, comparison.course, lambda: interruption.asked)
            with closing(train(job, outcome)) as reports:
                for report in reports:
                    compared = comparison.add(report.resource, report.metrics)
                    if tolerance is not None:
                        results.line(line_of(compared, tolerance))
    except TaskError as error:
        raise refusal(study.spec, f"{study.name} (study file)", error.problems) from error
    if outcome.interrupted:
        raise Interrupted(
            "interrupted; the study is as it was", "to begin again, repeat the command"
        )
    comparison.end(outcome)
    attempts = record.detail.attempts
    return [*found, *of_the_course(attempts, outcome.unpaused), *of_chance(spec, job.setup.device)]


def _job(
    record: _Record, course: RecordedCourse, should_stop: Callable[[], bool]
) -> tuple[Job, list[str]]:
    """What is trained, and what is not as it was.

    Raises:
        TaskError: The task cannot be built, or its data not be prepared.
    """
    spec, session, trial = record.spec, record.session, record.detail.trial
    device = _device(session)
    config = worker_config(spec, Path(spec.base))
    task = config.load_task()
    now = environment(spec, CPU if device == "cpu" else device)
    params, computed = arithmetic.adopt(
        record.arithmetic,
        {**config.settings, **trial.params},
        device,
        threads=config.threads,
        known=describe(spec.task["kind"]).settings,
    )
    found = causes(spec, (session, now), (record.arithmetic, computed))
    for each in found:
        note(f"not as it was: {each}")
    memory_facts.learn(record.memory)
    setup = Setup(params, trial.seed, config.budget, "", None, device, config.goal)
    data = task.prepare(params) if config.prepares else None
    return Job(task, data, setup, course, _checked(spec), should_stop), found


def _device(session: Environment | None) -> str:
    """A torch device name: a GPU only where the trial had one."""
    if session is not None and session.device == CPU:
        return "cpu"
    import torch  # imported here: it takes long

    return "cuda" if torch.cuda.is_available() else "cpu"


def _checked(spec: StudySpec) -> Callable[[Report], str | None]:
    """What tells of a report that its study would have refused."""

    def problem_with(report: Report) -> str | None:
        return lacking(spec, ev.Reported(0, 1, report.resource, report.metrics))

    return problem_with
