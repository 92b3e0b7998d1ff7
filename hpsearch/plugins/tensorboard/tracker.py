"""TensorBoard: event files, in a folder for each trial and one for the study.

Parameters are written for the HParams page too, states and checkpoints as texts.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter, summary

from hpsearch.domain.lifecycle import State
from hpsearch.domain.plugins.news import StudyNews, Tracker, TrialNews
from hpsearch.plugins.tensorboard.options import TensorboardOptions
from trials.checkpoints.folders import trial_folder
from trials.settings import as_scalar

STUDY = "study"  # the folder of the study's own events
VALUE = "hpsearch/value"


class TensorboardTracker(Tracker):
    """A folder for TensorBoard."""

    def __init__(self, options: TensorboardOptions, base: Path) -> None:
        self._folder = (base / options.folder).resolve()
        self._writers: dict[str, SummaryWriter] = {}  # open files, by the names of their folders

    @property
    def target(self) -> str:
        return str(self._folder)

    def send_study(self, study: StudyNews) -> None:
        best = {f"best.{name}": value for name, value in study.best_params.items()}
        at = study.record.ended or time.time()
        with self._writing(study, STUDY, is_last=True) as writer:
            writer.add_text("study_file", f"```\n{study.record.spec}\n```", study.done, at)
            writer.add_text("study", _table({**study.facts, **best}), study.done, at)
            if "best_value" in study.facts:
                tag = f"hpsearch/best_{study.metric}"
                writer.add_scalar(tag, study.facts["best_value"], study.done, at)

    def send_trial(self, study: StudyNews, news: TrialNews) -> None:
        trial = news.trial
        began = trial.started or study.record.created
        at = trial.ended or (news.points[-1].at if news.points else began)
        is_last = trial.state is not State.RUNNING
        plain = {name: as_scalar(value) for name, value in trial.params.items()}
        params = {name: "null" if value is None else value for name, value in plain.items()}
        hparams: Any = summary.hparams  # it has no types
        of_value, start, end = hparams(params, {VALUE: 0.0})
        number, again, attempt = news.run.partition(".")
        folder = trial_folder(int(number)) + again + attempt
        with self._writing(study, folder, is_last=is_last) as writer:
            file: Any = writer.file_writer
            file.add_summary(of_value, walltime=began)
            file.add_summary(start, walltime=began)
            for point in news.points:
                for metric, value in point.metrics.items():
                    writer.add_scalar(metric, value, point.step, point.at)
            writer.add_text("trial", _table(news.facts), news.step, at)
            if is_last and news.is_over:
                if "value" in news.facts:
                    writer.add_scalar(VALUE, news.facts["value"], news.step, at)
                file.add_summary(end, walltime=at)

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()

    @contextmanager
    def _writing(self, study: StudyNews, name: str, *, is_last: bool) -> Iterator[SummaryWriter]:
        """The writer for a folder, whose file is written at the end of the block. After a failure
        the next one begins a new file: this one may end in half an event."""
        writer = self._writers.pop(name, None)
        if writer is None:
            writer = SummaryWriter(str(self._folder / study.label / name))
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


def _table(facts: Mapping[str, Any]) -> str:
    cells = [(name, str(as_scalar(value)).replace("|", "\\|")) for name, value in facts.items()]
    rows = [f"| {name} | {' '.join(text.split())} |" for name, text in cells]
    return "\n".join(["| | |", "|---|---|", *rows])
