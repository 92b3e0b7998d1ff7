"""Objectives of Optuna as training functions: ``task: {kind: my_module:objective, library:
optuna}``.

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        for step in range(10):
            ...
            trial.report(accuracy, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return accuracy

The objective is called as Optuna calls it, with a trial (`ObjectiveTrial`) that talks to the study
which runs it. Its return value is the report at the full budget. A script that calls
`study.optimize` by itself is imported up to there. ``kind: my_script:__main__`` is what a script
calls `study.optimize` with, wherever its objective is from.

Such a script is run as Python runs it, so its search may be made anywhere: under the main guard, in
a function, from arguments. Its studies are kept in memory, whatever storage they name, and nothing
is searched. The first call of `optimize` ends the script; what it was called with is the
`ScriptSearch`.
"""

import ast
import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import optuna
from optuna.exceptions import TrialPruned
from optuna.storages import InMemoryStorage
from optuna.storages import journal as journals

from hpsearch.plugins.optuna.objective_trial import ObjectiveTrial
from trials import script
from trials.contract import Problem, Pruned, TaskError
from trials.foreign import code_of, in_words, text_of
from trials.tasks.function import own
from trials.tasks.function.function_task import SCRIPT, file_of
from trials.tasks.function.run import Function
from trials.tasks.function.trial import FunctionTrial

MAIN = "__main__"


@dataclass
class ScriptSearch:
    """A call of `study.optimize` that a script has made."""

    study: optuna.Study  # in memory, with the trials that were enqueued
    called_with: Mapping[str, Any]  # the arguments of `optimize`, by name
    module: ModuleType  # the script

    @property
    def objective(self) -> Callable[[optuna.Trial], Any]:
        found: Callable[[optuna.Trial], Any] = self.called_with["func"]
        return found

    @property
    def directions(self) -> tuple[str, ...]:
        return tuple(each.name.lower() for each in self.study.directions)

    @contextmanager
    def as_main(self) -> Iterator[None]:
        """The script is the main module, where processes that it starts look for its functions."""
        before, sys.modules[MAIN] = sys.modules[MAIN], self.module
        try:
            yield
        finally:
            sys.modules[MAIN] = before


class SearchBegins(BaseException):
    """Ends a script where its search begins, or refuses it with a reason."""


@dataclass
class Recorder:
    """The studies of a script that is run, and its search."""

    module: ModuleType
    search: ScriptSearch | None = None
    refusal: str | None = None
    memory: InMemoryStorage = field(default_factory=InMemoryStorage)
    storages: list[Any] = field(default_factory=list)
    """The storages that studies were to be kept in."""
    arguments: dict[str, Any] = field(default_factory=dict)
    """The values of its command line that are not defaults, as argparse has read them."""

    def refuse(self, why: str) -> None:
        """End the script, which searches in a way that cannot be carried over."""
        script.end_import()
        self.refusal = self.refusal or why
        raise SearchBegins(why)


_recorder: Recorder | None = None
_running = threading.RLock()
_imported: dict[str, Recorder] = {}
"""By the name of a module that is imported for its objective, and searches without a guard."""
_run: dict[tuple[Path, str], Recorder] = {}  # by a script and its arguments


def run_to_search(file: Path, arguments: Mapping[str, Any], *words: str) -> Recorder:
    """Run a script up to its search, once in a process. Its command line is `words`; where that is
    empty, argparse reads the arguments. Raises TaskError if it fails, ends without a search, or
    searches in a way that is refused."""
    key = (file.resolve(), repr((sorted(arguments.items()), words)))
    with _running:
        if key not in _run:
            _run[key] = _recorded(file, arguments, words)
        return _run[key]


