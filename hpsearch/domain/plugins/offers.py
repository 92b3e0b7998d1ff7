"""The things that a plugin may offer, each under a name.

A plugin is a list of them. What takes long to import is named as ``module:name``, and imported when
it is first used.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class TrackerPlugin:
    """An experiment tracker, which mirrors a study: `track: NAME` in a study file.

    Attributes:
        options: The class of pydantic's with the keys that it takes there.
        tracker: A `hpsearch.domain.plugins.news.Tracker` for one study, which is made of the
            options, and the folder of the study file (`Path`), to which their relative paths
            belong. It may raise anything.
        packages: The distributions one of which it needs; none if it needs none.
    """

    name: str
    options: str
    tracker: str
    packages: tuple[str, ...] = ()


@dataclass(frozen=True)
class LibraryPlugin:
    """A library whose training code runs as trials: `task: {library: NAME}` in a study file.

    Attributes:
        adapt: Turns what `task.kind` names, and the `task` part, into a function that takes
            `(params, trial)`. Raises `trials.contract.TaskError`.
        problems: What is wrong with the `task` part, its folder (`Path`) and the directions of the
            study's objectives, as a list of `trials.contract.Problem`; empty for no such check.
    """

    name: str
    adapt: str
    problems: str = ""


@dataclass(frozen=True)
class SamplerPlugin:
    """A sampler: `search: {sampler: NAME}`, or a mapping with its arguments.

    Attributes:
        build: Takes a seed (`int`) and the arguments by name, and returns a sampler of Optuna's
            (`optuna.samplers.BaseSampler`). Raises ValueError or TypeError for wrong arguments.
    """

    name: str
    build: str


@dataclass(frozen=True)
class PrunerPlugin:
    """A pruner: `search: {pruner: NAME}`, or a mapping with its arguments.

    Attributes:
        build: Takes the arguments by name, and returns a pruner of Optuna's
            (`optuna.pruners.BasePruner`). Raises ValueError or TypeError for wrong arguments.
    """

    name: str
    build: str


@dataclass(frozen=True)
class SourcePlugin:
    """Something that studies come from: its runs, or its search as a study file.

    Attributes:
        what: What it takes, in words, such as "a W&B sweep".
        takes: Tells if a source, as given to a command, is one of its own.
        runs: Reads past runs from a source and the columns that are given, for `hpsearch import`;
            empty if it has none.
        draft: Translates a source, given the name of the study and a folder, for `hpsearch init
            --from`; empty if it cannot.
    """

    name: str
    what: str
    takes: str
    runs: str = ""
    draft: str = ""


@dataclass(frozen=True)
class CommandPlugin:
    """A command of `hpsearch`, such as one that starts a driver elsewhere, or serves studies.

    Attributes:
        panel: The part of the help that lists it: Search, Results or Maintenance.
        function: The function, with the annotations that Typer reads; its text is the help. It is
            imported for each `hpsearch --help`, and should import what takes long when called.
        settings: Of its context, as Typer takes them.
        epilog: Text below its options.
    """

    name: str
    panel: str
    function: str
    settings: Mapping[str, Any] | None = None
    epilog: str | None = None


@dataclass(frozen=True)
class WatchPlugin:
    """Watches a study from inside its driver: `hpsearch run --NAME TEXT`, or the environment
    variable `HPSEARCH_NAME`.

    Attributes:
        metavar: The text in short, such as PORT.
        help: What the option is for.
        watch: Takes the name of a study and the text, and returns a context manager around its run,
            of a `hpsearch.running.watching.Watch`. It may raise `hpsearch.errors.UserError`.
    """

    name: str
    metavar: str
    help: str
    watch: str


Offer: TypeAlias = (
    TrackerPlugin
    | LibraryPlugin
    | SamplerPlugin
    | PrunerPlugin
    | SourcePlugin
    | CommandPlugin
    | WatchPlugin
)
