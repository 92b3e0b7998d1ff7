"""Trials of two processes each, on a Ray cluster of two nodes with one CPU each."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
import yaml
from ray.cluster_utils import Cluster

from hpsearch.domain import events as ev
from hpsearch.running.executors.ray import RayExecutor
from hpsearch.running.executors.worker_config import WorkerConfig
from hpsearch.study_file.models import Resources
from support.patience import PATIENCE_S, wait_until
from support.running.executor_events import of, wait_for
from support.running.ray_nodes import two_nodes
from trials.checkpoints import folders
from trials.contract import Budget, Unit

TASK = """
import json, os, time
from pathlib import Path

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

HERE = Path(__file__).parent


def train(params, trial):
    if params.get("only_first"):
        only_first_reports(trial)
        return
    torch.manual_seed(trial.seed)
    model = torch.nn.Linear(2, 1)
    start = 0
    if trial.checkpoint is not None:
        state = torch.load(trial.checkpoint / "state.pt")
        model.load_state_dict(state["model"])
        start = state["epoch"]
    parallel = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=params["lr"])
    note(trial, "begins", start=start, process=os.getpid(), variables={
        name: os.environ[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT")
    })
    for epoch in range(start + 1, trial.budget + 1):
        if trial.rank == 1 and (HERE / "kill").exists() and epoch == 3:
            (HERE / "kill").unlink()
            os.kill(os.getpid(), 9)
        while params.get("waits") and not (HERE / "go").exists() and epoch == 2:
            time.sleep(0.02)
        rows = torch.full((4, 2), float(trial.rank + 1))  # each rank has its own
        loss = (parallel(rows) - 1.0).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with trial.save() as folder:
            torch.save({"model": model.state_dict(), "epoch": epoch}, folder / "state.pt")
        weights = model.weight.detach().flatten().tolist()
        note(trial, "trained", epoch=epoch, weights=weights)
        trial.report(epoch, {"loss": loss if trial.rank == 0 else float("nan")})


def only_first_reports(trial):
    for epoch in range(1, trial.budget + 1):
        distributed.all_reduce(torch.ones(1))
        if trial.rank == 0:
            trial.report(epoch, {"loss": 1.0})


def hugging_face(params, trial):
    from transformers import DistilBertConfig, DistilBertForSequenceClassification
    from transformers import Trainer, TrainerCallback, TrainingArguments

    from trials.adapters.huggingface import TrainerReports

    class Notes(TrainerCallback):
        def on_step_end(self, args, state, control, model, **_):
            weights = sum(each.sum().item() for each in model.parameters())
            note(trial, "trained", step=state.global_step, weights=weights, ranks=args.world_size)

    torch.manual_seed(trial.seed)
    model = DistilBertForSequenceClassification(DistilBertConfig(
        vocab_size=30, dim=8, n_layers=1, n_heads=2, hidden_dim=16, max_position_embeddings=8
    ))
    draw = torch.Generator().manual_seed(1)
    tokens = torch.randint(2, 30, (16, 6), generator=draw)
    rows = [{"input_ids": row, "labels": (row > 15).sum() % 2} for row in tokens]
    arguments = TrainingArguments(
        output_dir=str(trial.folder), num_train_epochs=trial.budget, report_to="none",
        per_device_train_batch_size=2, use_cpu=True, learning_rate=params["lr"], disable_tqdm=True,
    )
    trainer = Trainer(
        model, arguments, train_dataset=rows, eval_dataset=rows,
        callbacks=[Notes(), TrainerReports(trial)],
    )
    trainer.train(resume_from_checkpoint=trial.checkpoint)


def by_trl(params, trial):
    from datasets import Dataset
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, TrainerCallback
    from trl import SFTConfig, SFTTrainer

    from trials.adapters.huggingface import TrainerReports

    class Notes(TrainerCallback):
        def on_step_end(self, args, state, control, model, **_):
            weights = sum(each.double().sum().item() for each in model.parameters())
            note(trial, "trained", step=state.global_step, weights=weights, ranks=args.world_size)

    torch.manual_seed(trial.seed)
    things = ["coffee", "cake", "soup", "tea", "bread", "pie", "rice", "fish"]
    vocabulary = ["<pad>", "</s>", "the", "was", "cold", "good", *things]
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(vocabulary)}, "<pad>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="</s>")
    rows = [{"text": f"the {thing} was {how}"} for thing in things for how in ("cold", "good")]
    model = GPT2LMHeadModel(GPT2Config(
        vocab_size=len(vocabulary), n_embd=8, n_layer=1, n_head=2, n_positions=16,
        bos_token_id=1, eos_token_id=1,
    ))
    arguments = SFTConfig(
        output_dir=str(trial.folder), num_train_epochs=trial.budget, report_to="none", bf16=False,
        per_device_train_batch_size=2, use_cpu=True, learning_rate=params["lr"], disable_tqdm=True,
    )
    trainer = SFTTrainer(
        model, args=arguments, train_dataset=Dataset.from_list(rows),
        eval_dataset=Dataset.from_list(rows[:6]), processing_class=tokenizer,
        callbacks=[Notes(), TrainerReports(trial)],
    )
    trainer.train(resume_from_checkpoint=trial.checkpoint)


