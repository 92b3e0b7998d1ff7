"""`hpsearch init`: the study file to start from."""

import os
import resource
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from hpsearch.cli.init import TEXTS, write_from_command, write_starter
from hpsearch.cli.main import main
from hpsearch.cli.options import DataOptions, StudyOptions
from hpsearch.errors import UserError
from hpsearch.store.store import Store
from hpsearch.study_file.reading import load
from hpsearch.study_file.starters.data import TaskData, names_of
from hpsearch.study_file.starters.starters import STARTERS
from support.studies.reported import ordinary
from trials import tasks
from trials.descriptions.builtin import BUILT_IN


def write(
    path: Path,
    kind: str | None = "text_classification",
    train: Path | None = None,
    **options: str | None,
) -> None:
    named = {key: value.split("+") for key, value in options.items() if value}
    data = DataOptions(train, named.get("text"), named.get("label"), options.get("model"))
    write_starter(path, kind, data, StudyOptions())


@pytest.mark.parametrize("kind", STARTERS)
def test_the_starter_passes_the_parser(tmp_path, kind):
    write(tmp_path / "mine.yaml", kind)
    spec = load(tmp_path / "mine.yaml")
    assert spec.study == "my-study"
    assert spec.space["learning_rate"].type == "float"


def test_every_kind_of_task_has_a_starter():
    assert set(STARTERS) == {*BUILT_IN, "function", "command"}


def data_of(kind: str, folder: Path) -> Path:
    """A little training data, where and as a starter expects it."""
    rows = [(f"one two {n} three", ("no", "yes")[n % 2]) for n in range(20)]
    match kind:
        case "token_classification":
            path, text = folder / "train.conll", "\n\n".join("Ada\tB-PER\nslept\tO" for _ in rows)
        case "language_modeling":
            path, text = folder / "train.txt", "\n\n".join(text for text, _ in rows)
        case "image_classification":
            for n, (_, name) in enumerate(rows):
                (folder / "train" / name).mkdir(parents=True, exist_ok=True)
                Image.new("RGB", (8, 8), (n, n, n)).save(folder / "train" / name / f"{n}.png")
            return folder / "train"
        case _:
            header = {"tabular": "words,target", "sequence_to_sequence": "source,target"}.get(
                kind, "text,label"
            )
            if kind == "text_regression":
                rows = [(text, str(n / 2)) for n, (text, _) in enumerate(rows)]
            path, text = folder / "train.csv", "\n".join([header, *map(",".join, rows)])
    path.write_text(text + "\n")
    return path


@pytest.mark.cases(1)
@pytest.mark.parametrize("named", [False, True], ids=["the usual name", "--train"])
@pytest.mark.parametrize(
    "kind", sorted(BUILT_IN, key="tabular".__ne__)
)  # its check is the quickest
def test_a_starter_passes_the_check_on_its_data(tmp_path, kind, named):
    data = data_of(kind, tmp_path)
    model = "scratch" if kind in TEXTS else None  # so few texts would get one of the hub
    write(tmp_path / "mine.yaml", kind, data if named else None, model=model)
    assert load(tmp_path / "mine.yaml", inspect=tasks.inspect).task["train"] == data.name
    with pytest.raises(SystemExit) as ended:
        main(["check", str(tmp_path / "mine.yaml")])
    assert not ended.value.code


def test_the_starters_comments_are_right_too(tmp_path):
    write(tmp_path / "mine.yaml")
    text = (tmp_path / "mine.yaml").read_text()
    for commented in ("# test:", "# gpu_hours:", "# wall_clock:"):
        text = text.replace(commented, commented[2:])
    text = text.replace(
        "  # momentum:", "  optimizer: {type: categorical, choices: [sgd, adamw]}\n  momentum:"
    )
    (tmp_path / "mine.yaml").write_text(text)
    spec = load(tmp_path / "mine.yaml")
    assert spec.budget.wall_clock_s == 7200
    assert spec.space["momentum"].when == {"optimizer": ("sgd",)}


def test_a_folder_gets_a_study_yaml_and_a_file_is_never_replaced_unasked(tmp_path, capsys):
    write(tmp_path)
    assert f"hpsearch check {tmp_path / 'study.yaml'}" in capsys.readouterr().err
    (tmp_path / "study.yaml").write_text("precious")
    with pytest.raises(UserError, match="already exists"):
        write(tmp_path)
    assert (tmp_path / "study.yaml").read_text() == "precious"
    write_starter(tmp_path, "function", DataOptions(), StudyOptions(force=True))
    assert load(tmp_path / "study.yaml").task["kind"] == "train:train"


