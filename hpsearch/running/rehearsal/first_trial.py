"""One trial of any task, trained up to its first report in a process of its own, and a little
further, to tell its start from its pace; of tasks that are not built in, then others, to see what
their parameters change and what they write."""

import math
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from hpsearch.brain.trial_log import missing_metrics
from hpsearch.domain import events as ev
from hpsearch.domain.numbers import duration, in_unit, pairs
from hpsearch.errors import UserError
from hpsearch.running.executors.first_report import Tried, try_out
from hpsearch.running.executors.worker import ReplaceWorker
from hpsearch.running.rehearsal.other_values import OtherValues, most_different, slowness_of
from hpsearch.running.rehearsal.proposed_pattern import proposals
from hpsearch.running.rehearsal.shared_files import SharedFiles
from hpsearch.running.rehearsal.used_process import keeps_its_process, remarks_on_process
from hpsearch.running.study_run.workers import worker_config
from hpsearch.study_file import space
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import refusal
from trials.checkpoints.disk import drafts
from trials.checkpoints.disk.log_file import OURS
from trials.descriptions.builtin import BUILT_IN, describe
from trials.descriptions.command import COMMAND
from trials.descriptions.report_pattern import visible
from trials.running.exit_codes import exit_text

LIMIT_S = 120.0  # seconds that a trial may take to its first report
FURTHER_S = 5.0
"""A trial trains on for at most as long as its first report took, and for so many seconds."""
TIMED_REPORTS, TIMED_S = 3, 1.0  # it ends after so many reports, and so many seconds of them
OTHER_S = 30.0  # a trial of a built-in task that takes longer is tried with one configuration
MAIN_GUARD = 'if it trains when it is imported, put that under if __name__ == "__main__"'
HOW_TO_REPORT = "report once after each part of its budget: docs/own-training-code.md, command.md"
SHOWN_LINES, SHOWN_LETTERS = 12, 200  # limits of a trial's printed lines that are shown
MOST_PROPOSED = 5
LOST_HINT = "a study tries such a trial again; its log shows what it has printed"

Note = Callable[[str], None]  # prints a line


def first_report(spec: StudySpec, name: str, device: str, note: Note) -> dict[str, float]:
    """Train one trial up to its first report; return what was measured, or nothing after too long.
    Raises SpecError if the task refuses its part, UserError without a report that is of use."""
    table = describe(spec.task["kind"]).settings
    known = space.defaults(spec.space, table, spec.requires) or {}
    params = space.completed(spec.space, spec.enqueue[0] if spec.enqueue else known, spec.requires)
    note(f"trying one trial until its first report, for at most {duration(LIMIT_S)} ...")
    if spec.resources.processes > 1:
        note(f"in one process; in the study, {spec.resources.processes} train each trial")
    if params:
        note(f"with {pairs(params)}")
    files = SharedFiles(spec)
    further = {"train_on_s": FURTHER_S, "is_for_as_long": True, "is_enough": _is_timed()}
    tried, printed = start(spec, params, device, **further)
    if isinstance(tried.news, ev.Reported):
        _note_report(spec, tried.news, tried, note)
        if isinstance(tried.end, ev.Failed):
            failure = tried.end
            note(f"{name}: it then fails ({failure.kind.value}): {failure.text}")
        others: list[float] = []
        if spec.task["kind"] not in BUILT_IN:
            start_again = partial(start, spec, device=device)
            comparison = OtherValues(start_again, spec, params, tried, note)
            comparison.compare()
            others = comparison.slowness
            if keeps_its_process(spec.task):
                other = next(iter(most_different(spec, params)), params)
                for line in remarks_on_process(start_again, spec, params, other, tried):
                    note(f"{name}: {line}")
            for line in files.remarks():
                note(f"{name}: {line}")
        elif tried.seconds <= OTHER_S:
            for other in most_different(spec, params)[:1]:
                note("trying another configuration, for its time ...")
                again, _ = start(spec, other, device, train_on_s=FURTHER_S, is_enough=_is_timed())
                others = [slowness_of(again, tried)] if again.trained_s else []
        return measured(tried.news, tried, others)
    if isinstance(tried.news, list):
        raise refusal(spec.text, name, tried.news)
    shown = [text for text in map(visible, printed) if text.strip()][-SHOWN_LINES:]
    if shown:
        note("the first trial has printed, at last:")
    for text in shown:
        note(f"  {text[:SHOWN_LETTERS]}")
    if spec.task["kind"] == COMMAND.kind and not {"reports", "library"} & spec.task.keys():
        _propose(spec, printed, note)
    if isinstance(tried.news, ev.Failed):
        failure = tried.news
        raise UserError(f"the first trial fails ({failure.kind.value}): {failure.text}")
    if isinstance(tried.news, ev.Finished | ev.Stopped):
        raise UserError("the first trial ends without a report", HOW_TO_REPORT)
    if isinstance(tried.news, ReplaceWorker):
        raise UserError(f"in the first trial, {tried.news.why}", LOST_HINT)
    if tried.exit_code is not None:
        raise _process_ended(spec, tried.exit_code, imported=tried.imported)
    after = f"no report within {duration(tried.seconds)}"
    if tried.imported:
        note(f"{after}; the trial was still running, and nothing had failed")
    else:
        note(f"{after}: {spec.task['kind']} was still being imported; {MAIN_GUARD}")
    return {}


