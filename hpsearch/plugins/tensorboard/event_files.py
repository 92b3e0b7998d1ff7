"""Reports in TensorBoard's event files, which a program writes while it trains.

A report is a step that has the study's objective, with the newest value of every other tag. In a
folder below the one that is named, a tag is called `FOLDER/TAG`, as `validation/epoch_loss`.
"""

import math
import time
from collections.abc import Collection, Iterator
from importlib.util import find_spec
from os.path import commonpath
from pathlib import Path
from typing import Any

from trials.contract import ProgramFailed
from trials.running.reported import metric_name, number_of
from trials.settings import some

STEP = "step"
LOOK_S = 1.0  # between two looks at the files
FILES = "*.tfevents.*"


class EventFiles:
    """Files of TensorBoard's format (`trials.descriptions.programs.ReportFiles`)."""

    resource = STEP

    def fault(self) -> str | None:
        if find_spec("tensorboard") is not None:
            return None
        what = "TensorBoard's files cannot be read: its package is not installed here"
        return f"{what}; pip install tensorboard, which the extra tensorboard of hpsearch names"

    def reader(
        self, folder: Path, folders: str, resource: str, metrics: Collection[str]
    ) -> "EventReader":
        return EventReader(folder, folders, resource, metrics, set(folder.rglob(FILES)))

    def found_in(self, folder: Path) -> tuple[str, list[dict[str, float]]] | None:
        """The folder that all files are in or below, where `*` stands for a part with digits, which
        may differ in another trial, and their numbers."""
        places = [str(file.parent.relative_to(folder)) for file in folder.rglob(FILES)]
        if not places:
            return None
        parts = Path(commonpath(places)).parts
        folders = "/".join("*" if any(map(str.isdigit, each)) else each for each in parts) or "."
        if self.fault() is not None:
            return folders, []
        return folders, list(EventReader(folder, folders, STEP, ()).reports(at_rest=True))


EVENT_FILES = EventFiles()


class EventReader:
    """Reads the files of a folder but for `earlier` ones, those of another attempt."""

    def __init__(
        self,
        folder: Path,
        folders: str,
        resource: str,
        metrics: Collection[str],
        earlier: Collection[Path] = (),
    ) -> None:
        self._folder, self._folders = folder, folders
        self._resource, self._metrics = resource, list(metrics)
        self._earlier = earlier
        self._loaders: dict[Path, Any] = {}
        self._places: dict[str, Path] = {}
        """The folders of metrics."""
        self._waiting: dict[int, dict[str, float]] = {}
        """The metrics of steps since the last report."""
        self._newest: dict[str, float] = {}
        self._reached = -math.inf
        self._look_at = 0.0

    def reports(self, *, at_rest: bool) -> Iterator[dict[str, float]]:
        """The reports of the steps that were there at the last look: one may be half written."""
        if not at_rest and time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + LOOK_S
        there = list(self._waiting)
        self._load()
        passed = []
        for step in sorted(self._waiting if at_rest else there):
            passed.append(step)
            if not self._is_report(step):
                continue
            for each in passed:
                self._newest |= self._waiting.pop(each)
            passed = []
            numbers = {**self._newest, STEP: float(step)}
            if numbers[self._resource] > self._reached:
                self._reached = numbers[self._resource]
                yield numbers

    def _is_report(self, step: int) -> bool:
        row = {**self._waiting[step], STEP: float(step)}
        has_others = self._newest.keys() | row >= set(self._metrics)
        return has_others and row.keys() >= {self._resource, *self._metrics[:1]}

    def _load(self) -> None:
        from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

        for file, folder in self._files().items():
            if file not in self._loaders:
                self._loaders[file] = EventFileLoader(str(file))
            below = file.parent.relative_to(folder).parts
            for event in self._loaders[file].Load():
                for value in event.summary.value:
                    name = "/".join([*below, value.tag])
                    self._take(file.parent, event.step, name, value.tensor)

    def _files(self) -> dict[Path, Path]:
        """The files, each with the nearest folder that is named."""
        named = self._folder.glob(self._folders) if Path(self._folders).parts else [self._folder]
        found: dict[Path, Path] = {}
        for folder in sorted(filter(Path.is_dir, named), key=lambda each: len(each.parts)):
            found |= dict.fromkeys(folder.rglob(FILES), folder)
        return {file: found[file] for file in sorted(found.keys() - set(self._earlier))}

    def _take(self, place: Path, step: int, name: str, value: Any) -> None:
        from tensorboard.util.tensor_util import make_ndarray

        if value.tensor_shape.dim or not value.dtype:
            return
        try:
            name, number = metric_name(name), number_of(name, make_ndarray(value))
        except (TypeError, ValueError):  # a text, or a name that no study can have
            return
        first = self._places.setdefault(name, place)
        if first == place:
            self._waiting.setdefault(step, {})[name] = number
        elif name in self._metrics:
            both = " and in ".join(str(each.relative_to(self._folder)) for each in (first, place))
            hint = "name one of them, or the folder above, which makes it FOLDER/TAG"
            raise ProgramFailed(f"task.report: {name} is in {both}: {hint}")

    def seen(self) -> str:
        if not self._loaders:
            where = f"{{folder}}/{self._folders}"
            return f"there is no event file in {where}; let the command write its logs there"
        wanted = " with ".join([*self._metrics, self._resource])
        return f"no event has {wanted}; the tags are {some(sorted(self._places)) or 'not written'}"
