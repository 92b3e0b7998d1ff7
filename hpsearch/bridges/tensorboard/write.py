"""TensorBoard: event files, in a folder for each trial and one for the study.

Parameters and values are written for the HParams page too, states and checkpoints as texts. Only
the package `tensorboard` is needed: its own helpers for these pages import TensorFlow, so what they
write is put together here, as `torch.utils.tensorboard` does it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.types_pb2 import DT_STRING
from tensorboard.plugins.hparams.api_pb2 import STATUS_FAILURE, STATUS_SUCCESS
from tensorboard.plugins.hparams.plugin_data_pb2 import (
    HParamsPluginData,
    SessionEndInfo,
    SessionStartInfo,
)
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from hpsearch.domain.lifecycle import State
from hpsearch.study_file.trackers import TensorboardOptions
from hpsearch.tracking.news import StudyNews, Tracker, TrialNews
from trials.checkpoints.folders import trial_folder

STUDY = "study"
"""The folder of the study's own events."""


class TensorboardTracker(Tracker):
    """A folder for TensorBoard."""

    def __init__(self, options: TensorboardOptions) -> None:
        self._folder = Path(options.folder).resolve()
        self._writers: dict[str, EventFileWriter] = {}
        """Open files, by the names of their folders."""

    @property
    def target(self) -> str:
        """The folder."""
        return str(self._folder)

    def send_study(self, study: StudyNews) -> None:
        """Write the study's file and facts, and the best value so far."""
        best = {f"best.{name}": value for name, value in study.best_params.items()}
        summaries = [
            _text("study_file", f"```\n{study.record.spec}\n```"),
            _table("study", {**study.facts, **best}),
        ]
        if "best_value" in study.facts:
            value = study.facts["best_value"]
            summaries.append(_scalar(f"hpsearch/best_{study.metric}", value))
        at = study.record.ended or time.time()
        with self._writing(study, STUDY, is_last=True) as writer:
            for summary in summaries:
                writer.add_event(_event(summary, at, study.done))

    def send_trial(self, study: StudyNews, news: TrialNews) -> None:
        """Write what is new of a trial, and close its file unless it trains."""
        trial = news.trial
        name = trial_folder(trial.number)
        began = trial.started or study.record.created
        at = trial.ended or (news.points[-1].at if news.points else began)
        is_last = trial.state is not State.RUNNING
        with self._writing(study, name, is_last=is_last) as writer:
            writer.add_event(_event(_session_start(name, trial.params, began), began))
            for point in news.points:
                for metric, value in point.metrics.items():
                    writer.add_event(_event(_scalar(metric, value), point.at, point.step))
            writer.add_event(_event(_table("trial", news.facts), at, news.step))
            if is_last and news.is_over:
                if "value" in news.facts:
                    value = _scalar("hpsearch/value", news.facts["value"])
                    writer.add_event(_event(value, at, news.step))
                writer.add_event(_event(_session_end(trial.state is State.FAILED, at), at))

    def close(self) -> None:
        """Close all files."""
        for writer in self._writers.values():
            writer.close()

    @contextmanager
    def _writing(self, study: StudyNews, name: str, *, is_last: bool) -> Iterator[EventFileWriter]:
        """The writer for a folder, whose file is written at the end of the block.

        After a failure the next one begins a new file: this one may end in half an event.
        """
        writer = self._writers.pop(name, None)
        if writer is None:
            writer = EventFileWriter(str(self._folder / study.label / name))
        try:
            yield writer
            writer.flush()  # raises what closing passes over
        except Exception:
            with suppress(OSError):
                writer.close()
            raise
        if is_last:
            writer.close()
        else:
            self._writers[name] = writer


open_tracker = TensorboardTracker


def _event(summary: Any, at: float, step: int = 0) -> Event:
    return Event(summary=summary, wall_time=at, step=step)


def _scalar(tag: str, value: float) -> Summary:
    return Summary(value=[Summary.Value(tag=tag, simple_value=value)])


def _table(tag: str, facts: Mapping[str, Any]) -> Summary:
    """Facts as a table in Markdown."""
    cells = [(name, str(value).replace("|", "\\|")) for name, value in facts.items()]
    rows = [f"| {name} | {' '.join(text.split())} |" for name, text in cells]
    return _text(tag, "\n".join(["| | |", "|---|---|", *rows]))


def _text(tag: str, text: str) -> Summary:
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
    content = text.encode("utf-8", "backslashreplace")
    tensor = TensorProto(dtype=DT_STRING, string_val=[content], tensor_shape=shape)
    return Summary(value=[Summary.Value(tag=tag, metadata=_of_plugin("text"), tensor=tensor)])


def _session_start(name: str, params: Mapping[str, Any], began: float) -> Summary:
    start = SessionStartInfo(group_name=name, start_time_secs=began)
    for key, value in params.items():
        if isinstance(value, bool):
            start.hparams[key].bool_value = value
        elif isinstance(value, int | float):
            start.hparams[key].number_value = value
        else:
            start.hparams[key].string_value = "null" if value is None else str(value)
    return _hparams("session_start_info", HParamsPluginData(session_start_info=start))


def _session_end(failed: bool, ended: float) -> Summary:
    status = STATUS_FAILURE if failed else STATUS_SUCCESS
    end = SessionEndInfo(status=status, end_time_secs=ended)
    return _hparams("session_end_info", HParamsPluginData(session_end_info=end))


def _hparams(tag: str, data: HParamsPluginData) -> Summary:
    metadata = _of_plugin("hparams", data.SerializeToString())
    return Summary(value=[Summary.Value(tag=f"_hparams_/{tag}", metadata=metadata)])


def _of_plugin(name: str, content: bytes = b"") -> SummaryMetadata:
    data = SummaryMetadata.PluginData(plugin_name=name, content=content)
    return SummaryMetadata(plugin_data=data)