def _recorded(file: Path, arguments: Mapping[str, Any], words: tuple[str, ...]) -> Recorder:
    global _recorder
    module = ModuleType(MAIN)
    module.__file__ = str(file)
    recorder = _recorder = Recorder(module)
    before = sys.modules[MAIN], sys.argv, sys.dont_write_bytecode
    sys.modules[MAIN], sys.argv, sys.dont_write_bytecode = module, [str(file), *words], True
    own.look_in(file.resolve().parent)
    ended = "ends without a call of study.optimize"
    try:
        with (
            script.in_trial(SimpleNamespace(get=dict(arguments).get)),
            script.parsed_arguments(recorder.arguments),
        ):
            SourceFileLoader(MAIN, str(file)).exec_module(module)
    except SystemExit as end:
        ended = f"calls sys.exit({code_of(end.code)}) before study.optimize"
        if end.code == 2:  # of argparse
            ended += "; where it needs arguments, name them after it, or under task.args"
    except SearchBegins:
        pass
    except Exception as error:  # noqa: BLE001 - of any script
        ended = f"fails before study.optimize: {in_words(error)}"
    finally:
        _recorder = None
        sys.modules[MAIN], sys.argv, sys.dont_write_bytecode = before
    if recorder.search is None or recorder.refusal:
        raise TaskError.at("task.kind", f"{file.name} {recorder.refusal or ended}")
    return recorder


def imported_search(module_name: str) -> ScriptSearch | None:
    """The search that ended the import of a module, which has no main guard; None without one."""
    found = _imported.get(own.name_of(module_name))
    return None if found is None else found.search


def directions_in(text: str, objective: str) -> tuple[str, ...] | None:
    """The directions that a script's calls of `create_study` state, without those of its objective,
    which may search by itself; None if they are not constants, or differ."""
    tree = ast.parse(text)
    tree.body = [each for each in tree.body if getattr(each, "name", None) != objective]
    found: set[tuple[str, ...]] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith("create_study"):
            continue
        stated = {each.arg: each.value for each in node.keywords}
        one = ast.List([stated.get("direction", ast.Constant("minimize"))])
        try:
            literal = ast.literal_eval(stated.get("directions", one))
        except ValueError:  # not a constant
            return None
        if None in stated:  # **named
            return None
        found.add(tuple(each or "minimize" for each in literal))
    return found.pop() if len(found) == 1 else None


# --------------------------------------------------------------------------------------- objectives


def adapt(found: Any, task: Mapping[str, Any]) -> Function:
    """An objective, or that of a script, as a function that takes `(params, trial)`. Raises
    TaskError if it cannot be called with a trial alone."""
    module_name, _, name = task["kind"].partition(":")
    if isinstance(found, Path):
        recorder = run_to_search(found, task.get("args") or {})
        assert recorder.search is not None
        return _function(recorder.search.objective, recorder.search)
    if isinstance(found, type):
        example = f"{name.lower()} = {name}(...)"
        raise _mistake(f"{name} is a class; name an object of it that the module makes: {example}")
    if not callable(found):
        raise _mistake(f"{name} is not an objective; write def {name}(trial)")
    signature = inspect.signature(found)
    try:
        signature.bind(None)
    except TypeError:
        what = f"{name}{text_of(signature)} cannot be called with a trial alone"
        raise _mistake(f"{what}; write def {name}(trial)") from None
    return _function(found, imported_search(module_name))


def _function(objective: Callable[[ObjectiveTrial], Any], search: ScriptSearch | None) -> Function:
    stated = None if search is None else search.study
    measure = getattr(None if stated is None else stated.sampler, "_constraints_func", None)

    def train(params: Mapping[str, Any], trial: FunctionTrial) -> None:
        of_optuna = ObjectiveTrial(params, trial, stated)
        try:
            if search is None:
                returned = objective(of_optuna)
            else:
                with search.as_main():
                    returned = objective(of_optuna)
        except TrialPruned as pruned:
            if measure is not None:
                of_optuna.constrain(measure)
            why = text_of(pruned) or "the objective raised TrialPruned"
            raise Pruned(why) from pruned
        if measure is not None:
            of_optuna.constrain(measure)
        of_optuna.finish(returned)

    return train