@pytest.mark.parametrize(
    ("header", "text", "label"),
    [
        ("text,label", "text", "label"),
        ("id,Sentence,Category", "Sentence", "Category"),
        ("id,what it says,x", "what it says", "x"),
        ("id,'on',no", "'on'", "no"),
        ("id,a: b,c #d", "a: b", "c #d"),
        ("id,Größe 😀,-", "Größe 😀", "-"),
        ("id,{text},1e-4", "{text}", "1e-4"),
    ],
)
def test_columns_are_guessed_from_a_csv_file(tmp_path, header, text, label):
    names = header.split(",")
    rows = [
        [str(i), f"some words of number {i}", "yes" if i % 2 else "no"][-len(names) :]
        for i in range(40)
    ]
    data = tmp_path / "data" / "train.csv"
    data.parent.mkdir()
    data.write_text("\n".join([header, *map(",".join, rows)]) + "\n", encoding="utf-8")
    write(tmp_path / "study.yaml", train=data)
    spec = load(tmp_path / "study.yaml", inspect=tasks.inspect)
    assert (spec.task["text"], spec.task["label"]) == (text, label)
    assert spec.task["train"] == os.path.join("data", "train.csv")  # noqa: PTH118 - as the file writes it


def test_columns_that_are_given_are_not_guessed(tmp_path):
    (tmp_path / "train.csv").write_text(
        "text,title,label,topic\n" + "a b,c d,e,f\ng h,i j,k,l\n" * 9
    )
    write(tmp_path / "study.yaml", train=tmp_path / "train.csv", text="title", label="topic")
    spec = load(tmp_path / "study.yaml")
    assert (spec.task["text"], spec.task["label"]) == ("title", "topic")
    write(tmp_path / "other.yaml", train=tmp_path / "train.csv", label="topic")
    assert load(tmp_path / "other.yaml").task["text"] == "text"


def test_pairs_and_several_labels_are_named_one_after_the_other(tmp_path):
    texts = ["--text", "question", "--text", "an answer"]
    labels = ["--label", "toxic", "--label", "a: b"]
    with pytest.raises(SystemExit) as ended:
        main(["init", str(tmp_path / "study.yaml"), *texts, *labels])
    assert not ended.value.code
    spec = load(tmp_path / "study.yaml")
    assert spec.task["text"] == ["question", "an answer"]
    assert spec.task["label"] == ["toxic", "a: b"]
    assert spec.objective.metric == "micro_f1"


def test_the_data_decides_kind_metric_lengths_and_validation(tmp_path):
    table = tmp_path / "train.csv"
    table.write_text("width,height,sort\n" + "1,2.5,a\n3,4,b\n" * 20 + "5,6,rare\n" * 2)
    write(tmp_path / "table.yaml", None, table, label="sort")
    spec = load(tmp_path / "table.yaml", inspect=tasks.inspect)
    assert (spec.task["kind"], spec.task["target"]) == ("tabular", "sort")
    assert spec.task["validation"] == 0.3
    assert spec.objective.metric == "macro_f1"
    assert spec.budget.per_trial.total >= 9
    write(tmp_path / "number.yaml", None, table, label="height")
    spec = load(tmp_path / "number.yaml", inspect=tasks.inspect)
    assert (spec.task["objective_kind"], spec.objective.metric) == ("regression", "rmse")
    assert spec.objective.direction == "minimize"
    texts = pd.DataFrame({"text": ["word " * 2000] * 20_000, "label": ["a", "b"] * 10_000})
    task = TaskData(table, texts, ("text",), ("label",), None)
    names, guessed = names_of(task, "text_classification", None)
    assert guessed is None
    assert (names["max_length"], names["validation"], names["metric"]) == (
        "512",
        "0.05",
        "accuracy",
    )


