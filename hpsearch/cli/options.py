"""Options and arguments with their help texts: shared ones, and groups that belong together."""

from dataclasses import asdict, dataclass, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from hpsearch.cli.output import Format, TrainOn, TreeFormat, What, suggest_for
from hpsearch.domain.plugins.door import offers_of
from hpsearch.domain.plugins.offers import SourcePlugin, TrackerPlugin, WatchPlugin
from hpsearch.errors import UserError
from hpsearch.store.connecting.hints import DEFAULT_STORAGE

LARGEST_COUNT = 2**31 - 1  # the largest trial number, or number of rows, that both databases accept
MOST_WORKERS = 100_000

Storage = Annotated[
    str,
    Option(
        "--storage",
        envvar="HPSEARCH_STORAGE",
        callback=suggest_for,
        help="The database: sqlite:///FILE or postgresql://…",
    ),
]
"""The URL of a database, which everything below the commands takes as `storage`."""
Address = Annotated[
    str | None,
    Option(
        "--address",
        envvar="RAY_ADDRESS",
        help="The address of the Ray cluster. Default: this machine.",
    ),
]
Workers = Annotated[
    str | None,
    Option("--workers", metavar="N|auto", help="The number of trials that run at the same time."),
]
StudyName = Annotated[str, Argument(metavar="NAME", help="The study.")]
OptionalStudyName = Annotated[
    str | None,
    Argument(metavar="NAME", help="The study. Not needed if the database has only one study."),
]
StudyFile = Annotated[Path, Argument(metavar="STUDY", help="The study file, such as study.yaml.")]

OptionalStudyFile = Annotated[
    Path | None, Argument(metavar="STUDY", help="The study file, such as study.yaml.")
]

Where = Annotated[
    str | None,
    Option(
        "--where", help="Select trials, such as: \"learning_rate < 1e-4 and state = 'complete'\"."
    ),
]
Watch = Annotated[
    bool,
    Option("--watch", help="Show it again whenever it changes, until the study's driver ends."),
]
FormatOption = Annotated[Format, Option("--format", "-f", help="The output format.")]
TreeFormatOption = Annotated[TreeFormat, Option("--format", "-f", help="The output format.")]
Changed = Annotated[
    bool,
    Option("--changed", help="Go on with code or data that have changed, as the next version."),
]
Force = Annotated[bool, Option("--force", help="Replace the file if it already exists.")]


@dataclass(frozen=True)
class _OfRun:
    """Options on how a study is driven; None as the study file says."""

    storage: Storage = DEFAULT_STORAGE
    address: Address = None
    workers: Workers = None
    checkpoints: Annotated[str | None, Option(help="The folder or URL for checkpoints.")] = None
    enqueue: Annotated[
        list[str] | None,
        Option(
            help='A configuration to try first, such as "learning_rate=1e-4, batch_size=32". '
            "Can be repeated."
        ),
    ] = None
    quiet: Annotated[bool, Option("--quiet", "-q", help="Do not show live progress.")] = False

    @property
    def watches(self) -> dict[str, str]:
        """The options that plugins offer to watch the study, as far as they are given."""
        given = {name: getattr(self, name) for name in WATCHES}
        return {name: text for name, text in given.items() if text is not None}

    @property
    def changes_nothing_else(self) -> bool:
        """True if none of the options says how a driver would work."""
        return self.workers is None and self.checkpoints is None and not self.enqueue


WATCHES = {
    name: each
    for name, each in offers_of(WatchPlugin).items()
    if name.isidentifier() and not hasattr(_OfRun, name)  # a name of ours stays ours
}


def _of_watch(plugin: WatchPlugin) -> Any:
    variable = f"HPSEARCH_{plugin.name.upper()}"
    return Annotated[str | None, Option(metavar=plugin.metavar, envvar=variable, help=plugin.help)]


if TYPE_CHECKING:
    RunOptions = _OfRun
else:
    RunOptions = make_dataclass(
        "RunOptions",
        [(name, _of_watch(plugin), None) for name, plugin in WATCHES.items()],
        bases=(_OfRun,),
        frozen=True,
    )


