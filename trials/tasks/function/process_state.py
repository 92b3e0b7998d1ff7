"""The state of a process that training code may change, put back before the next trial.

What a module keeps in its own variables is left as it is: `hpsearch check` looks for its effects.
"""

import atexit
import builtins
import decimal
import gc
import importlib.abc
import importlib.util
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
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from trials.devices.memory import LEAK_BYTES, allocated_bytes, release_memory

HEAVY = "torch"
"""The library whose import takes long, and whose state is put back."""
JOIN_S = 1.0
"""The time in which threads may end by themselves."""
_STAYING = ("tqdm",)
"""The packages whose threads do nothing between two trials."""


@dataclass(frozen=True)
class Part:
    """A part of the state of this process: how it is read, and put back."""

    name: str
    read: Callable[[], Any]
    put: Callable[[Any], object]


def _attribute(owner: Any, name: str, words: str = "") -> Part:
    return Part(
        words or name, lambda: getattr(owner, name), lambda value: setattr(owner, name, value)
    )


def _pair(owner: Any, read: str, put: str, words: str = "") -> Part:
    return Part(words or read, getattr(owner, read), getattr(owner, put))


class ProcessState:
    """The state of this process at one moment."""

    def __init__(self) -> None:
        self._threads = set(threading.enumerate())
        self._modules = set(sys.modules)
        self._memory: dict[str, int | None] = {}
        self._before: list[tuple[Part, Any]] = []
        self._note(_of_python())
        noted = {part.name: value for part, value in self._before}
        self._environment: dict[str, str] = noted[_ENVIRONMENT]
        self._filters: list[Any] = noted[_FILTERS]
        for library in _OF_LIBRARIES:
            if library in sys.modules:
                self._note_library(library)
        self._loggers = {logger: _facts(logger) for logger in _loggers()}

    def note_import(self, name: str, before: Mapping[str, str], filters: Sequence[object]) -> bool:
        """Note the state of a library that has just been imported, where the environment variables
        and the filters of warnings were these before; what it has added to them stays. True if the
        trial had changed no variable."""
        is_unchanged = before == self._environment
        added = {each: value for each, value in os.environ.items() if each not in before}
        self._environment.update(added)
        self._filters[:0] = [each for each in warnings.filters if each not in filters]
        self._note_library(name)
        return is_unchanged

    def _note_library(self, name: str) -> None:
        self._note(_OF_LIBRARIES[name](sys.modules[name]))

    def _note(self, parts: Sequence[Part]) -> None:
        for part in parts:
            with suppress(Exception):  # another version of a library has it not
                self._before.append((part, part.read()))

    def put_back(self, device: str) -> list[str]:
        """Put everything back. Returns the names of what cannot be."""
        left = []
        for part, before in self._before:
            try:
                if part.read() != before:
                    part.put(before)
                is_back = bool(part.read() == before)
            except Exception:  # noqa: BLE001 - of what was put in its place, or a limit
                is_back = False
            if not is_back:
                left.append(part.name)
        self._put_back_loggers()
        torch = sys.modules.get(HEAVY)
        if torch is not None:
            torch.set_flush_denormal(False)
            if "torch._dynamo" in sys.modules:
                torch._dynamo.reset()
        release_memory()
        return left + self._left_behind(device)

    def _put_back_loggers(self) -> None:
        new = set(sys.modules) - self._modules
        for logger in _loggers():
            before = self._loggers.get(logger)
            if before is None and logger.name.partition(".")[0] in new:
                continue  # a library has made it while it was imported
            before = before or {"level": 0, "propagate": True, "disabled": False}
            for handler in list(logger.handlers):
                if handler not in before.get("handlers", ()):
                    logger.removeHandler(handler)
                    with suppress(Exception):
                        handler.close()
            vars(logger).update({"handlers": [], "filters": [], **_copied(before)})
        logging.root.manager._clear_cache()  # type: ignore[attr-defined]

    def _left_behind(self, device: str) -> list[str]:
        left = []
        give_up = time.monotonic() + JOIN_S
        for thread in set(threading.enumerate()) - self._threads:
            if type(thread).__module__.partition(".")[0] in _STAYING:
                continue
            thread.join(max(0.0, give_up - time.monotonic()))
            if thread.is_alive():
                left.append(f"the thread {thread.name}")
        distributed = sys.modules.get("torch.distributed")
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            left.append("a process group")
        bytes_left = allocated_bytes(device) or 0
        if bytes_left > LEAK_BYTES:
            left.append(f"{bytes_left >> 20} MiB of GPU memory")
        return left

    @contextmanager
    def exits_within(self, folder: Path) -> Iterator[None]:
        """Call what code in a folder registers for the end of its process at the end of its trial:
        the process goes on."""
        register, unregister = atexit.register, atexit.unregister
        calls: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []
        inside = f"{folder}{os.sep}"

        def note(function: Any, *args: Any, **named: Any) -> Any:
            if not sys._getframe(1).f_code.co_filename.startswith(inside):
                return register(function, *args, **named)
            calls.append((function, args, named))
            return function

        def forget(function: Any) -> None:
            calls[:] = [call for call in calls if call[0] != function]
            unregister(function)

        atexit.register, atexit.unregister = note, forget  # type: ignore[assignment]
        try:
            yield
        finally:
            atexit.register, atexit.unregister = register, unregister
            for function, args, named in reversed(calls):
                try:
                    function(*args, **named)
                except Exception:  # noqa: BLE001 - as at the end of a process
                    traceback.print_exc()