@pytest.mark.parametrize(
    ("header", "rows", "target"),
    [
        ("Target,age,port", ["0,31,c", "1,44,s"], "Target"),
        ("plant,a", ["daisy,1.5", "daisy,2.5"], "a"),
        ("number,sort", ["{n},daisy", "{n},tulip"], "sort"),
    ],
)
def test_the_column_to_learn_is_found_where_one_alone_may_be_meant(tmp_path, header, rows, target):
    lines = [rows[n % 2].format(n=n) for n in range(40)]
    (tmp_path / "flowers.csv").write_text("\n".join([header, *lines]))
    write(tmp_path / "study.yaml", None, train=tmp_path / "flowers.csv")
    assert load(tmp_path / "study.yaml").task["target"] == target


PENGUINS = (
    "study,Sample Number,Species,Stage,Individual ID,Culmen Length (mm),Region,Comments\n"
    + "".join(
        f'PAL{n % 3},{n % 152 + 1},{"Adelie" if n % 2 else "Gentoo"} Penguin,"Adult, 1 Egg Stage",'
        f"N{n}A1,{30 + n / 10},Anvers,{'Not enough blood for isotopes.' if n % 9 == 0 else ''}\n"
        for n in range(304)
    )
)
NUMBERED = "Passenger Id,fare,survived\n" + "".join(
    f"{n * n + 10_000},{n / 7:.2f},{n % 2}\n" for n in range(60)
)


def test_of_several_columns_it_is_asked_by_name_which_is_to_be_learnt(tmp_path):
    (tmp_path / "penguins_raw.csv").write_text(PENGUINS)
    with pytest.raises(UserError, match="which column is to be learnt") as refused:
        write(tmp_path / "study.yaml", None, tmp_path / "penguins_raw.csv")
    assert "--label: Species (2 values), study (3 values)" in (refused.value.hint or "")
    for never in ("Stage", "Region", "Individual ID"):
        assert never not in (refused.value.hint or "")


def test_a_table_with_remarks_is_no_task_on_texts(tmp_path):
    (tmp_path / "penguins_raw.csv").write_text(PENGUINS)
    write(tmp_path / "study.yaml", None, tmp_path / "penguins_raw.csv", label="Species")
    task = load(tmp_path / "study.yaml", inspect=tasks.inspect).task
    assert (task["kind"], task["target"]) == ("tabular", "Species")


def test_what_numbers_the_rows_is_not_learnt_from(tmp_path):
    (tmp_path / "passengers.csv").write_text(NUMBERED)
    write(tmp_path / "study.yaml", None, tmp_path / "passengers.csv", label="survived")
    task = load(tmp_path / "study.yaml", inspect=tasks.inspect).task
    assert (task["numeric"], task["categorical"]) == (["fare"], [])


HUGE = "n" * 3000
STRANGE_TABLES = {
    "no obvious target": "width,height\n" + "1.5,2\n3,4.5\n" * 20,
    "one class only": "width,label\n" + "1,a\n2,a\n" * 20,
    "a column without values": "width,empty,label\n" + "1,,a\n2,,b\n" * 20,
    "200 classes": "width,label\n" + "".join(f"{n},c{n % 200}\n" for n in range(600)),
    "one column of ids": "id\n" + "".join(f"u{n}\n" for n in range(40)),
    "three texts": "text,label\nthe first text of these few,a\nand a second one of them,b\nc,a\n",
    "a huge name": f"{HUGE},label\n" + "1,a\n2,b\n" * 20,
}


@pytest.mark.thorough
@pytest.mark.parametrize("content", STRANGE_TABLES.values(), ids=STRANGE_TABLES)
def test_a_strange_table_gives_a_study_that_checks_or_an_error_that_says_what_to_do(
    tmp_path, content
):
    (tmp_path / "train.csv").write_text(content)
    hint = None
    try:
        write(tmp_path / "study.yaml", None, tmp_path / "train.csv", model=None)
    except UserError as refused:
        hint = refused.hint
    assert (tmp_path / "study.yaml").exists() is (hint is None)
    if hint is not None:
        return
    with pytest.raises(SystemExit) as ended:
        main(["check", str(tmp_path / "study.yaml")])
    assert not ended.value.code


