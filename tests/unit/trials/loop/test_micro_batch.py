"""Micro-batches that follow the memory there is, on a device that has only so much."""

import numpy as np
import pytest
import torch
from torch import nn

from trials import tasks
from trials.contract import Setup
from trials.descriptions.builtin import BUILT_IN
from trials.devices.precision import Precision
from trials.loop import micro_batch
from trials.loop.training import TrainingRun
from trials.running.report_grid import budget_from
from trials.running.runner import failure_of
from trials.settings import Settings
from unit.trials.loop.test_training import Points, reports_of

STEPS = {"steps": 8, "report_every": 1}


class Cramped(Points):
    """Points with a batch norm's memory, dropout, and an allocator that holds `cells` times its
    longest sample."""

    def __init__(self, cells: float) -> None:
        super().__init__()
        self.lengths = np.arange(1, 51)
        self.model = nn.Sequential(
            nn.Linear(2, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 2)
        )
        nn.init.constant_(self.model[0].weight, 0.5)
        self.cells = cells
        self.tried: list[int] = []

    def batch(self, rows):
        self.tried.append(len(rows))
        if len(rows) * int(self.lengths[rows].max()) > self.cells:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return super().batch(rows)


def run_of(workload, folder, per_trial, resume_from=None, **params):
    setup = Setup(params, 3, budget_from(per_trial), folder / "run", resume_from)
    return TrainingRun(workload, Settings.parse(params), setup)


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch):
    monkeypatch.setattr(micro_batch, "_limits", {})


def losses(reports):
    return [report.metrics["train_loss"] for report in reports]


def sizes(reports):
    return [report.metrics["micro_batch"] for report in reports]


def alike(workload, seed=0):
    """The same weights in every workload that is compared."""
    torch.manual_seed(seed)
    for module in workload.model.modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    return workload


def test_auto_takes_the_largest_half_that_fits_the_longest_samples(tmp_path):
    workload = Cramped(cells=10 * 50)
    reports = reports_of(run_of(workload, tmp_path, STEPS, batch_size=32, micro_batch="auto"))
    assert workload.tried[:3] == [32, 16, 8]
    assert sizes(reports) == [8.0] * 8


def test_auto_is_the_whole_batch_where_it_fits(tmp_path):
    reports = reports_of(
        run_of(Cramped(cells=1e9), tmp_path, STEPS, batch_size=32, micro_batch="auto")
    )
    assert sizes(reports) == [32.0] * 8


@pytest.mark.thorough
def test_what_auto_found_trains_like_the_same_size_asked_for(tmp_path):
    found = run_of(
        alike(Cramped(500)),
        tmp_path / "a",
        STEPS,
        batch_size=32,
        micro_batch="auto",
        learning_rate=0.01,
    )
    asked = run_of(
        alike(Cramped(500)), tmp_path / "b", STEPS, batch_size=32, micro_batch=8, learning_rate=0.01
    )
    assert losses(reports_of(found)) == losses(reports_of(asked))
    for one, other in zip(
        found._workload.model.state_dict().values(),
        asked._workload.model.state_dict().values(),
        strict=True,
    ):
        assert torch.equal(
            one, other
        )  # the batch norm's running means too: a rehearsal leaves nothing behind


class Dropped(Cramped):
    """Samples of one length, and no batch norm: a window that was given up has touched its running
    means already."""

    def __init__(self, cells):
        super().__init__(cells)
        self.lengths = np.full(50, 50)
        self.model = nn.Sequential(nn.Linear(2, 8), nn.Dropout(0.3), nn.Linear(8, 2))


def test_a_window_done_again_equals_the_smaller_micro_batch_from_the_start(tmp_path):
    retried = run_of(alike(Dropped(500)), tmp_path / "a", STEPS, batch_size=32, learning_rate=0.01)
    reports = reports_of(retried)
    micro_batch._limits.clear()
    plain = run_of(
        alike(Dropped(1e9)), tmp_path / "b", STEPS, batch_size=32, micro_batch=8, learning_rate=0.01
    )
    expected = reports_of(plain)
    assert sizes(reports) == sizes(expected)
    assert losses(reports) == losses(expected)
    assert [r.metrics["padding_ratio"] for r in reports] == [
        r.metrics["padding_ratio"] for r in expected
    ]


@pytest.mark.thorough
def test_memory_that_shrinks_in_the_middle_costs_no_step(tmp_path):
    workload = Dropped(1e9)
    run = run_of(workload, tmp_path, STEPS, batch_size=32)
    items = iter(run)
    first = [item for item, _ in zip((i for i in items if i), range(3), strict=False)]
    workload.cells = 500
    rest = [item for item in items if item]
    assert [r.step for r in first + rest][-1] == run.position.step == 8
    assert sizes(rest)[-1] == 8.0


def test_a_single_sample_that_does_not_fit_is_out_of_memory(tmp_path):
    workload = Dropped(cells=0)
    with pytest.raises(torch.OutOfMemoryError) as caught:
        list(run_of(workload, tmp_path, STEPS, batch_size=50))
    assert failure_of(caught.value).kind == "out_of_memory"
    assert workload.tried == [50, 25, 13, 7, 4, 2, 1]


def test_another_error_is_not_tried_again(tmp_path):
    workload = Cramped(1e9)
    calls = []

    def broken(batch):
        calls.append(batch)
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    workload.loss_sum = broken
    with pytest.raises(RuntimeError, match="mat1"):
        list(run_of(workload, tmp_path, STEPS, batch_size=32))
    assert len(calls) == 1


