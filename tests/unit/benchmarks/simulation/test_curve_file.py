"""Reading recorded curves: what a table must have, and what its mistakes are called."""

import gzip
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks.simulation import running
from benchmarks.simulation.curve_file import load_curves
from hpsearch.cli.options import StudyExport
from hpsearch.cli.output import What
from hpsearch.cli.results.export import export_study
from hpsearch.errors import DataError
from hpsearch.study_file.models import StudySpec
from support.studies.small import Bowl, budget_of, search_by, spec_with
from trials.contract import Diverged

SPACE = {
    "lr": {"type": "float", "low": 1e-4, "high": 1.0, "log": True},
    "lora": {"type": "categorical", "choices": [True, False]},
    "rank": {"type": "int", "low": 1, "high": 9, "when": {"lora": True}},
}


@pytest.fixture
def spec() -> StudySpec:
    return spec_with(space=SPACE, budget=budget_of(3, 2))


def rows(lr: float, *losses: float | None, **more: Any) -> list[dict[str, Any]]:
    return [
        {"trial": lr, "lr": lr, "lora": False, "rank": None, "epochs": i, "loss": loss, **more}
        for i, loss in enumerate(losses, 1)
    ]


def written(folder: Path, table: list[dict[str, Any]], name: str = "curves.csv") -> Path:
    frame, path = pd.DataFrame(table), folder / name
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(
        path, index=False
    )
    return path


@pytest.mark.parametrize(("separator", "encoding"), [(";", "utf-8-sig"), ("\t", "utf-16")])
def test_a_table_of_any_separator_is_read(tmp_path, spec, separator, encoding):
    path = tmp_path / "curves.csv"
    pd.DataFrame(rows(0.1, 3.0, 2.0)).to_csv(path, sep=separator, encoding=encoding, index=False)
    found = load_curves(path, spec).curves
    assert found.measure({"lr": 0.1, "lora": False}, 0, 2.0) == {"loss": 2.0}


HEADER = "trial,lr,lora,rank,epochs,loss\n"


