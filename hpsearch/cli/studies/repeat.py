"""`hpsearch train --as`: train a trial again as it was, and say whether it is the same."""

import math
import sys
from collections.abc import Callable
from contextlib import closing, redirect_stdout
from functools import partial
from pathlib import Path

from hpsearch.brain.trial_log import lacking
from hpsearch.cli.opening import chosen_study, reading
from hpsearch.cli.output import note
from hpsearch.cli.studies.train import as_it_computed, recorded_spec
from hpsearch.domain import events as ev
from hpsearch.domain.numbers import count
from hpsearch.domain.records import Environment
from hpsearch.errors import Interrupted, UserError
from hpsearch.running.creation.study import environment
from hpsearch.running.reproduction import (
    OF_THE_MACHINE,
    Comparison,
    Job,
    RecordedTraining,
    Repeated,
    recorded_training,
    train,
)
from hpsearch.running.study_run.workers import worker_config
from hpsearch.store.reading.attempts import changes, recorded_arithmetic, session_at
from hpsearch.store.reading.queries import StudyHead, TrialRow, trial_detail
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import refusal
from hpsearch.views.terminal.escapes import escaped
from trials.contract import Report, Setup, TaskError
from trials.devices import gpu
from trials.running import arithmetic
from trials.running.arithmetic import Arithmetic
from trials.running.interruption import interruption

CPU = "CPU"
"""The device of a session that has no GPU."""


def repeat_trial(name: str, number: int, storage: str) -> bool:
    """Train a trial again, up to the first difference, and print whether it is the same."""
    with reading(storage) as connection:
        study = chosen_study(connection, name)
        detail = trial_detail(connection, study, number)
        began = min((float(each["started"]) for each in detail.attempts), default=math.inf)
        session = session_at(connection, study, began)
        computed = recorded_arithmetic(connection, study, number)
    spec, recorded = recorded_spec(study), recorded_training(detail)
    _refuse_silent(study, detail.trial, recorded)
    comparison, repeated = Comparison(recorded), Repeated()
    results = sys.stdout
    try:
        with redirect_stdout(sys.stderr), interruption() as asked:
            job = _job(spec, detail.trial, session, computed, recorded, asked)
            with closing(train(job, repeated)) as reports:
                for report in reports:
                    comparison.add(report)
                    if comparison.difference is not None:
                        break
                    print(f"at {report.resource:g}: the same", file=results, flush=True)
    except TaskError as error:
        raise refusal(study.spec, f"{study.name} (study file)", error.problems) from error
    if repeated.interrupted:
        message = "interrupted; the study is as it was"
        raise Interrupted(message, "to begin again, repeat the command")
    comparison.end(repeated)
    if repeated.unpaused:
        levels = ", ".join(f"{level:g}" for level in repeated.unpaused)
        note(f"the trial was continued at {levels}, and this had no checkpoint there")
    if comparison.difference is not None:
        print(escaped(f"DIFFERENT {comparison.difference}"))  # noqa: T201
        return False
    how = ", and it failed in the same way" if recorded.error else ""
    print(f"THE SAME, bit for bit: {count(comparison.reports, 'report')}{how}")  # noqa: T201
    return True


def _refuse_silent(study: StudyHead, trial: TrialRow, recorded: RecordedTraining) -> None:
    """Refuse a trial with which nothing can be compared."""
    if not recorded.reports and recorded.error is None:
        why = "its worker or its machine failed" if trial.error_kind in OF_THE_MACHINE else ""
        message = f"trial {trial.number} of {study.name} ({trial.state.value}) has reported nothing"
        raise UserError(message, why or "choose another, or wait for its first report")


def _job(
    spec: StudySpec,
    trial: TrialRow,
    session: Environment | None,
    before: Arithmetic | None,
    recorded: RecordedTraining,
    should_stop: Callable[[], bool],
) -> Job:
    """The training to repeat; notes what is not as it was: the `session` of the driver that started
    the trial, and the arithmetic that it computed in `before`, None where they are not recorded.
    Raises TaskError if the task cannot be built, or its data not be prepared."""
    device = _device(session)
    config = worker_config(spec, Path(spec.base))
    task = config.load_task()
    params, computed = as_it_computed(spec, config, trial, before, device)
    found = [] if session is None else changes(session, environment(spec, device))
    found += [] if before is None else arithmetic.differences(before, computed)
    for each in dict.fromkeys(found):
        note(f"not as it was: {each}")
    setup = Setup(params, trial.seed, config.budget, "", None, device, config.goal)
    data = task.prepare(params) if config.prepares else None
    return Job(task, data, setup, recorded, partial(_problem, spec), should_stop)


def _device(session: Environment | None) -> str:
    """A torch device name: a GPU only where the trial had one."""
    if session is not None and session.device == CPU:
        return "cpu"
    return gpu.default_device()


def _problem(spec: StudySpec, report: Report) -> str | None:
    """The fault of a report that its study would have refused; None if there is none."""
    return lacking(spec, ev.Reported(0, 1, report.resource, report.metrics))