def by_lightning(params, trial):
    import lightning

    from trials.adapters.lightning import LightningReports

    class Line(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.line = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Dropout(0.2))

        def training_step(self, batch, batch_idx):
            loss = (self.line(batch[0]) - batch[1]).square().mean()
            note(trial, "trained", step=self.global_step, rows=batch[1].tolist(), loss=loss.item())
            return loss

        def validation_step(self, batch, batch_idx):
            loss = (self.line(batch[0]) - batch[1]).square().mean()
            self.log("val_loss", loss, sync_dist=True)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=params["lr"])

    lightning.seed_everything(trial.seed, verbose=False)
    reports = LightningReports(trial)
    numbers = torch.arange(16.0)
    points = torch.stack([numbers, -numbers], 1) / 16
    rows = torch.utils.data.TensorDataset(points, numbers[:, None])
    nodes = int(os.environ["GROUP_WORLD_SIZE"])
    trainer = lightning.Trainer(
        accelerator="cpu", strategy="ddp", num_nodes=nodes, devices=trial.world_size // nodes,
        max_epochs=trial.budget, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, callbacks=[reports],
    )
    trainer.fit(
        Line(), torch.utils.data.DataLoader(rows, 2, shuffle=True),
        torch.utils.data.DataLoader(rows, 4), ckpt_path=reports.checkpoint,
    )


def by_accelerate(params, trial):
    from accelerate import Accelerator

    torch.manual_seed(trial.seed)
    accelerator = Accelerator(cpu=True)
    numbers = torch.arange(16.0)
    points = torch.stack([numbers, -numbers], 1) / 16
    rows = torch.utils.data.TensorDataset(points, numbers[:, None])
    model = torch.nn.Linear(2, 1)
    model, optimizer, batches = accelerator.prepare(
        model, torch.optim.SGD(model.parameters(), lr=params["lr"]),
        torch.utils.data.DataLoader(rows, 2),
    )
    start = 0
    if trial.checkpoint is not None:
        accelerator.load_state(trial.checkpoint)
        start = json.loads((trial.checkpoint / "epoch.json").read_text())
    for epoch in range(start + 1, trial.budget + 1):
        for points, wanted in batches:
            loss = (model(points) - wanted).square().mean()
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
        weights = accelerator.unwrap_model(model).weight.flatten().tolist()
        note(trial, "trained", epoch=epoch, weights=weights, ranks=accelerator.num_processes)
        with trial.save() as folder:
            accelerator.save_state(folder)
            (folder / "epoch.json").write_text(str(epoch))
        trial.report(epoch, {"loss": accelerator.reduce(loss.detach(), "mean")})


def as_under_torchrun(lr, trial):
    distributed.init_process_group("gloo")
    total = torch.ones(1)
    distributed.all_reduce(total)
    trial.report(4, {"loss": total})
    distributed.destroy_process_group()