def start(
    spec: StudySpec, params: Mapping[str, Any], device: str, **further: Any
) -> tuple[Tried, list[bytes]]:
    """Begin one trial, as `try_out` with `further` arguments; also the lines that it has printed,
    but for its reports."""
    gpus = spec.resources.gpu
    with drafts.temporary("hpsearch-check-") as folder:
        config = worker_config(spec, folder)
        order = ev.Launch(0, 1, "check", params, spec.seed, until=0.0)
        memory_fraction = 1.0 if isinstance(gpus, str) or gpus == 0 else float(gpus)
        has_ranks = spec.resources.processes > 1
        tried = try_out(
            config, order, device, memory_fraction, LIMIT_S, has_ranks=has_ranks, **further
        )
        log = Path(str(config.log(0, 1)))
        return tried, _printed(log) if log.is_file() else []


def _printed(log: Path) -> list[bytes]:
    own = OURS.encode()
    return [line for line in log.read_bytes().split(b"\n") if line and not line.startswith(own)]


def _propose(spec: StudySpec, printed: list[bytes], note: Note) -> None:
    metric = spec.objective.metric
    found = proposals(printed, metric, spec.budget.per_trial.unit)[:MOST_PROPOSED]
    for index, each in enumerate(found):
        begin = "no line is a report; write under task: " if index == 0 else "  or "
        objective = "" if each.metric == metric else f" (objective: metric: {each.metric})"
        note(f"{begin}{each.key}   # {each.reading}{objective}")


def _note_report(spec: StudySpec, report: ev.Reported, tried: Tried, note: Note) -> None:
    """Print a first report. Raises UserError if it lacks a metric, or one is not finite."""
    at = in_unit(report.resource, spec.budget.per_trial.unit.value)
    note(f"first report: at {at}, after {duration(tried.seconds)}: {pairs(report.metrics)}")
    problem = missing_metrics(spec, report)
    if problem is not None:
        raise UserError(problem, "report it, or change objective or constraints")
    for objective in spec.objectives:
        value = report.metrics[objective.metric]
        if not math.isfinite(value):
            message = f"the first report, at {at}, has {objective.metric} {value}"
            raise UserError(message, "it must be a finite number; try other parameters")


def _is_timed() -> Callable[[ev.Reported], bool]:
    """True as soon as enough reports have come to tell how fast a trial trains."""
    moments: list[float] = []

    def is_enough(report: ev.Reported) -> bool:
        moments.append(time.monotonic())
        return len(moments) >= TIMED_REPORTS and moments[-1] - moments[0] >= TIMED_S

    return is_enough


def measured(report: ev.Reported, tried: Tried, others: Collection[float] = ()) -> dict[str, float]:
    """The measurements of a trial; other configurations take so many times as long."""
    trained_s = tried.trained_s[report.resource]
    found = {
        "reported_at": report.resource,
        "reported_after_s": trained_s,
        "start_up_seconds": tried.start_up_s,
        "process_seconds": max(0.0, tried.seconds - trained_s - tried.start_up_s),
        "keeps_state": report.checkpoint is not None,
        "cores": tried.cores,
    }
    found |= _paces(report.resource, trained_s, tried, others)
    if isinstance(tried.end, ev.Finished):
        found["ended_after_s"] = trained_s + tried.ended_s - tried.seconds
    if report.sizes is not None:
        found |= {"checkpoint_bytes": report.sizes.now, "weights_bytes": report.sizes.ended}
    return found


def _paces(
    first_at: float, trained_s: float, tried: Tried, others: Collection[float]
) -> dict[str, float]:
    """Seconds for a unit of the budget, of this trial, on average, at least and at most, and those
    of the start: the first report tells them apart only with a second one."""
    at = sorted(tried.trained_s)
    if len(at) < 2:
        pace, paces = trained_s / first_at, []
    else:
        seconds = [tried.trained_s[each] for each in at]
        steps = zip(pairwise(at), pairwise(seconds), strict=True)
        paces = [max(0.0, s1 - s0) / (r1 - r0) for (r0, r1), (s0, s1) in steps]
        pace = max(0.0, seconds[-1] - seconds[0]) / (at[-1] - at[0])
    own_start_s = max(0.0, trained_s - first_at * pace)
    tried_paces = [pace, *(pace * slowness for slowness in others)]
    return {
        "own_pace": pace,
        "pace": fmean(tried_paces),
        "least_pace": min([*tried_paces, *paces]),
        "most_pace": max([*tried_paces, *paces]),
        "start_up_seconds": tried.start_up_s + own_start_s,
    }


def _process_ended(spec: StudySpec, exit_code: int, *, imported: bool) -> UserError:
    how = exit_text(exit_code)
    if not imported:
        message = f"importing {spec.task['kind']} ended its process with {how}"
        return UserError(message, MAIN_GUARD)
    hint = "lower what takes memory, such as the batch size" if exit_code == -9 else None
    return UserError(f"the process of the first trial ended with {how}", hint)