def test_the_next_run_of_a_warm_worker_starts_with_what_fits(tmp_path):
    list(run_of(Cramped(500), tmp_path / "a", STEPS, batch_size=32, micro_batch="auto"))
    again = Cramped(500)
    list(run_of(again, tmp_path / "b", STEPS, batch_size=32, micro_batch="auto"))
    assert max(again.tried) == 8
    larger = Cramped(500)
    list(run_of(larger, tmp_path / "c", STEPS, batch_size=48))
    assert max(larger.tried) == 12  # 48 and 24 are known not to fit


@pytest.mark.thorough
def test_what_is_known_of_one_model_is_not_taken_for_another(tmp_path):
    list(run_of(Cramped(500), tmp_path / "a", STEPS, batch_size=32, micro_batch="auto"))
    other = Dropped(1e9)
    reports = reports_of(run_of(other, tmp_path / "b", STEPS, batch_size=32, micro_batch="auto"))
    assert sizes(reports)[0] == 32.0


def test_a_resumed_run_goes_on_with_its_micro_batch_and_bit_for_bit(tmp_path):
    whole = reports_of(
        run_of(alike(Dropped(500)), tmp_path / "a", STEPS, batch_size=32, micro_batch="auto")
    )
    micro_batch._limits.clear()
    first = run_of(alike(Dropped(500)), tmp_path / "b", STEPS, batch_size=32, micro_batch="auto")
    reports = [item for item, _ in zip((i for i in first if i), range(3), strict=False)]
    micro_batch._limits.clear()
    second = run_of(
        Dropped(1e9),
        tmp_path / "b",
        STEPS,
        resume_from=reports[-1].checkpoint,
        batch_size=32,
        micro_batch="auto",
    )
    rest = reports_of(second)
    assert sizes(rest) == [8.0] * 5
    assert losses(reports + rest) == losses(whole)


def evaluations(kind, folder):
    """A task of each way to evaluate, with 43 samples."""
    rng = np.random.default_rng(0)
    texts = [f"word{rng.integers(9)} " * rng.integers(1, 9) for _ in range(43)]
    model = {"scratch": {"layers": 1, "width": 16, "heads": 2, "vocabulary": 300}}
    match kind:
        case "text_classification":
            rows = [
                f"{text},{'odd' if number % 2 else 'even'}" for number, text in enumerate(texts)
            ]
            (folder / "train.csv").write_text("\n".join(["text,label", *rows]))
            part = {"train": "train.csv", "text": "text", "label": "label", "model": model}
        case "text_regression":
            rows = [f"{text},{text},{number}" for number, text in enumerate(texts)]
            (folder / "train.csv").write_text("\n".join(["text,other,label", *rows]))
            columns = {"text": ["text", "other"], "label": "label"}
            part = {"train": "train.csv", "model": model, **columns}
        case "language_modeling":
            (folder / "train.txt").write_text("\n\n".join(texts))
            part = {"train": "train.txt", "model": model}
        case "token_classification":
            tagged = (
                "\n".join(f"{word}\t{rng.choice(['O', 'B-X'])}" for word in text.split())
                for text in texts
            )
            (folder / "train.conll").write_text("\n\n".join(tagged))
            part = {"train": "train.conll", "model": model}
        case "image_classification":
            images = rng.integers(0, 256, (43, 8, 8), dtype=np.uint8)
            np.savez(folder / "train.npz", images=images, labels=np.arange(43) % 3)
            part = {"train": "train.npz"}
    return tasks.load({"kind": kind, "validation": 0.5, **part}, folder)


def validation_of(workload):
    """What the workload's validation batches are made of."""
    return workload._validation


def spread_out(model):
    """Give a model weights so large that its outputs differ: those of an untrained one are almost
    equal, and their ranks would show every rounding."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weights in model.parameters():
            weights.normal_(generator=generator)


@pytest.mark.parametrize("kind", sorted(BUILT_IN.keys() - {"sequence_to_sequence", "tabular"}))
def test_an_evaluation_that_finds_too_little_memory_goes_on_in_smaller_batches(kind, tmp_path):
    task = evaluations(kind, tmp_path)
    data = task.prepare({})
    setup = Setup({}, 5, budget_from({"epochs": 1}), tmp_path / "run")
    workload = task.workload(data, task.SETTINGS.parse({}), setup)
    precision = Precision("fp32", torch.device("cpu"))
    spread_out(workload.model)
    expected = workload.evaluate(precision)
    samples, tried = validation_of(workload), []
    gather = samples.batch

    def cramped(rows):
        tried.append(len(rows))
        if len(rows) > 4:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return gather(rows)

    samples.batch = cramped
    assert workload.evaluate(precision) == pytest.approx(expected, rel=1e-5, abs=1e-5)
    first = len(tried)
    workload.evaluate(precision)
    workload.evaluate_longest(precision)
    assert max(tried[first:]) <= 4
    again = task.workload(data, task.SETTINGS.parse({}), setup)
    validation_of(again).batch = cramped
    before = len(tried)
    again.evaluate(precision)
    assert max(tried[before:]) <= 4, "what was learnt is known to the next run of this process"
    assert not any("evaluation" not in name for name in micro_batch._limits), (
        "and says nothing of training"
    )


@pytest.mark.thorough
def test_a_single_sample_that_cannot_be_evaluated_is_out_of_memory(tmp_path):
    task = evaluations("image_classification", tmp_path)
    setup = Setup({}, 5, budget_from({"epochs": 1}), tmp_path / "run")
    run = task.start(setup, task.prepare({}))

    def cramped(rows):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    validation_of(run._workload).batch = cramped
    with pytest.raises(torch.OutOfMemoryError):
        list(run)