class ImportWatch(importlib.abc.MetaPathFinder):
    """A context in which `call` is called as soon as a module has been imported, with its name,
    and the environment variables and the filters of warnings before."""

    def __init__(
        self, name: str, call: Callable[[str, Mapping[str, str], Sequence[object]], None]
    ) -> None:
        self._name, self._call = name, call

    def __enter__(self) -> None:
        if self._name not in sys.modules:
            sys.meta_path.insert(0, self)

    def __exit__(self, *_: object) -> None:
        with suppress(ValueError):
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        if name != self._name:
            return None
        self.__exit__()
        spec = importlib.util.find_spec(name)
        loader = None if spec is None else spec.loader
        if loader is not None:
            load = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                before, filters = dict(os.environ), list(warnings.filters)
                load(module)
                self._call(name, before, filters)

            loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


# ------------------------------------------------------------------------------------- the parts


_ENVIRONMENT, _FILTERS = "environment variables", "warning filters"


def _of_python() -> list[Part]:
    handled = sorted(signal.valid_signals())
    limits = [number for name, number in vars(resource).items() if name.startswith("RLIMIT_")]
    parts = [
        Part("its working directory", os.getcwd, os.chdir),
        Part(_ENVIRONMENT, lambda: dict(os.environ), _put_environment),
        Part("the umask", _umask, os.umask),
        Part(
            "signal handlers",
            lambda: {number: signal.getsignal(number) for number in handled},
            _put_handlers,
        ),
        Part(
            "blocked signals",
            lambda: signal.pthread_sigmask(signal.SIG_BLOCK, ()),
            lambda mask: signal.pthread_sigmask(signal.SIG_SETMASK, mask),
        ),
        Part(
            "limits of its resources",
            lambda: {number: resource.getrlimit(number) for number in limits},
            _put_limits,
        ),
        Part(
            "its priority",
            lambda: os.getpriority(os.PRIO_PROCESS, 0),
            lambda value: os.setpriority(os.PRIO_PROCESS, 0, value),
        ),
        Part(
            "the locale",
            lambda: locale.setlocale(locale.LC_ALL),
            lambda value: locale.setlocale(locale.LC_ALL, value),
        ),
        Part("the time zone", lambda: (time.tzname, time.timezone), lambda _: time.tzset()),
        Part("sys.path", lambda: list(sys.path), lambda value: setattr(sys, "path", list(value))),
        Part("sys.argv", lambda: list(sys.argv), lambda value: setattr(sys, "argv", list(value))),
        Part("sys.stdin", *_stream("stdin")),
        Part("sys.stdout", *_stream("stdout")),
        Part("sys.stderr", *_stream("stderr")),
        *(
            _attribute(sys, name, f"sys.{name}")
            for name in ("excepthook", "displayhook", "unraisablehook", "dont_write_bytecode")
        ),
        _attribute(threading, "excepthook", "threading.excepthook"),
        _pair(sys, "getrecursionlimit", "setrecursionlimit"),
        _pair(sys, "getswitchinterval", "setswitchinterval"),
        _pair(sys, "get_int_max_str_digits", "set_int_max_str_digits"),
        _pair(sys, "gettrace", "settrace"),
        _pair(sys, "getprofile", "setprofile"),
        Part("builtins", lambda: dict(vars(builtins)), _put_builtins),
        Part(_FILTERS, lambda: list(warnings.filters), _put_filters),
        _attribute(warnings, "showwarning"),
        _attribute(warnings, "formatwarning"),
        _attribute(logging.root.manager, "disable", "logging.disable"),
        _pair(logging, "getLoggerClass", "setLoggerClass"),
        _pair(logging, "getLogRecordFactory", "setLogRecordFactory"),
        Part("gc", gc.isenabled, lambda is_on: gc.enable() if is_on else gc.disable()),
        Part("gc thresholds", gc.get_threshold, lambda values: gc.set_threshold(*values)),
        Part("the decimal context", _decimal, _put_decimal),
        _pair(socket, "getdefaulttimeout", "setdefaulttimeout"),
        _attribute(tempfile, "tempdir"),
        Part(
            "the start method of processes",
            lambda: multiprocessing.get_start_method(allow_none=True),
            lambda method: multiprocessing.set_start_method(method, force=True),
        ),
    ]
    for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        parts.append(_timer(timer))
    if hasattr(os, "sched_getaffinity"):
        get, put = os.sched_getaffinity, os.sched_setaffinity
        parts.append(Part("its processors", lambda: get(0), lambda those: put(0, those)))
    return parts


