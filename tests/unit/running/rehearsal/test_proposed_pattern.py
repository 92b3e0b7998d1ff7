"""Patterns that are proposed for the output of a program whose reports are not known."""

import re
from pathlib import Path

import pytest
import yaml

from hpsearch.running.rehearsal.proposed_pattern import proposals
from trials.contract import Unit
from trials.descriptions import report_pattern

PROJECT = Path(__file__).parents[4]
ESCAPE = "\x1b"


def each(line: str, *numbers: float) -> str:
    """A line for each number, with `#` for it and `@` for how many there were before."""
    lines = [
        line.replace("@+1", str(at + 1)).replace("@", str(at)).replace("#", str(number))
        for at, number in enumerate(numbers)
    ]
    return "".join(lines)


BACKSPACES = "\b" * 40
KERAS = (
    f"Epoch @+1/3\n1/9 [>..] - ETA: 2s - loss: 0.9{BACKSPACES}\r5/9 [=>.] - ETA: 1s - loss: 0.8"
    f"{BACKSPACES}\r9/9 [===] - 1s 12ms/step - loss: 0.7 - val_loss: #\n"
)
LIGHTNING = (
    "\rEpoch @:  50%|██  | 4/8 [00:00<00:00, 40.3it/s, v_num=0, val_loss=9.5]"
    "\rEpoch @: 100%|████| 8/8 [00:00<00:00, 40.3it/s, v_num=0, val_loss=9.5]\n"
    f"\rValidation DataLoader 0: 100%|████| 2/2 [00:00<00:00, 99.1it/s]{ESCAPE}[A"
    "\rEpoch @: 100%|████| 8/8 [00:00<00:00, 38.3it/s, v_num=0, val_loss=#]"
)
TQDM = "\r 33%|█  | @/3 [00:02<00:01, 1.1it/s, loss=9]\r 33%|█  | @/3 [00:02<00:01, loss=#]"
PPO = """\
------------------------------------
| rollout/           |             |
|    ep_rew_mean     | #          |
| time/              |             |
|    fps             | 1234        |
|    iterations      | @+1           |
|    total_timesteps | @+1           |
------------------------------------
"""
SKORCH = f"      @+1        {ESCAPE}[36m0.6905{ESCAPE}[0m       {ESCAPE}[32m#{ESCAPE}[0m  0.0360\n"
NUMBERS = (0.5, 0.25, 0.125)
SHAPES = {
    "a bar of Keras": (each(KERAS, *NUMBERS), "loss"),
    "lines of Keras": (
        each("Epoch @+1/3\n9/9 - 1s - 30ms/step - loss: 0.69 - val_loss: #\n", *NUMBERS),
        "loss",
    ),
    "a bar of Lightning": (
        each(LIGHTNING, *NUMBERS).replace(", val_loss=9.5", "", 2),
        "val_loss",
    ),
    "a table of skorch": (
        "  epoch    train_loss    valid_loss     dur\n-------  ------  ------  ------\n"
        + each(SKORCH, *NUMBERS),
        "loss",
    ),
    "tqdm with a postfix": (each(TQDM, *NUMBERS) + "\r100%|███| 3/3 [00:03, loss=0.125]\n", "loss"),
    "dicts of Hugging Face": (
        each(
            "{'loss': 0.9, 'learning_rate': 5e-05, 'epoch': @.5}\n"
            "{'eval_loss': #, 'eval_runtime': 1.2, 'epoch': @+1.0}\n",
            *NUMBERS,
        )
        + "{'train_runtime': 10.5, 'train_loss': 0.4, 'epoch': 3.0}\n",
        "loss",
    ),
    "logging": (
        each("2026-05-01 12:00:0@,123 INFO [rank0] train.py:12: epoch @ loss # 9 s\n", *NUMBERS),
        "loss",
    ),
    "rows under a header": (
        "epoch,train_loss,val_loss,lr\n" + each("@+1,0.9,#,0.1\n", *NUMBERS),
        "loss",
    ),
    "JSON lines": (each('{"epoch": @+1, "train_loss": 0.9, "val_loss": #}\n', *NUMBERS), "loss"),
    "key=value": (each("step=@+1 train_loss=0.9 val_loss=# lr=0.1\n", *NUMBERS), "loss"),
    "key: value": (each("Step: @, Loss: #, Time: 3.5\n", *NUMBERS), "loss"),
    "a table of rich": (
        "┏━━━━━━━┳━━━━━━━━━━┓\n┃ epoch ┃ val_loss ┃\n┡━━━━━━━╇━━━━━━━━━━┩\n"
        + each("│ @+1     │ #   │\n", *NUMBERS),
        "loss",
    ),
    "a table of tabulate": (
        "|   epoch |   train_loss |   val_loss |\n|--------:|-------:|------:|\n"
        + each("|       @+1 |   0.9 |   # |\n", *NUMBERS),
        "loss",
    ),
    "blocks of PPO": (each(PPO, *NUMBERS), "reward"),
    "XGBoost": (each("[@]\ttrain-logloss:0.9\teval-logloss:#\n", *NUMBERS), "loss"),
    "LightGBM": (each("[@+1]\ttraining's l2: 0.9\tvalid_0's l2: #\n", *NUMBERS), "l2"),
    "CatBoost": (each("@:\tlearn: 0.9\ttest: #\tbest: 0.1 (2)\ttotal: 5ms\n", *NUMBERS), "test"),
    "the epoch and its metrics in two lines": (
        each("== epoch @+1 ==\ntrain: loss 0.9\nvalid: loss #\n", *NUMBERS),
        "loss",
    ),
    "a name of the end for the data": (each("epoch @ acc_train 0.9 acc_val #\n", *NUMBERS), "acc"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_metric_of_validation_data_is_read_from_output_of_every_known_shape(shape):
    printed, metric = SHAPES[shape]
    printed = f"loading 3 files\n{printed}" + "".join(f"saved {n} of 60\n" for n in range(60))
    first, *_ = proposals(printed.encode().split(b"\n"), metric, Unit.STEPS)
    assert [report.metrics for report in first.reports] == [{metric: each} for each in NUMBERS]
    assert [report.resource for report in first.reports] == [1, 2, 3]
    patterns = report_pattern.texts_of(yaml.safe_load(first.key))
    assert list(report_pattern.problems_with(patterns)) == []
    assert f"reads 3 reports, at last {metric} 0.125 at 3" in first.reading


def examples() -> dict[str, str]:
    """The examples of the documentation by the names of their shapes."""
    page = (PROJECT / "docs" / "command.md").read_text("utf-8")
    block = page.partition("lines of programs -->\n```text\n")[2].partition("```")[0]
    pairs = [re.split(r"\s{2,}", line, maxsplit=1) for line in block.splitlines()]
    return dict(pairs)


@pytest.mark.parametrize("name", examples())
def test_every_example_of_the_documentation_is_read(name):
    printed = examples()[name].encode().split(" ⏎ ".encode())
    first, *_ = proposals(printed, "loss", Unit.EPOCHS)
    (report,) = first.reports
    assert (report.resource, report.metrics) == (3, {"loss": 0.25})


@pytest.mark.parametrize(
    ("line", "metric", "numbers"),
    [
        ("step 250: train loss 1.9, val loss 2.1", "val_loss", {"val_loss": 2.1}),
        ("step 250: train loss 1.9, val loss 2", "train_loss", {"train_loss": 1.9}),
        ("[step 250] Loss: 1e-3 (took 3 s)", "loss", {"loss": 0.001}),
        ("Test set, step 250: score 12.5%", "accuracy", {"accuracy": 12.5}),
        ("step 250: train loss 1.5, val loss 1.7, value 3", "accuracy", {"val_loss": 1.7}),
        ("step 250: test_f1 0.5 val_f1 0.6 f1 0.7 train_f1 0.8", "f1", {"f1": 0.6}),
        ("step 250 loss 2,3100", "loss", {"loss": 2.31}),
        ("step 250 accuracy 9/10", "accuracy", {"accuracy": 0.9}),
    ],
)
def test_the_count_and_the_metric_of_a_line_are_found(line, metric, numbers):
    first, *_ = proposals([b"loading", line.encode(), b"done in 3 s"], metric, Unit.STEPS)
    (report,) = first.reports
    assert (report.resource, report.metrics) == (250, numbers)
    assert f"matches {line}" in first.reading


def test_other_metrics_are_proposed_after_the_likeliest():
    lines = [b"epoch 3 train_acc 0.9 val_acc 0.5 val_loss 0.25"]
    found = proposals(lines, "accuracy", Unit.EPOCHS)
    assert [each.reports[0].metrics for each in found] == [
        {"accuracy": 0.5},
        {"accuracy": 0.9},
        {"val_loss": 0.25},
    ]


LAST_WORD = "`Trainer.fit` stopped: `max_epochs=6` reached, using 0 cores"


@pytest.mark.parametrize(
    "line", ["loading", "done in 3 s", "epoch 3", "accuracy: 0.5", "", LAST_WORD]
)
def test_where_no_line_has_a_count_and_a_metric_nothing_is_proposed(line):
    assert proposals([line.encode()], "accuracy", Unit.EPOCHS) == []
