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
        files: What people are told where trials write to the same files.
        again: How its code is called once more with the parameters of a trial, for people.
        asks: Its code may ask for parameters that the space does not name.
        keeps: Its code may go on from what a trial has kept.
    """

    name: str
    adapt: str
    problems: str = ""
    files: str = "write into trial.folder, or put the trial's number into the names"
    again: str = "call your code with its parameters"
    asks: bool = False
    keeps: bool = True


@dataclass(frozen=True)
class SamplerPlugin:
    """A sampler: `search: {sampler: NAME}`, or a mapping with its arguments.

    Attributes:
        build: Takes a seed (`int`) and the arguments by name, and returns a sampler of Optuna's
            (`optuna.samplers.BaseSampler`), one for each trial. Raises ValueError or TypeError for
            wrong arguments.
        several: It takes several objectives.
    """

    name: str
    build: str
    several: bool = False


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
        runs: For `hpsearch import`: reads past runs (`hpsearch.running.creation.past_runs`) from a
            source by `Mapped` columns, and adds to `Problems`; empty if it has none.
        draft: For `hpsearch init --from`: translates a source, under the name of a study or None,
            into a `hpsearch.study_file.starters.draft.StudyDraft` in a folder; empty if it cannot.
        copy: For `hpsearch export --to`, by the name of the plugin or a source that it takes:
            writes a study and its trials there, and returns the number of trials and the place;
            empty if it cannot.
    """

    name: str
    what: str
    takes: str
    runs: str = ""
    draft: str = ""
    copy: str = ""


@dataclass(frozen=True)
class CommandPlugin:
    """A command of `hpsearch`, such as one that serves studies.

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


@dataclass(frozen=True, kw_only=True)
class LauncherPlugin(CommandPlugin):
    """A command that starts the driver of a study elsewhere, such as in a job of a queue. There
    `HPSEARCH_SUBMIT` is the command ``hpsearch NAME ...`` that continues the study.

    Attributes:
        jobs: Takes the URL of a database, which may not exist yet, and the name of a study, or None
            for all. Returns their jobs that wait or run, drivers before nodes, as a list of
            `hpsearch.domain.plugins.queued.QueuedJob`; an empty one at once if there is no queue.
        cancel: Takes the same, takes the study's jobs out of the queue, and returns them.
        again: The command of `HPSEARCH_SUBMIT`, by the folder of the study file (`str` or None),
            the study's name and the URL; None if it was not started by this launcher.
        inside: What runs another command in a job when it stands before it, such as ``srun``.
    """

    jobs: str
    cancel: str
    again: str
    inside: str = ""


@dataclass(frozen=True)
class WatchPlugin:
    """Watches a study from inside its driver: `hpsearch run --NAME TEXT`, or the environment
    variable `HPSEARCH_NAME`.

    Attributes:
        metavar: The text in short, such as PORT.
        help: What the option is for.
        watch: Takes the name of a study and the text, and returns a context manager around its run,
            of a `hpsearch.running.study_run.watching.Watch`. May raise `hpsearch.errors.UserError`.
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
    | LauncherPlugin
    | WatchPlugin
)
