"""The state of a process that training code may change, put back before the next trial.

What a module keeps in its own variables is left as it is: `hpsearch check` looks for its effects.
"""

import atexit
import importlib.abc
import importlib.util
import os
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from trials.devices.memory import LEAK_BYTES, allocated_bytes, release_memory
from trials.tasks.function.library_state import OF_LIBRARIES
from trials.tasks.function.python_state import ENVIRONMENT, FILTERS, Loggers, StatePart, of_python

HEAVY = "torch"  # the library whose import takes long, and whose state is put back
JOIN_S = 1.0  # the time in which threads may end by themselves
_STAYING = ("tqdm",)  # the packages whose threads do nothing between two trials


class ProcessState:
    """The state of this process at one moment."""

    def __init__(self) -> None:
        self._threads = set(threading.enumerate())
        self._modules = set(sys.modules)
        self._before: list[tuple[StatePart, Any]] = []
        self._note(of_python())
        noted = {part.name: value for part, value in self._before}
        self._environment: dict[str, str] = noted[ENVIRONMENT]
        self._filters: list[Any] = noted[FILTERS]
        for library in OF_LIBRARIES:
            if library in sys.modules:
                self._note_library(library)
        self._loggers = Loggers()

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
        self._note(OF_LIBRARIES[name](sys.modules[name]))

    def _note(self, parts: Sequence[StatePart]) -> None:
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
        self._loggers.put_back(set(sys.modules) - self._modules)
        torch = sys.modules.get(HEAVY)
        if torch is not None:
            torch.set_flush_denormal(False)
            if "torch._dynamo" in sys.modules:
                torch._dynamo.reset()
        release_memory()
        return left + self._left_behind(device)

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