def note(trial, what, **facts):
    line = json.dumps({"what": what, "trial": trial.number, "size": trial.world_size, **facts})
    with (HERE / f"rank-{trial.rank}.jsonl").open("a") as file:
        print(line, file=file)
"""

BUDGET = Budget(Unit.EPOCHS, 4.0, (1.0, 2.0, 3.0, 4.0))


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    """Two nodes with one CPU each."""
    with two_nodes() as made:
        yield made


STUDY = {
    "study": "ranks",
    "task": {"kind": "ranked:train"},
    "space": {"lr": {"type": "float", "low": 0.01, "high": 0.1}},
    "objective": {"metric": "loss", "direction": "minimize"},
    "budget": {"trials": 3, "per_trial": {"epochs": 4}},
    "search": {"pruner": {"kind": "promotion", "eta": 2, "pause": True}},
    "resources": {"workers": 1, "processes": 2, "gpu": 0},
}


@pytest.fixture
def make(nodes: Cluster, tmp_path: Path) -> Iterator[Any]:
    """Makes an executor of one slot for a function of the module above."""
    made: list[RayExecutor] = []

    def make_for(kind: str = "ranked:train", **more: Any) -> tuple[RayExecutor, str]:
        for before in made:
            before.close()
        made.clear()
        (tmp_path / "ranked.py").write_text(TASK)
        config = WorkerConfig(
            {"kind": kind},
            str(tmp_path),
            {},
            BUDGET,
            str(tmp_path / "saved"),
            prepares=False,
        )
        executor = RayExecutor(config, Resources(workers=1, processes=2, gpu=0.0, **more))
        made.append(executor)
        return executor, slot_of(wait_for(executor, of(ev.SlotUp)))

    yield make_for
    for executor in made:
        executor.close()


def slot_of(events: list[ev.Event]) -> str:
    return next(event.slot for event in events if isinstance(event, ev.SlotUp))


def ended(events: list[ev.Event]) -> bool:
    return of(ev.Finished)(events) or of(ev.Failed)(events)


def launch(slot: str, attempt: int = 1, until: float = 4.0, **params: Any) -> ev.Launch:
    resume_from = params.pop("resume_from", None)
    return ev.Launch(0, attempt, slot, {"lr": 0.1, **params}, 7, until, resume_from)


def notes_of(folder: Path, rank: int, what: str) -> list[dict[str, Any]]:
    file = folder / f"rank-{rank}.jsonl"
    if not file.is_file():
        return []
    found = [json.loads(line) for line in file.read_text().splitlines()]
    return [each for each in found if each["what"] == what]


def last_of(events: list[ev.Event], kind: type[Any]) -> Any:
    return [event for event in events if isinstance(event, kind)][-1]


def test_all_ranks_train_one_model_stop_together_and_continue_and_the_first_reports_for_all(
    make: Any, tmp_path: Path
) -> None:
    executor, slot = make()
    executor.launch(launch(slot, until=2.0))
    events = wait_for(executor, of(ev.Reported, 2))
    executor.stop(ev.Stop(0, 1, save=True))
    events += wait_for(executor, of(ev.Stopped))
    assert [e.resource for e in events if isinstance(e, ev.Reported)] == [1.0, 2.0]
    assert notes_of(tmp_path, 0, "trained") == notes_of(tmp_path, 1, "trained")
    assert [each["epoch"] for each in notes_of(tmp_path, 1, "trained")] == [1, 2]

    executor.launch(launch(slot, 2, resume_from=last_of(events, ev.Stopped).checkpoint))
    events = wait_for(executor, ended)
    assert not of(ev.SlotDown)(events)
    trained = notes_of(tmp_path, 1, "trained")
    assert [each["epoch"] for each in trained] == [1, 2, 3, 4]
    assert trained == notes_of(tmp_path, 0, "trained")
    for rank in (0, 1):
        begun = notes_of(tmp_path, rank, "begins")
        assert [each["start"] for each in begun] == [0, 2]
        assert {each["process"] for each in begun} == {begun[0]["process"]}, "they stay warm"
        assert {each["size"] for each in begun} == {2}
        for each in begun:
            variables = each["variables"]
            assert variables.pop("MASTER_PORT").isdigit()
            assert variables == {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": "0"}
    newest = tmp_path / "saved" / folders.trial_folder(0) / "epoch-4"
    assert torch.load(newest / "state.pt")["epoch"] == 4
    assert len(list(newest.parent.glob("epoch-*"))) == 4, "one checkpoint a report, of rank 0"

    executor.launch(replace(launch(slot, only_first=True), trial=1))
    events = wait_for(executor, ended)
    assert [e.resource for e in events if isinstance(e, ev.Reported)] == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.thorough
def test_a_follower_that_hangs_is_replaced(make: Any, tmp_path: Path) -> None:
    executor, slot = make(worker_timeout=15)
    executor.launch(launch(slot, until=1.0, waits=True))
    wait_for(executor, of(ev.Reported))
    process = notes_of(tmp_path, 1, "begins")[0]["process"]
    os.kill(process, signal.SIGSTOP)
    down = wait_for(executor, of(ev.SlotDown))
    assert "rank 1: no sign of life for 15 s" in last_of(down, ev.SlotDown).why
    assert of(ev.SlotUp)([*down, *wait_for(executor, of(ev.SlotUp))])
    wait_until(lambda: not psutil.pid_exists(process))


@pytest.mark.thorough
def test_a_trainer_of_hugging_face_trains_on_all_ranks_and_continues(
    make: Any, tmp_path: Path
) -> None:
    executor, slot = make("ranked:hugging_face")
    executor.launch(launch(slot, until=2.0))
    events = wait_for(executor, of(ev.Reported, 2))
    executor.stop(ev.Stop(0, 1, save=True))
    events += wait_for(executor, of(ev.Stopped))
    checkpoint = Path(last_of(events, ev.Stopped).checkpoint)
    states = {path.name for path in checkpoint.glob("rng_state*")}
    assert states == {"rng_state_0.pth", "rng_state_1.pth"}
    executor.launch(launch(slot, 2, resume_from=str(checkpoint)))
    events += wait_for(executor, ended)
    assert not of(ev.SlotDown)(events)
    reported = [e for e in events if isinstance(e, ev.Reported)]
    assert [each.resource for each in reported] == [1.0, 2.0, 3.0, 4.0]
    assert "eval_loss" in reported[0].metrics
    trained = notes_of(tmp_path, 0, "trained")
    assert trained == notes_of(tmp_path, 1, "trained")
    # 16 rows, in batches of 2 for each of two ranks: 4 steps an epoch.
    assert [each["step"] for each in trained] == list(range(1, 17))
    assert {each["ranks"] for each in trained} == {2}


def paused_at_2(make: Any, kind: str) -> list[ev.Event]:
    """The events of a trial that is paused, and goes on on the same ranks."""
    executor, slot = make(kind)
    executor.launch(launch(slot, until=2.0))
    events = wait_for(executor, of(ev.Reported, 2))
    executor.stop(ev.Stop(0, 1, save=True))
    events += wait_for(executor, of(ev.Stopped))
    checkpoint = last_of(events, ev.Stopped).checkpoint
    executor.launch(launch(slot, 2, resume_from=checkpoint))
    events += wait_for(executor, ended)
    assert of(ev.Finished)(events), events
    assert not of(ev.SlotDown)(events)
    reported = [each.resource for each in events if isinstance(each, ev.Reported)]
    assert reported == [1.0, 2.0, 3.0, 4.0]
    return events


@pytest.mark.thorough
def test_a_trainer_of_trl_trains_on_all_ranks_and_continues(make: Any, tmp_path: Path) -> None:
    events = paused_at_2(make, "ranked:by_trl")
    assert {"eval_loss", "eval_mean_token_accuracy"} <= set(last_of(events, ev.Reported).metrics)
    whole = notes_of(tmp_path, 0, "trained")
    assert whole == notes_of(tmp_path, 1, "trained")
    # 16 rows, in batches of 2 for each of two ranks: 4 steps an epoch.
    assert [(each["step"], each["ranks"]) for each in whole] == [(n, 2) for n in range(1, 17)]
    (tmp_path / "rank-0.jsonl").unlink()
    executor, slot = make("ranked:by_trl")
    executor.launch(launch(slot))
    wait_for(executor, ended)
    assert notes_of(tmp_path, 0, "trained") == whole, "a pause costs nothing"


@pytest.mark.thorough
def test_a_trainer_of_lightning_trains_on_all_ranks_and_continues(
    make: Any, tmp_path: Path
) -> None:
    events = paused_at_2(make, "ranked:by_lightning")
    assert "val_loss" in last_of(events, ev.Reported).metrics
    whole = [notes_of(tmp_path, rank, "trained") for rank in (0, 1)]
    # 16 rows, in batches of 2 for each of two ranks: 4 steps an epoch.
    for of_rank in whole:
        assert [each["step"] for each in of_rank] == list(range(16))
    for first, second in zip(*whole, strict=True):
        assert not {row for (row,) in first["rows"]} & {row for (row,) in second["rows"]}
    for rank in (0, 1):
        (tmp_path / f"rank-{rank}.jsonl").unlink()
    executor, slot = make("ranked:by_lightning")
    executor.launch(launch(slot))
    wait_for(executor, ended)
    assert [notes_of(tmp_path, rank, "trained") for rank in (0, 1)] == whole, (
        "a pause costs nothing"
    )


@pytest.mark.thorough
def test_a_loop_with_accelerate_trains_on_all_ranks_and_continues(
    make: Any, tmp_path: Path
) -> None:
    paused_at_2(make, "ranked:by_accelerate")
    trained = notes_of(tmp_path, 0, "trained")
    assert trained == notes_of(tmp_path, 1, "trained")
    assert [(each["epoch"], each["ranks"]) for each in trained] == [(n, 2) for n in (1, 2, 3, 4)]


def test_a_study_pauses_promotes_and_survives_the_loss_of_a_rank(
    nodes: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "ranked.py").write_text(TASK)
    (tmp_path / "kill").touch()
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(STUDY))
    storage = f"sqlite:///{tmp_path}/study.db"
    program = [sys.executable, "-c", "from hpsearch.cli.main import main; main()"]
    where = ["--storage", storage, "--address", nodes.address]
    ran = subprocess.run(
        [*program, "run", "study.yaml", *where],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert ran.returncode == 0, ran.stderr
    with closing(sqlite3.connect(tmp_path / "study.db")) as database:
        states = {state for (state,) in database.execute("SELECT state FROM trials")}
        ends = database.execute("SELECT outcome, note FROM attempts").fetchall()
    assert states <= {"complete", "pruned"}
    assert "complete" in states
    (lost,) = [note for outcome, note in ends if outcome == "lost"]
    assert "rank 1 was lost" in lost
    assert "paused" in dict(ends)
    first, second = notes_of(tmp_path, 0, "trained"), notes_of(tmp_path, 1, "trained")
    assert {each["trial"] for each in first} == {0, 1, 2}
    assert first == second
    starts = [each["start"] for each in notes_of(tmp_path, 1, "begins")]
    assert 2 in starts, "the lost attempt went on from its last checkpoint"


def test_a_script_connects_its_ranks_as_it_does_under_torchrun(make: Any, tmp_path: Path) -> None:
    script = "from ranked import as_under_torchrun\nfrom trials.script import trial\n"
    (tmp_path / "by_script.py").write_text(
        f"{script}as_under_torchrun(trial.get('lr', 0.1), trial)\n"
    )
    executor, slot = make("by_script:__main__")
    executor.launch(launch(slot))
    events = wait_for(executor, ended)
    assert last_of(events, ev.Reported).metrics == {"loss": 2.0}