def problems_with(task: Mapping[str, Any], base: Path, directions: Sequence[str]) -> list[Problem]:
    """The problem of a study file with other directions than its script, where that shows them."""
    stated = _directions(task, base)
    if stated is None or not directions or stated == tuple(directions):
        return []
    where = "objective.direction" if len(directions) == 1 else "objective"
    module_name = task["kind"].partition(":")[0]
    what = f"is {', '.join(directions)} here, and {', '.join(stated)} in {module_name}"
    return [Problem(where, f"{what}: make both the same")]


def _directions(task: Mapping[str, Any], base: Path) -> tuple[str, ...] | None:
    module_name, _, name = task["kind"].partition(":")
    if name == SCRIPT:
        recorder = run_to_search(file_of(task["kind"], base), task.get("args") or {})
        search = recorder.search
    else:
        search = imported_search(module_name)
    if search is not None:
        return search.directions
    file = getattr(sys.modules[own.name_of(module_name)], "__file__", None) or ""
    if not file.endswith(".py"):
        return None
    return directions_in(Path(file).read_text(encoding="utf-8"), name)


def _mistake(what: str) -> TaskError:
    return TaskError.at("task.kind", what)


# ------------------------------------------------------------------------------- what scripts call


def _recording() -> Recorder | None:
    """The recorder of the script that runs, or the module that is imported, if there is one."""
    name = script.imported_now()
    if _recorder is not None or name is None:
        return _recorder
    return _imported.setdefault(name, Recorder(sys.modules[name]))


def _in_place_of(owner: Any, name: str, record: Callable[..., Any]) -> None:
    """While a script is recorded, `record(recorder, original, *arguments)` is called in place of a
    function or method of Optuna's."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def called(*args: Any, **named: Any) -> Any:
        recorder = _recording()
        if recorder is None:
            return original(*args, **named)
        return record(recorder, original, *args, **named)

    setattr(owner, name, called)


def _optimize(recorder: Recorder, original: Any, *args: Any, **named: Any) -> None:
    bound = inspect.signature(original).bind(*args, **named)
    bound.apply_defaults()
    study = bound.arguments["self"]
    if type(study) is not optuna.Study:
        kind = f"{type(study).__module__.partition('.')[0]}, which searches in several steps"
        recorder.refuse(f"leaves its search to {kind}; write an objective for study.optimize")
    if recorder.search is None:
        recorder.search = ScriptSearch(study, bound.arguments, recorder.module)
    script.end_import()
    raise SearchBegins


def _storage(recorder: Recorder, original: Any, storage: Any = None) -> Any:
    if isinstance(storage, InMemoryStorage) or type(storage).__module__.startswith("hpsearch."):
        return storage
    if storage is not None:
        recorder.storages.append(storage)
    return recorder.memory


def _load_study(recorder: Recorder, original: Any, **named: Any) -> Any:
    try:
        return original(**{**named, "storage": recorder.memory})
    except (KeyError, ValueError):
        name = named.get("study_name")
        what = f"loads the study {name!r} of a storage, whose directions it does not state"
        recorder.refuse(f"{what}: make it in the script, by optuna.create_study")


def _ask(recorder: Recorder, *args: Any, **named: Any) -> None:
    recorder.refuse("asks for trials itself: docs/ask-and-tell.md has study.ask and study.tell")


_in_place_of(optuna.Study, "optimize", _optimize)
_in_place_of(optuna.Study, "ask", _ask)
_in_place_of(optuna.storages, "get_storage", _storage)
for _owner in (optuna, optuna.study):
    _in_place_of(_owner, "load_study", _load_study)
    _in_place_of(_owner, "delete_study", lambda *args, **named: None)
for _class in (
    optuna.storages.RDBStorage,
    optuna.storages.JournalStorage,
    optuna.storages.GrpcStorageProxy,
    journals.JournalFileBackend,
    journals.JournalRedisBackend,
):
    _in_place_of(_class, "__init__", lambda *args, **named: None)  # not opened
