"""Trees for tables in use, without the task."""

from pathlib import Path

import pandas as pd
import torch

from trials.contract import TaskError
from trials.descriptions.text import CLASS, NUMBER
from trials.tasks.datasets import tables
from trials.tasks.tabular.boosting import outputs_of, scores_of_text
from trials.tasks.tabular.columns import numbers_in
from trials.tasks.tabular.encoding import TabularEncoding, inputs
from trials.tasks.tabular.table_run import DESCRIPTION, MODEL
from trials.tasks.workloads.in_use import ModelInUse, described


class TableModel(ModelInUse):
    """Trained trees with the encoding of their table. They read a file (CSV, TSV, Parquet, JSON
    lines) as the training data were read; or a frame, in which pandas may have made `NA` a missing
    value. `folder`: the model of a final training, or a checkpoint of a tabular task."""

    def __init__(self, folder: Path | str) -> None:
        self.encoding = encoding = TabularEncoding(**described(folder, DESCRIPTION)["encoding"])
        self.text = (Path(folder) / MODEL).read_text(encoding="utf-8")
        self.labels = tuple(encoding.classes or ())
        self._target = NUMBER if encoding.classes is None else CLASS
        self._mean, self._deviation = encoding.target_mean, encoding.target_deviation

    def _outputs(self, table: pd.DataFrame | Path | str, batch_size: int) -> torch.Tensor:
        rows = table if isinstance(table, pd.DataFrame) else _read(Path(table))
        rows = rows.rename(columns=str)
        self._check(rows)
        if rows.empty:
            return torch.empty(0, max(len(self.labels), 1))
        scores = scores_of_text(self.text, inputs(self.encoding, rows))
        return torch.from_numpy(outputs_of(scores) if len(self.labels) == 2 else scores)

    def _check(self, table: pd.DataFrame) -> None:
        encoding = self.encoding
        wanted = [*encoding.numeric, *encoding.categorical]
        for column in wanted:
            if column not in table.columns:
                reads = ", ".join(wanted)
                raise ValueError(f"the table has no column {column!r}; the model reads {reads}")
        for column in encoding.numeric:
            _, others = numbers_in(table, column)
            if others:
                what = f"column {column!r} is not a number in row {others[0] + 1}"
                raise ValueError(f"{what}; correct it, or leave it empty")


def _read(path: Path) -> pd.DataFrame:
    try:
        return tables.read(path, "table")
    except TaskError as error:
        raise ValueError(error.problems[0].what) from None