@pytest.mark.parametrize(
    ("rows", "total", "first"),
    [(5000, "9", ""), (1700, "27", ", first_rung: 3"), (150, "81", ", first_rung: 9")],
)
def test_a_model_from_scratch_trains_until_it_has_learnt(tmp_path, rows, total, first):
    table = pd.DataFrame({"text": ["one of"] * rows, "label": ["a", "b"] * (rows // 2)})
    data = TaskData(tmp_path, table, ("text",), ("label",), None)
    names, _ = names_of(data, "text_classification", None)
    assert (names["total"], names["first"]) == (total, first)


def test_images_are_known_by_their_folders_or_their_file_of_arrays(tmp_path):
    arrays = tmp_path / "digits.npz"
    arrays.touch()
    (tmp_path / "photos" / "cats").mkdir(parents=True)
    for train in (arrays, tmp_path / "photos"):
        write(tmp_path / f"{train.stem}.yaml", None, train)
        spec = load(tmp_path / f"{train.stem}.yaml")
        assert (spec.task["kind"], spec.task["train"]) == ("image_classification", train.name)


def test_a_study_is_named_as_its_data(tmp_path):
    named = data_of("tabular", tmp_path).rename(tmp_path / "my flowers.csv")
    write(tmp_path / "flowers.yaml", "tabular", named)
    asked = StudyOptions("mine", "loss")
    write_from_command(tmp_path / "mine.yaml", "train --lr 0.1", asked)
    flowers, mine = load(tmp_path / "flowers.yaml"), load(tmp_path / "mine.yaml")
    assert (flowers.study, mine.study) == ("my-flowers", "mine")
    assert (mine.objective.metric, mine.objective.direction) == ("loss", "minimize")


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("train.csv", b"", "is empty"),
        ("train.csv", b"alone\nx\n", "has too few columns: alone"),
        ("train.csv", b"t\xe9xt,label\n", "is not UTF-8 text"),
        ("train.csv", b"text,label\n", "has no rows"),
        ("train.parquet", b"PAR1", "cannot be read as PARQUET"),
    ],
)
def test_data_that_does_not_tell_its_columns_is_refused(tmp_path, name, content, told):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=told):
        write(tmp_path / "study.yaml", train=tmp_path / name)
    assert not (tmp_path / "study.yaml").exists()


def test_arguments_that_make_no_sense_are_refused(tmp_path):
    with pytest.raises(UserError, match="no such file"):
        write(tmp_path / "study.yaml", train=tmp_path / "none.csv")
    with pytest.raises(UserError, match="no starter for tasks of the kind 'images'"):
        write(tmp_path / "study.yaml", "images")
    with pytest.raises(UserError, match="are for built-in tasks"):
        write(tmp_path / "study.yaml", "function", text="text")
    with pytest.raises(UserError, match="--text is for text_classification"):
        write(tmp_path / "study.yaml", "tabular", text="words")
    with pytest.raises(UserError, match=r"--model is for .* the task is tabular"):
        write_starter(tmp_path, "tabular", DataOptions(model="distilgpt2"), StudyOptions())
    with pytest.raises(UserError, match="'rmse' is not a metric of text_classification"):
        write_starter(tmp_path, None, DataOptions(), StudyOptions(metric="rmse"))
    with pytest.raises(UserError, match="cannot be written"):
        write(tmp_path / "no" / "folder" / "study.yaml")


@pytest.mark.parametrize("taken", [False, True])
@pytest.mark.parametrize(
    "command",
    [
        ("init", "study.yaml"),
        ("report", "-o", "report.html"),
        ("report", "-o", "report.md"),
        ("export", "--to", "trials.csv"),
        ("export", "--to", "trials.parquet"),
    ],
)
def test_a_file_that_has_no_room_is_not_begun(
    command, taken, tmp_path, sqlite_url, monkeypatch, capsys
):
    ordinary(sqlite_url)
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    if taken:
        (folder / command[-1]).write_text('{"title": "A study file of hpsearch"}')
    before = {path.name: path.read_text() for path in folder.iterdir()}
    force = ("--force",) if taken else ()
    storage = ("--storage", sqlite_url) if command[0] in ("report", "export") else ()
    # While it is open here, the database's own files need no more room.
    with (
        closing(Store.open(sqlite_url)) as store,
        store.reading(),
        files_of_at_most(1000),
        pytest.raises(SystemExit) as ended,
    ):
        main((*command, *force, *storage))
    assert ended.value.code == 2
    assert "cannot be written" in capsys.readouterr().err
    assert {path.name: path.read_text() for path in folder.iterdir()} == before


@contextmanager
def files_of_at_most(most_bytes: int) -> Iterator[None]:
    """Let this process write no file beyond a size, as where a disk is full."""
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))
