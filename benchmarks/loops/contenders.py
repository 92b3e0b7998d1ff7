"""The contenders in the benchmark of the training loop: the floor, hpsearch, other libraries.

All do the same job. A contender is built once per process (it reads and tokenises the data) and is
then asked to train once per trial: one epoch over the job's texts, from the same weights, with
AdamW, a linear schedule and gradients clipped to norm 1.
"""

import contextlib
import csv
import functools
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OnStep = Callable[[], None]


@dataclass(frozen=True)
class Job:
    """What every contender does.

    Args:
        folder: Contains train.csv and test.csv (text, category), and model/ (with tokenizer).
    """

    folder: Path
    device: str
    batch_size: int = 32
    max_length: int = 64
    learning_rate: float = 5e-4
    weight_decay: float = 0.01
    dropout: float | None = None
    seed: int = 1

    def rows(self, name: str) -> tuple[list[str], list[str]]:
        """The texts and categories of a file."""
        with (self.folder / name).open(newline="") as file:
            rows = list(csv.DictReader(file))
        return [row["text"] for row in rows], [row["category"] for row in rows]


@dataclass(frozen=True)
class Outcome:
    """A trial's accuracy on the test rows, and the tokens and padding that its model got."""

    accuracy: float
    cells: int
    loss: float | None = None
    """The mean training loss, if it is known."""


class Hpsearch:
    """hpsearch's loop, as a worker drives it.

    Args:
        job: The job.
        epochs: Of a trial, which reports at its end.
        settings: Settings of the loop, in addition to those of the job.
    """

    def __init__(self, job: Job, epochs: int = 1, **settings: Any) -> None:
        from trials.tasks import load

        self._job = job
        self._epochs = epochs
        part = {
            "kind": "text_classification",
            "train": "train.csv",
            "validation": "test.csv",
            "text": "text",
        }
        self._task = load({**part, "label": "category", "model": "model"}, job.folder)
        self._params: dict[str, Any] = {
            "learning_rate": job.learning_rate,
            "weight_decay": job.weight_decay,
            "batch_size": job.batch_size,
            "max_length": job.max_length,
            "dropout": job.dropout,
            "warmup": 0.0,
            **settings,
        }
        self.data = self._task.prepare(self._params)

    def train(self, on_step: OnStep) -> Outcome:
        """Train one trial."""
        from trials.contract import Setup
        from trials.running.report_grid import budget_from

        with tempfile.TemporaryDirectory() as folder:
            budget = budget_from({"epochs": self._epochs, "report_every": self._epochs})
            setup = Setup(
                self._params, self._job.seed, budget, Path(folder), device=self._job.device
            )
            with contextlib.closing(self._task.start(setup, self.data)) as run:
                for report in run:
                    if report is None:
                        on_step()
                        continue
                    tokens = int(self.data.train.lengths.sum())
                    cells = round(tokens / (1 - report.metrics["padding_ratio"]))
                    return Outcome(report.metrics["accuracy"], cells, report.metrics["train_loss"])
        raise AssertionError("the run ended without a report")