@dataclass(frozen=True)
class BudgetLimits:
    """The new limits of a budget; None for those that stay."""

    trials: Annotated[
        int | None, Option(help="The new limit on trials, including those already run.")
    ] = None
    gpu_hours: Annotated[
        float | None, Option(help="The new limit on GPU hours, including those used.")
    ] = None
    wall_clock: Annotated[
        str | None, Option(help="The new limit on running time, such as 4h, including time used.")
    ] = None
    cost: Annotated[
        float | None, Option(help="The new limit on cost, including what is already spent.")
    ] = None

    @property
    def given(self) -> dict[str, float | str]:
        return {key: value for key, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class DataOptions:
    """Options on the training data of a study file to write."""

    train: Annotated[Path | None, Option(help="The training data.")] = None
    text: Annotated[
        list[str] | None, Option(help="The column with the texts; twice for pairs.")
    ] = None
    label: Annotated[
        list[str] | None, Option(help="The column with the labels; again for each of several.")
    ] = None
    model: Annotated[str | None, Option(help="A model to start from: a hub id, or a folder.")] = (
        None
    )

    @property
    def given(self) -> bool:
        return bool(self.train or self.text or self.label or self.model)


@dataclass(frozen=True)
class StudyOptions:
    """Options on a study file to write."""

    name: Annotated[str | None, Option(help="The study's name.")] = None
    metric: Annotated[str | None, Option(help="The objective. Default: by the data.")] = None
    force: Force = False


@dataclass(frozen=True)
class RunColumns:
    """Options on the columns of past runs."""

    params: Annotated[list[str] | None, Option(help='Parameters: "lr=learning_rate, depth".')] = (
        None
    )
    metric: Annotated[list[str] | None, Option(help="The metric, or NAME=COLUMN; repeatable.")] = (
        None
    )
    direction: Annotated[list[str] | None, Option(help="minimize or maximize; repeatable.")] = None
    run: Annotated[str | None, Option(help="The column that names the run of a row.")] = None
    state: Annotated[str | None, Option(help="The column of how a run ended.")] = None
    study: Annotated[str | None, Option(help="The study in an Optuna storage.")] = None


@dataclass(frozen=True)
class FinalTraining:
    """Options on the training of a model to keep."""

    trial: Annotated[
        int | None,
        Option(min=0, max=LARGEST_COUNT, help="The trial. Default: what is expected to be best."),
    ] = None
    out: Annotated[
        Path, Option(help="The folder for models. The first model goes into NAME/v1.")
    ] = Path("models")
    data: Annotated[TrainOn, Option(help="The data to train on.")] = TrainOn.TRAIN


@dataclass(frozen=True)
class Proposal:
    """A configuration that a study is to try next."""

    configuration: Annotated[
        str, Argument(metavar="CONFIGURATION", help='The parameters, such as "learning_rate=1e-4".')
    ] = ""
    like: Annotated[int | None, Option(min=0, help="A trial whose other parameters it has.")] = None
    patch: Annotated[
        Path | None, Option(metavar="FILE", help="A change of its command's code to test.")
    ] = None
    revision: Annotated[
        str | None, Option(metavar="COMMIT", help="The same, as a git commit has it.")
    ] = None
    why: Annotated[str, Option(help="The reason, for the record.")] = ""


_COPIES = [f"{name}, or {each.what}" for name, each in offers_of(SourcePlugin).items() if each.copy]
DESTINATIONS = ", ".join(["a .csv or .parquet file", *offers_of(TrackerPlugin), *_COPIES])
"""What a study can be exported to, in words."""
_TO = (
    f"{DESTINATIONS[:1].upper()}{DESTINATIONS[1:]}. A tracker may be a mapping with its options, "
    "as in a study file. Default: the trackers of the study file."
)


@dataclass(frozen=True)
class StudyExport:
    """Options on an export. `force` replaces what is there already, or sends all of it again."""

    name: OptionalStudyName = None
    to: Annotated[str | None, Option("--to", help=_TO)] = None
    what: Annotated[What, Option("--what", help="What to write to the file, one row each.")] = (
        What.TRIALS
    )
    force: Force = False
    storage: Storage = DEFAULT_STORAGE


@dataclass(frozen=True)
class Selection:
    """Options on which trials are shown, and in which order."""

    where: Where = None
    sort: Annotated[str | None, Option(help='The order, such as: "value desc, learning_rate".')] = (
        None
    )
    limit: Annotated[
        int | None, Option(min=1, max=LARGEST_COUNT, help="The largest number of trials to show.")
    ] = None


@dataclass(frozen=True)
class Best:
    """Options on which of the best trials are shown."""

    top: Annotated[
        int | None,
        Option(
            min=1,
            max=LARGEST_COUNT,
            help="The number of trials to show. Default: 1, or the whole Pareto front.",
        ),
    ] = None
    where: Where = None


def worker_count(workers: str | None) -> int | str | None:
    """The value of --workers: a number, ``auto``, or None. Raises UserError for another."""
    if workers is None or workers == "auto":
        return workers
    if workers.isdecimal() and len(workers) < 10 and 0 < int(workers) <= MOST_WORKERS:
        return int(workers)
    wanted = f"must be a whole number from 1 to {MOST_WORKERS}, or auto"
    raise UserError(f"--workers {workers[:40]}: {wanted}")
