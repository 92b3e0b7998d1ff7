"""The parts of the state of Python and its process: how each is read, and put back."""

import builtins
import decimal
import gc
import locale
import logging
import multiprocessing
import os
import resource
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

ENVIRONMENT, FILTERS = "environment variables", "warning filters"


@dataclass(frozen=True)
class StatePart:
    """A part of the state of this process: how it is read, and put back."""

    name: str
    read: Callable[[], Any]
    put: Callable[[Any], object]


def attribute(owner: Any, name: str, words: str = "") -> StatePart:
    return StatePart(
        words or name, lambda: getattr(owner, name), lambda value: setattr(owner, name, value)
    )


def pair(owner: Any, read: str, put: str, words: str = "") -> StatePart:
    return StatePart(words or read, getattr(owner, read), getattr(owner, put))


def of_python() -> list[StatePart]:
    """The parts that every process has."""
    handled = sorted(signal.valid_signals())
    limits = [number for name, number in vars(resource).items() if name.startswith("RLIMIT_")]
    parts = [
        StatePart("its working directory", os.getcwd, os.chdir),
        StatePart(ENVIRONMENT, lambda: dict(os.environ), _put_environment),
        StatePart("the umask", _umask, os.umask),
        StatePart(
            "signal handlers",
            lambda: {number: signal.getsignal(number) for number in handled},
            _put_handlers,
        ),
        StatePart(
            "blocked signals",
            lambda: signal.pthread_sigmask(signal.SIG_BLOCK, ()),
            lambda mask: signal.pthread_sigmask(signal.SIG_SETMASK, mask),
        ),
        StatePart(
            "limits of its resources",
            lambda: {number: resource.getrlimit(number) for number in limits},
            _put_limits,
        ),
        StatePart(
            "its priority",
            lambda: os.getpriority(os.PRIO_PROCESS, 0),
            lambda value: os.setpriority(os.PRIO_PROCESS, 0, value),
        ),
        StatePart(
            "the locale",
            lambda: locale.setlocale(locale.LC_ALL),
            lambda value: locale.setlocale(locale.LC_ALL, value),
        ),
        StatePart("the time zone", lambda: (time.tzname, time.timezone), lambda _: time.tzset()),
        StatePart(
            "sys.path", lambda: list(sys.path), lambda value: setattr(sys, "path", list(value))
        ),
        StatePart(
            "sys.argv", lambda: list(sys.argv), lambda value: setattr(sys, "argv", list(value))
        ),
        StatePart("sys.stdin", *_stream("stdin")),
        StatePart("sys.stdout", *_stream("stdout")),
        StatePart("sys.stderr", *_stream("stderr")),
        *(
            attribute(sys, name, f"sys.{name}")
            for name in ("excepthook", "displayhook", "unraisablehook", "dont_write_bytecode")
        ),
        attribute(threading, "excepthook", "threading.excepthook"),
        pair(sys, "getrecursionlimit", "setrecursionlimit"),
        pair(sys, "getswitchinterval", "setswitchinterval"),
        pair(sys, "get_int_max_str_digits", "set_int_max_str_digits"),
        pair(sys, "gettrace", "settrace"),
        pair(sys, "getprofile", "setprofile"),
        StatePart("builtins", lambda: dict(vars(builtins)), _put_builtins),
        StatePart(FILTERS, lambda: list(warnings.filters), _put_filters),
        attribute(warnings, "showwarning"),
        attribute(warnings, "formatwarning"),
        attribute(logging.root.manager, "disable", "logging.disable"),
        pair(logging, "getLoggerClass", "setLoggerClass"),
        pair(logging, "getLogRecordFactory", "setLogRecordFactory"),
        StatePart("gc", gc.isenabled, lambda is_on: gc.enable() if is_on else gc.disable()),
        StatePart("gc thresholds", gc.get_threshold, lambda values: gc.set_threshold(*values)),
        StatePart("the decimal context", _decimal, _put_decimal),
        pair(socket, "getdefaulttimeout", "setdefaulttimeout"),
        attribute(tempfile, "tempdir"),
        StatePart(
            "the start method of processes",
            lambda: multiprocessing.get_start_method(allow_none=True),
            lambda method: multiprocessing.set_start_method(method, force=True),
        ),
    ]
    for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        parts.append(_timer(timer))
    if hasattr(os, "sched_getaffinity"):
        get, put = os.sched_getaffinity, os.sched_setaffinity
        parts.append(StatePart("its processors", lambda: get(0), lambda those: put(0, those)))
    return parts


def _timer(number: int) -> StatePart:
    return StatePart(
        "a timer", lambda: any(signal.getitimer(number)), lambda _: signal.setitimer(number, 0)
    )


def _umask() -> int:
    now = os.umask(0o077)
    os.umask(now)
    return now


def _put_environment(before: Mapping[str, str]) -> None:
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


def _put_handlers(before: Mapping[signal.Signals, Any]) -> None:
    for number, handler in before.items():
        if signal.getsignal(number) != handler:
            signal.signal(number, handler)


def _put_limits(before: Mapping[int, tuple[int, int]]) -> None:
    for number, limit in before.items():
        if resource.getrlimit(number) != limit:
            resource.setrlimit(number, limit)


def _stream(name: str) -> tuple[Callable[[], Any], Callable[[Any], object]]:
    def read() -> Any:
        stream = getattr(sys, name)
        return stream, getattr(stream, "closed", None)

    def put(before: Any) -> None:
        with suppress(Exception):
            getattr(sys, name).flush()
        setattr(sys, name, before[0])

    return read, put


def _put_builtins(before: Mapping[str, Any]) -> None:
    now = vars(builtins)
    for name in now.keys() - before.keys():
        del now[name]
    now.update(before)


def _put_filters(before: Sequence[Any]) -> None:
    warnings.resetwarnings()  # so that what each module has shown is forgotten, too
    warnings.filters[:] = before  # type: ignore[index]


def _decimal() -> tuple[Any, ...]:
    now = decimal.getcontext()
    traps = [each for each, is_on in now.traps.items() if is_on]
    return now.prec, now.rounding, now.Emin, now.Emax, now.capitals, now.clamp, traps


def _put_decimal(before: tuple[Any, ...]) -> None:
    prec, rounding, low, high, capitals, clamp, traps = before
    context = decimal.Context(prec, rounding, low, high, capitals, clamp, [], traps)
    decimal.setcontext(context)


class Loggers:
    def __init__(self) -> None:
        self._before = {logger: _settings(logger) for logger in _loggers()}

    def put_back(self, new_modules: Set[str]) -> None:
        """Put them back, except of loggers that new modules have made while they were imported."""
        for logger in _loggers():
            before = self._before.get(logger)
            if before is None and logger.name.partition(".")[0] in new_modules:
                continue
            before = before or {"level": 0, "handlers": [], "propagate": True, "filters": []}
            for handler in list(logger.handlers):
                if handler not in before["handlers"]:
                    logger.removeHandler(handler)
                    with suppress(Exception):
                        handler.close()
            vars(logger).update({"disabled": False, **_copied(before)})
        logging.root.manager._clear_cache()  # type: ignore[attr-defined]


def _loggers() -> list[logging.Logger]:
    known = logging.root.manager.loggerDict.values()
    return [logging.root, *(each for each in known if isinstance(each, logging.Logger))]


def _settings(logger: logging.Logger) -> dict[str, Any]:
    names = ("level", "handlers", "propagate", "disabled", "filters")
    return _copied({name: getattr(logger, name) for name in names})


def _copied(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, list) else value for name, value in settings.items()
    }
