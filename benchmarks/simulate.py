"""What a study would have found, on recorded learning curves: with half the workers, say.

    python benchmarks/simulate.py STUDY --curves TABLE [--workers N] [--seed N] [--top N]
        [--start-up SECONDS] [--keeps-nothing] [--format table|json|yaml]

The study file's own space, budget, sampler, pruner and confirmation run in the same brain, driver
and database as a real study, on a virtual clock (`simulation/`). Nothing is trained, and no files
remain. It prints the best configurations, the time that the study would have taken, its starts, and
the share of full training that pruning saved. README.md says what the table of curves must have.
"""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from hpsearch.cli.options import (
    LARGEST_COUNT,
    StudyFile,
    TreeFormatOption,
    Workers,
    worker_count,
)
from hpsearch.cli.output import TreeFormat, emit_tree, note, show, terminal_width
from hpsearch.domain.history import History
from hpsearch.domain.numbers import count, duration
from hpsearch.domain.records import StudyState, Trial
from hpsearch.errors import HpsearchError, UserError
from hpsearch.search.ranking.pareto import pareto_front
from hpsearch.search.ranking.selection import Ranked, rank
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import load
from hpsearch.views.documents import ranked_document
from hpsearch.views.terminal import tables
from simulation.curve_file import CurveFile, load_curves
from simulation.curves import RecordedCurves
from simulation.running import simulate

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command(help=__doc__)
def simulate_study(
    study: StudyFile,
    curves: Annotated[Path, Option(metavar="TABLE", help="A .csv or .parquet file of curves.")],
    workers: Workers = None,
    seed: Annotated[
        int | None, Option(min=0, max=2**63 - 1, help="Default: that of the study file.")
    ] = None,
    top: Annotated[
        int, Option(min=1, max=LARGEST_COUNT, help="The number of configurations to show.")
    ] = 5,
    start_up: Annotated[
        float, Option(metavar="SECONDS", min=0, help="Of an attempt before it trains.")
    ] = 0.0,
    keeps_nothing: Annotated[
        bool, Option("--keeps-nothing", help="Trials that go on begin again: no checkpoints.")
    ] = False,
    format: TreeFormatOption = TreeFormat.TABLE,
) -> None:
    """Run a study file's search on a table of curves; print the best configurations and their
    cost."""
    spec = load(study)
    if seed is not None:
        spec = spec.model_copy(update={"seed": seed})
    recorded = load_curves(curves, spec)
    slots = _workers(spec, worker_count(workers))
    for line in _remarks(recorded, spec):
        note(f"{curves}: {line}")
    resources = spec.resources
    gpus = float(resources.processes) if isinstance(resources.gpu, str) else resources.stated_gpus
    history = simulate(
        spec, recorded.curves, slots, gpus=gpus, start_up_s=start_up, keeps=not keeps_nothing
    )
    if history.study.state is StudyState.FAILED:
        raise UserError(f"the simulated study {spec.study} gave up: {history.study.reason}")
    ranked = _ranked(spec, history, top)
    curves_used = recorded.curves
    found = summary(spec, history, curves_used, slots, start_up)
    if format is TreeFormat.TABLE:
        names = ["value"]
        if len(spec.objectives) > 1:
            names = [each.metric for each in spec.objectives]
        at = {each.trial.number: each.trial.seen_at for each in ranked}
        for each in ranked:
            each.trial.params = dict(curves_used.stand_in(each.trial.params))
        best = tables.best(ranked, terminal_width(), names, at)
        show(best, *_lines(found, len(curves_used.configurations)))
        return
    best_plain = [as_plain(each, curves_used) for each in ranked]
    emit_tree({**found, "best": best_plain}, format)


def _ranked(spec: StudySpec, history: History, top: int) -> list[Ranked[Trial]]:
    """The best trials, best first; with several objectives, the whole Pareto front."""
    if len(spec.objectives) > 1:
        directions = [objective.direction for objective in spec.objectives]
        return pareto_front(history.trials, directions)
    return rank(history.trials, spec.objective.direction, spec.objective.metric)[:top]