def _timer(number: int) -> Part:
    return Part(
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


def _loggers() -> list[logging.Logger]:
    known = logging.root.manager.loggerDict.values()
    return [logging.root, *(each for each in known if isinstance(each, logging.Logger))]


def _facts(logger: logging.Logger) -> dict[str, Any]:
    names = ("level", "handlers", "propagate", "disabled", "filters")
    return _copied({name: getattr(logger, name) for name in names})


def _copied(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, list) else value for name, value in facts.items()
    }


def _of_numpy(numpy: Any) -> list[Part]:
    return [
        Part("numpy.seterr", numpy.geterr, lambda before: numpy.seterr(**before)),
        Part(
            "numpy's print options",
            numpy.get_printoptions,
            lambda before: numpy.set_printoptions(**before),
        ),
    ]


def _of_torch(torch: Any) -> list[Part]:
    backends, cuda = torch.backends, torch.backends.cuda
    parts = [
        _pair(torch, "get_default_dtype", "set_default_dtype"),
        Part("torch's default device", lambda: _default_device(torch), torch.set_default_device),
        Part(
            "torch's determinism",
            lambda: (
                torch.are_deterministic_algorithms_enabled(),
                torch.is_deterministic_algorithms_warn_only_enabled(),
            ),
            lambda before: torch.use_deterministic_algorithms(before[0], warn_only=before[1]),
        ),
        _attribute(torch.utils.deterministic, "fill_uninitialized_memory"),
        _pair(torch, "get_num_threads", "set_num_threads", "torch's threads"),
        _pair(torch, "is_grad_enabled", "set_grad_enabled", "torch's grad mode"),
        _pair(torch, "get_float32_matmul_precision", "set_float32_matmul_precision"),
        _pair(torch, "is_warn_always_enabled", "set_warn_always"),
        Part(
            "torch's anomaly mode",
            lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
            lambda before: torch.set_anomaly_enabled(*before),
        ),
        Part(
            "torch's print options",
            lambda: dict(vars(torch._tensor_str.PRINT_OPTS)),
            lambda before: vars(torch._tensor_str.PRINT_OPTS).update(before),
        ),
        _attribute(backends.mkldnn, "enabled", "mkldnn.enabled"),
    ]
    for name in ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32"):
        parts.append(_attribute(backends.cudnn, name, f"cudnn.{name}"))
    for name in ("tf32", "fp16_reduced_precision_reduction", "bf16_reduced_precision_reduction"):
        parts.append(_attribute(cuda.matmul, f"allow_{name}", f"matmul.allow_{name}"))
    for name in ("flash", "mem_efficient", "math", "cudnn"):
        parts.append(_pair(cuda, f"{name}_sdp_enabled", f"enable_{name}_sdp"))
    for device in ("cpu", "cuda"):
        parts += _autocast(torch, device)
    sharing = sys.modules.get("torch.multiprocessing")
    if sharing is not None:
        parts.append(_pair(sharing, "get_sharing_strategy", "set_sharing_strategy"))
    return parts


def _default_device(torch: Any) -> Any:
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return None if context is None else context.device


def _autocast(torch: Any, device: str) -> list[Part]:
    return [
        Part(
            f"autocast on {device}",
            lambda: torch.is_autocast_enabled(device),
            lambda is_on: torch.set_autocast_enabled(device, is_on),
        ),
        Part(
            f"the dtype of autocast on {device}",
            lambda: torch.get_autocast_dtype(device),
            lambda dtype: torch.set_autocast_dtype(device, dtype),
        ),
    ]


_OF_LIBRARIES: Mapping[str, Callable[[Any], list[Part]]] = {"numpy": _of_numpy, "torch": _of_torch}