class Floor:
    """The least work possible: forward, backward, clipping and a fused step over ready batches.

    Its model, order, learning rates and random numbers are those of hpsearch's loop, so that their
    losses must agree.

    Args:
        job: The job.
        bucketing: Whether texts of similar length share a batch.
        pad_to: The length that every text is padded to; None for the longest of its batch.
        fused: Whether the optimizer's step is one kernel.
        compiled: Whether `torch.compile` makes CUDA graphs of its model (`reduce-overhead`).
    """

    def __init__(
        self,
        job: Job,
        bucketing: bool = True,
        pad_to: int | None = None,
        fused: bool = True,
        compiled: bool = False,
    ) -> None:
        import numpy as np
        import torch

        from trials.data.batching import epoch_batches

        self._job, self.data, self._fused = job, Hpsearch(job).data, fused
        self._compiled = compiled
        train, padding = self.data.train, self.data.padding
        self._batches = []
        for rows in epoch_batches(train.lengths, job.batch_size, job.seed, 0, bucketing):
            texts = [train.row(row) for row in rows]
            length = max(pad_to or 0, *(len(text) for text in texts))
            tokens = np.full((len(texts), length), padding, dtype=np.int64)
            mask = np.zeros_like(tokens)
            for number, text in enumerate(texts):
                tokens[number, : len(text)] = text
                mask[number, : len(text)] = 1
            arrays = (tokens, mask, self.data.train_labels[rows])
            self._batches.append(tuple(torch.from_numpy(array).to(job.device) for array in arrays))

    def train(self, on_step: OnStep) -> Outcome:
        """Train one trial."""
        import torch

        from trials.devices.precision import Precision
        from trials.loop.optim.schedules import multiplier
        from trials.running.randomness import Use, derive, seed_everything

        job, precision = self._job, Precision("auto", torch.device(self._job.device))
        model = classifier(job).train()
        groups = [
            {
                "params": [p for p in model.parameters() if p.ndim >= 2],
                "weight_decay": job.weight_decay,
            },
            {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
        ]
        optimizer = torch.optim.AdamW(groups, fused=self._fused, foreach=False)
        parameters, total, cells = list(model.parameters()), torch.zeros((), device=job.device), 0
        steps = len(self._batches)
        forward: Any = torch.compile(model, mode="reduce-overhead") if self._compiled else model
        for step, (tokens, mask, labels) in enumerate(self._batches):
            seed_everything(derive(job.seed, Use.STEP, step))
            with precision.autocast():
                logits = forward(input_ids=tokens, attention_mask=mask).logits.float()
            loss = torch.nn.functional.cross_entropy(logits, labels)
            loss.backward()  # type: ignore[no-untyped-call,unused-ignore]  # torch leaves it untyped
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            for group in optimizer.param_groups:
                group["lr"] = job.learning_rate * multiplier("linear", (step + 0.5) / steps, 0.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            total += loss.detach() * len(labels)
            cells += tokens.numel()
            on_step()
        return Outcome(accuracy(model, job), cells, float(total) / len(self.data.train_labels))


class Tutorial:
    """The loop of most tutorials: padding to the maximum, float32, DataLoader, AdamW's defaults."""

    pads_to_maximum = True

    def __init__(self, job: Job) -> None:
        self._job = job
        self.samples = tokenised(job)

    def train(self, on_step: OnStep) -> Outcome:
        """Train one trial."""
        import torch

        torch.manual_seed(self._job.seed)
        model, loader, cells = self._model_and_loader()
        optimizer = torch.optim.AdamW(model.parameters(), self._job.learning_rate)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, len(loader))
        model.train()
        for batch in loader:
            loss = model(
                **{name: tensor.to(self._job.device) for name, tensor in batch.items()}
            ).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            on_step()
        return Outcome(accuracy(model, self._job), cells.total)

    def _model_and_loader(self) -> tuple[Any, Any, Any]:
        import torch

        collate = CountingCollator(self._job, self.pads_to_maximum)
        samples: Any = self.samples
        loader = torch.utils.data.DataLoader(
            samples, self._job.batch_size, shuffle=True, collate_fn=collate
        )
        return classifier(self._job), loader, collate


class Accelerate(Tutorial):
    """A plain loop with Accelerate, each batch padded to its own longest text."""

    pads_to_maximum = False

    def train(self, on_step: OnStep) -> Outcome:
        """Train one trial."""
        import accelerate  # type: ignore[import-not-found,import-untyped,unused-ignore]  # optional
        import torch

        accelerator = accelerate.Accelerator(
            mixed_precision=best_precision(self._job), cpu=self._job.device == "cpu"
        )
        accelerate.utils.set_seed(self._job.seed)
        model, loader, cells = self._model_and_loader()
        optimizer = torch.optim.AdamW(
            model.parameters(),
            self._job.learning_rate,
            weight_decay=self._job.weight_decay,
            fused=True,
        )
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, len(loader))
        model.train()
        for batch in loader:
            accelerator.backward(model(**batch).loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            on_step()
        return Outcome(accuracy(model, self._job), cells.total)


class Trainer:
    """The Trainer of transformers with a dynamic padding collator and its defaults."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.samples = tokenised(job)

    def options(self) -> dict[str, Any]:
        """The options that differ from its defaults."""
        return {}

    def train(self, on_step: OnStep) -> Outcome:
        """Train one trial."""
        import transformers

        class Steps(transformers.TrainerCallback):  # type: ignore[misc]  # transformers is not followed
            def on_step_end(self, *arguments: Any, **more: Any) -> None:
                on_step()

        job, collate = self._job, CountingCollator(self._job, pads_to_maximum=False)
        with tempfile.TemporaryDirectory() as folder:
            options = transformers.TrainingArguments(
                output_dir=folder,
                num_train_epochs=1,
                per_device_train_batch_size=job.batch_size,
                learning_rate=job.learning_rate,
                weight_decay=job.weight_decay,
                seed=job.seed,
                use_cpu=job.device == "cpu",
                disable_tqdm=True,
                **self.options(),
            )
            trainer = transformers.Trainer(
                classifier(job), options, collate, train_dataset=self.samples, callbacks=[Steps()]
            )
            trainer.train()
        return Outcome(accuracy(trainer.model, job), collate.total)


class TunedTrainer(Trainer):
    """The Trainer with the options for speed from its documentation."""

    def options(self) -> dict[str, Any]:
        """Texts of similar length together, no NaN filter, bf16 if the device has it."""
        gpu = self._job.device != "cpu"
        return {
            "train_sampling_strategy": "group_by_length",
            "logging_nan_inf_filter": False,
            "save_strategy": "no",
            "optim": "adamw_torch_fused",
            "bf16": best_precision(self._job) == "bf16",
            "dataloader_pin_memory": gpu,
        }


class CountingCollator:
    """Pads batches, and counts their tokens and padding."""

    def __init__(self, job: Job, pads_to_maximum: bool) -> None:
        import transformers

        padding: dict[str, Any] = (
            {"padding": "max_length", "max_length": job.max_length} if pads_to_maximum else {}
        )
        self._collate = transformers.DataCollatorWithPadding(tokenizer(job), **padding)
        self.total = 0

    def __call__(self, samples: list[dict[str, Any]]) -> Any:
        """A batch of tensors."""
        batch = self._collate(samples)
        self.total += batch["input_ids"].numel()
        return batch


# ---------------------------------------------------------------------------- shared parts


def classifier(job: Job) -> Any:
    """The job's model, read from its folder."""
    import transformers

    more = {} if job.dropout is None else dict.fromkeys(_DROPOUTS, job.dropout)
    loaded = transformers.AutoModelForSequenceClassification.from_pretrained(
        job.folder / "model", **more
    )
    return loaded.to(job.device)


_DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob")


@functools.cache
def tokenizer(job: Job) -> Any:
    """The job's tokenizer."""
    import transformers

    return transformers.AutoTokenizer.from_pretrained(job.folder / "model")


def accuracy(model: Any, job: Job) -> float:
    """The share of the test rows that a model classifies correctly."""
    import torch

    texts, categories = job.rows("test.csv")
    model.eval()
    right = 0
    with torch.inference_mode():
        for start in range(0, len(texts), 128):
            part = texts[start : start + 128]
            inputs = tokenizer(job)(
                part, truncation=True, max_length=job.max_length, padding=True, return_tensors="pt"
            ).to(job.device)
            found = model(**inputs).logits.argmax(dim=-1).tolist()
            right += sum(
                model.config.id2label[f] == c
                for f, c in zip(found, categories[start:], strict=False)
            )
    return right / len(texts)


def tokenised(job: Job, name: str = "train.csv") -> list[dict[str, Any]]:
    """The rows of a file as a DataLoader takes them: token ids, attention mask, label."""
    import transformers

    texts, categories = job.rows(name)
    names = transformers.AutoConfig.from_pretrained(job.folder / "model").label2id
    encoded = tokenizer(job)(
        texts, truncation=True, max_length=job.max_length, return_token_type_ids=False
    )
    columns: Iterator[Any] = zip(
        encoded["input_ids"], encoded["attention_mask"], categories, strict=True
    )
    return [{"input_ids": i, "attention_mask": m, "labels": names[c]} for i, m, c in columns]


def best_precision(job: Job) -> str:
    """The precision that suits the device, in Accelerate's terms."""
    import torch

    from trials.devices.precision import best_for

    name = best_for(torch.device(job.device))
    return "no" if name == "fp32" else name


CONTENDERS: dict[str, Callable[[Job], Any]] = {
    "floor": Floor,
    "floor, compiled": functools.partial(Floor, pad_to=Job.max_length, compiled=True),
    "hpsearch": Hpsearch,
    "hpsearch, eager": functools.partial(Hpsearch, compile="never"),
    "Trainer": Trainer,
    "Trainer, tuned": TunedTrainer,
    "Accelerate": Accelerate,
    "tutorial": Tutorial,
}
NEED_A_GPU = ("floor, compiled", "hpsearch, eager")
NEED_ACCELERATE = ("Trainer", "Trainer, tuned", "Accelerate")