@pytest.mark.parametrize(
    ("content", "what", "hint"),
    [
        ("", "curves.csv", "hpsearch export"),
        (b"\xe4\n", "curves.csv: cannot be read", "hpsearch export"),
        (gzip.compress(b"a,b", mtime=0), "curves.csv: cannot be read", "hpsearch export"),
        ("a,b\n1,2\n", "no column params.lr or lr", "known are a, b"),
        (f"{HEADER}0,x,false,,1,0.5\n", "lr is 'x'", "correct the cell"),
        (f"{HEADER}0,1,false,,1,0.5,4\n", "more cells than the header", "hpsearch export"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(tmp_path, spec, content, what, hint):
    path = tmp_path / "curves.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError) as refused:
        load_curves(path, spec)
    assert what in str(refused.value)
    assert hint in str(refused.value)


def test_a_table_that_is_missing_or_a_pipe_is_refused(tmp_path, spec):
    path = tmp_path / "curves.csv"
    with pytest.raises(DataError, match=r"curves\.csv.*\n.*hpsearch export"):
        load_curves(path, spec)
    os.mkfifo(path)
    with pytest.raises(DataError, match="not a plain file"):
        load_curves(path, spec)


def test_the_advice_for_another_encoding_names_how_to_convert_it(tmp_path, spec):
    path = tmp_path / "curves.csv"
    path.write_bytes("trial,größe\n1,2\n".encode("latin-1"))
    with pytest.raises(DataError, match="iconv -f WINDOWS-1252 -t UTF-8"):
        load_curves(path, spec)


@pytest.mark.parametrize("name", ["curves.csv", "curves.parquet"])
def test_configurations_come_back_as_the_space_has_them(tmp_path, spec, name):
    table = rows(0.1, 3.0, 2.0) + rows(0.2, 2.0, 1.0, lora=True, rank=4)
    found = load_curves(written(tmp_path, table, name), spec)
    assert len(found.curves.configurations) == 2
    proposal = {"lr": 0.2, "lora": True, "rank": 4}
    assert found.curves.stand_in(proposal) == proposal
    assert found.curves.stand_in({"lr": 0.1, "lora": False}) == {"lr": 0.1, "lora": False}
    assert found.curves.measure(proposal, 0, 2.0) == {"loss": 1.0}


def test_rows_may_stand_in_any_order(tmp_path, spec):
    found = load_curves(
        written(tmp_path, [*reversed(rows(0.1, 3.0, 2.0) + rows(0.2, 2.0, 1.0))]), spec
    )
    assert found.curves.measure({"lr": 0.1, "lora": False}, 0, 1.0) == {"loss": 3.0}


def test_seconds_are_the_tables_or_one_for_each_unit(tmp_path, spec):
    params = {"lr": 0.1, "lora": False}
    plain = load_curves(written(tmp_path, rows(0.1, 3.0, 2.0)), spec)
    assert (plain.timed, plain.curves.seconds(params, 2.0)) == (False, 2.0)
    table = [row | {"seconds": 7.0 * row["epochs"]} for row in rows(0.1, 3.0, 2.0)]
    timed = load_curves(written(tmp_path, table), spec)
    assert (timed.timed, timed.curves.seconds(params, 2.0)) == (True, 14.0)


def test_a_curve_that_ends_early_is_left_out_but_one_that_diverged_is_not(tmp_path, spec):
    found = load_curves(
        written(tmp_path, rows(0.1, 3.0, 2.0) + rows(0.2, 1.0) + rows(0.3, None)), spec
    )
    assert (len(found.curves.configurations), found.too_short) == (2, 1)


@pytest.mark.parametrize(
    ("first", "second"),
    [({"trial": 0}, {"trial": 1}), ({"seed": 1}, {"seed": 2}), ({"seed": 1, "trial": 4},) * 2],
)
def test_runs_with_equal_parameters_are_seeds_of_one_configuration(tmp_path, spec, first, second):
    second = {**second, "seed": 2} if first == second else second
    table = rows(0.1, 4.0, 3.0, **second) + rows(0.1, 3.0, 2.0, **first)
    if "seed" not in first:
        table = table[2:] + table[:2]  # without seeds, the first in the file is the first
    found = load_curves(written(tmp_path, table), spec)
    assert [len(runs) for runs in found.curves.runs] == [2]
    params = {"lr": 0.1, "lora": False}
    final = [found.curves.measure(params, seed, 2.0)["loss"] for seed in (70, 80, 70)]
    assert final == [2.0, 3.0, 2.0]


def test_a_parameter_named_seed_is_a_parameter(tmp_path):
    space = {**SPACE, "seed": {"type": "int", "low": 0, "high": 9}}
    spec = spec_with(space=space, budget=budget_of(3, 2))
    table = rows(0.1, 3.0, 2.0, seed=1) + rows(0.1, 4.0, 3.0, seed=2, trial=2)
    found = load_curves(written(tmp_path, table), spec)
    assert [len(runs) for runs in found.curves.runs] == [1, 1]
    proposal = {"lr": 0.1, "lora": False, "seed": 2}
    assert found.curves.stand_in(proposal) == proposal


def test_all_metrics_of_the_table_are_measured(tmp_path, spec):
    table = rows(0.1, 3.0, 2.0, trial=0, step=5, created=1e9, lora_text="no")
    for row, accuracy, norm in zip(table, (0.5, 0.7), (1.0, None), strict=True):
        row |= {"accuracy": accuracy, "metrics.lr": 0.05, "metrics.grad_norm": norm}
    found = load_curves(written(tmp_path, table), spec)
    params = {"lr": 0.1, "lora": False}
    known = {"accuracy": 0.5, "lr": 0.05, "grad_norm": 1.0}
    assert found.curves.measure(params, 0, 1.0) == {"loss": 3.0, **known}
    later = {"accuracy": 0.7, "lr": 0.05}
    assert found.curves.measure(params, 0, 2.0) == {"loss": 2.0, **later}
    assert found.curves.measure(params, 0, 1.5)["accuracy"] == pytest.approx(0.6)


def test_only_what_the_study_needs_decides_whether_a_run_diverged(tmp_path, spec):
    table = [row | {"norm": None} for row in rows(0.1, 3.0, 2.0)]
    table += [row | {"norm": 1.0} for row in rows(0.2, 3.0, None)]
    found = load_curves(written(tmp_path, table), spec)
    assert found.curves.measure({"lr": 0.1, "lora": False}, 0, 2.0) == {"loss": 2.0}
    with pytest.raises(Diverged):
        found.curves.measure({"lr": 0.2, "lora": False}, 0, 2.0)


def test_the_columns_of_an_export_are_understood(tmp_path, spec):
    table = rows(0.1, 3.0, 2.0, trial=0)
    named = [
        {**row, "resource": row.pop("epochs"), "params.lr": row.pop("lr"), "elapsed": 5.0}
        for row in table
    ]
    found = load_curves(written(tmp_path, named), spec)
    assert found.curves.seconds({"lr": 0.1, "lora": False}, 2.0) == 5.0


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ([row | {"lr": "high"} for row in rows(0.1, 1.0, 1.0)], r"lr is 'high', not a number"),
        (
            [{"trial": 0, "lr": 0.1, "lora": True, "rank": 1, "epochs": 1}],
            r"no column metrics.loss or loss\n.*known are epochs",
        ),
        (
            [{"trial": 0, "lr": 0.1, "lora": True, "rank": 1, "step": 1, "loss": 1.0}],
            r"no column resource or epochs",
        ),
        (
            [{"trial": 0, "lrs": 0.1, "lora": True, "rank": 1, "epochs": 1, "loss": 1.0}],
            r"no column params.lr or lr\n.*did you mean lrs",
        ),
        (
            rows(0.1, 3.0, 2.0) * 2,
            r"a run has two rows at the same epochs\n.*columns trial and seed",
        ),
        ([row | {"epochs": 0} for row in rows(0.1, 1.0)], r"epochs is not always above 0"),
        (
            rows(0.1, 3.0),
            r"no configuration is recorded up to the trial budget of 2 epochs\n.*ends at 1",
        ),
        (
            rows(0.1, 3.0) + rows(0.2, None, None),
            r"no configuration is recorded up to the trial budget",
        ),
        ([row | {"loss": "low"} for row in rows(0.1, 1.0)], r"loss: .*'low'"),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path, spec, table, says):
    with pytest.raises(DataError, match=says):
        load_curves(written(tmp_path, table), spec)


def test_what_is_no_table_is_told(tmp_path, spec):
    for name, text, says in [
        ("none.csv", None, "there is no such file"),
        ("empty.csv", "", "cannot be read"),
        ("head.csv", "lr,lora,rank,epochs,loss\n", "has no rows"),
        ("torn.parquet", "PAR1", "cannot be read"),
    ]:
        if text is not None:
            (tmp_path / name).write_text(text)
        with pytest.raises(DataError, match=says):
            load_curves(tmp_path / name, spec)


class NoisyBowl(Bowl):
    """A bowl whose every seed measures a little more or less."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        return {"loss": super().measure(params, seed, resource)["loss"] + seed % 97 / 1e4}


def test_an_exported_confirmation_is_a_second_seed(tmp_path, monkeypatch):
    storage = f"sqlite:///{tmp_path}/study.db"
    monkeypatch.setattr(running, "IN_MEMORY", storage)
    search = search_by("random", "none", confirm={"top": 2, "seeds": 2})
    spec = spec_with(search=search)
    trials = running.simulate(spec, NoisyBowl(), workers=2).trials
    repeats = [trial for trial in trials if trial.repeats is not None]
    assert repeats
    file = tmp_path / "curves.csv"
    export_study(StudyExport(spec.study, str(file), What.REPORTS, storage=storage))
    found = load_curves(file, spec)
    assert sum(len(runs) for runs in found.curves.runs) == len(trials)
    assert len(found.curves.runs) == len(trials) - len(repeats)
    first = repeats[0]
    original = next(trial for trial in trials if trial.number == first.repeats)
    final = [found.curves.measure(first.params, seed, 9.0)["loss"] for seed in (70, 80)]
    assert final == pytest.approx([original.value, first.value])
