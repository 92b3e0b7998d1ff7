"""Errors that their reader can do something about. This module imports nothing of ours.

The tree of errors::

    HpsearchError
    ├── UserError                a mistake in a study file, data or arguments      exit 2
    │   ├── SpecError            the study file: every problem, each with its place
    │   ├── DataError            the data a task was pointed at
    │   ├── FilterError          a --where or --sort expression
    │   ├── StudyExists          a name is taken; resume it instead
    │   └── StudyNotFound        no study of that name in this database
    ├── Unreachable              what the program depends on: trying again may help   exit 3
    │   ├── StoreUnreachable     the database cannot be opened, read or written
    │   │   ├── StoreUnusable    nor will it be, until somebody changes something  exit 2
    │   │   │   └── NoDatabase   there is none yet
    │   │   └── StoreBusy        others kept the database locked for too long
    │   ├── Damaged              the database holds what this program never writes exit 2
    │   ├── Unusable             the cluster or this machine, until it is changed  exit 2
    │   ├── ClusterLost          the cluster was there, and went away
    │   └── DiskFull             the disk of the checkpoints stayed full
    ├── StudyHeld                another driver owns the study                     exit 4
    │   └── LeaseLost            it did own it, and another driver took it over
    ├── AttemptLost              an attempt that was asked for may report no more  exit 4
    ├── StoppedOnRequest         somebody asked for the end: `hpsearch stop`       exit 5
    └── Interrupted              stopped by a signal; everything is saved          exit 130

Everything else that escapes is a bug and keeps its traceback (exit 1). `hpsearch.cli.streams` has
141, for results that nobody reads.
"""


class HpsearchError(Exception):
    """Base of all errors written for the reader: `message` says what is wrong and where, `hint`
    what to do next; None if the message already says it."""

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n  {self.hint}"


class UserError(HpsearchError):
    """The user's mistake: study file, data or arguments."""

    exit_code = 2


class SpecError(UserError):
    """A study file with problems, each a finished line with its place and remedy, such as
    ``study.yaml:12: space.lr.low: 0.1 is above high (0.01); swap them``."""

    def __init__(self, problems: list[str]) -> None:
        count = f"{len(problems)} problem" + ("s" if len(problems) != 1 else "")
        super().__init__("\n".join([f"{count} found:", *(f"  {p}" for p in problems)]))
        self.problems = problems


class DataError(UserError):
    """The data a task was pointed at cannot be used as it is."""


class FilterError(UserError):
    """A --where or --sort expression that does not parse or names an unknown column."""


class StudyExists(UserError):
    """A study of that name is already in the database."""


class StudyNotFound(UserError):
    """No study of that name is in the database."""


class Unreachable(HpsearchError):
    """Something the program depends on cannot be reached or used."""

    exit_code = 3


class StoreUnreachable(Unreachable):
    """The database cannot be opened, read or written."""


class StoreUnusable(StoreUnreachable):
    """The database cannot be used as it is. Waiting does not help."""

    exit_code = 2


class NoDatabase(StoreUnusable):
    """No study has made the database yet."""


class StoreBusy(StoreUnreachable):
    """Others kept the database locked for longer than this program waits. Nothing was written."""


class Damaged(Unreachable):
    """The database holds what this program never writes. Waiting does not help."""

    exit_code = 2

    def __init__(
        self,
        what: str,
        hint: str = "restore a backup; this lists where it is damaged: hpsearch db check",
    ) -> None:
        super().__init__(f"the database is damaged: {what}", hint)
        self.what = what


class Unusable(Unreachable):
    """The cluster or this machine cannot be used as it is. Waiting does not help."""

    exit_code = 2


class DiskFull(Unreachable):
    """No checkpoint could be written for too long. What was saved before stays."""


class ClusterLost(Unreachable):
    """The Ray cluster went away under a driver. Threads of Ray may wait for it forever."""


class StudyHeld(HpsearchError):
    """Another driver owns the study."""

    exit_code = 4


class LeaseLost(StudyHeld):
    """This driver owned the study, and another took it over: it may write nothing more."""


class AttemptLost(HpsearchError):
    """An attempt of a trial that a process had asked for is not current any more: the process was
    taken for dead and the trial goes on elsewhere, or it was silent for too long and has failed.
    Nothing was written."""

    exit_code = 4


class StoppedOnRequest(HpsearchError):
    """Somebody asked for the end of the study, which is saved."""

    exit_code = 5


class Interrupted(HpsearchError):
    """Stopped by a signal with everything saved."""

    exit_code = 130