def _workers(spec: StudySpec, option: int | str | None) -> int:
    """As many as the option or else the study file says; one if that is auto."""
    wanted = spec.resources.workers if option is None else option
    if isinstance(wanted, int):
        return wanted
    note("one worker, because the study file does not give a number: choose with --workers")
    return 1


def _remarks(recorded: CurveFile, spec: StudySpec) -> list[str]:
    per_trial = spec.budget.per_trial
    unit = per_trial.unit.value
    runs = recorded.curves.runs
    remarks = []
    if spec.search.warm_start is not None:
        remarks.append("is searched without warm_start: a simulation knows no earlier studies")
    if recorded.too_short:
        short = count(recorded.too_short, "configuration")
        remarks.append(f"{short} left out, recorded for less than {per_trial.total:g} {unit}")
    repeated = sum(len(curves) > 1 for curves in runs)
    if spec.search.confirm is not None and repeated < len(runs):
        several = f"{repeated} of {len(runs)} configurations"
        remarks.append(f"has several seeds of {several}: a repeat of another says nothing new")
    if not recorded.timed:
        remarks.append(f"has no column elapsed: each of the {unit} takes one second")
    return remarks


def summary(
    spec: StudySpec,
    history: History,
    curves: RecordedCurves,
    workers: int,
    start_up_s: float = 0.0,
) -> dict[str, Any]:
    """The course of the study and its cost.

    `saved_by_pruning` is the share that pruning saved of the time that all trials take in full,
    with one start each. Starts after pauses and training that is repeated are taken off.
    """
    total = spec.budget.per_trial.total
    spent = sum(trial.gpu_seconds for trial in history.trials)
    trained_s = sum(curves.seconds(trial.params, total) for trial in history.trials)
    in_full = trained_s + start_up_s * len(history.trials)
    attempts = [attempt for trial in history.trials for attempt in trial.attempts]
    trained = sum(each.ended - each.started for each in attempts if each.ended is not None)
    saved = 1 - trained / in_full if in_full else 0.0
    states = Counter(trial.state for trial in history.trials)
    return {
        "study": spec.study,
        "seed": spec.seed,
        "workers": workers,
        "ended": history.study.reason,
        "trials": {state.value: n for state, n in sorted(states.items())},
        "configurations_used": curves.taken,
        "wall_clock_s": history.study.active_seconds,
        "gpu_hours": spent / 3600,
        "starts": len(attempts),
        "saved_by_pruning": saved,
    }


def as_plain(ranked: Ranked[Trial], curves: RecordedCurves) -> dict[str, Any]:
    """A ranked trial as plain values; `recorded` is the recorded configuration it used."""
    trial = ranked.trial
    recorded = dict(curves.stand_in(trial.params))
    return {**ranked_document(ranked, trial.seen_at), "recorded": recorded}


def _lines(found: dict[str, Any], known: int) -> list[str]:
    """The lines under the table of the best, where so many configurations are recorded."""
    states = ", ".join(f"{n} {state}" for state, n in found["trials"].items())
    trials = sum(found["trials"].values())
    used = f"{found['configurations_used']} of {known} recorded configurations tried"
    if trials > known:
        used += "; there are fewer of them than trials, so trials share them"
    time = f"{duration(found['wall_clock_s'])} on {count(found['workers'], 'worker')}"
    starts, share = count(found["starts"], "start"), found["saved_by_pruning"]
    saved = (
        f"{starts}; pruning {'saved' if share >= 0 else 'cost'} {abs(share):.0%} of full training"
    )
    return [
        "",
        f"{count(trials, 'trial')} ({states}); {used}",
        f"{time}, {found['gpu_hours']:.3g} GPU-hours; {saved}",
        f"ended because: {found['ended']}",
    ]


def main() -> None:
    """Simulate what the command line says.

    Raises:
        SystemExit: With 0 at the study's end, with 2 for a mistake in its file or the table.
    """
    try:
        app(prog_name="simulate.py")
    except HpsearchError as error:
        note(f"simulate: {error}")
        raise SystemExit(error.exit_code) from None


if __name__ == "__main__":
    main()
