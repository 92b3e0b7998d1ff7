"""A model of a few hundred million weights: the memory that adapters train in, and what their
checkpoints hold."""

import json
import sys
from pathlib import Path

import pytest
import tokenizers
import torch
import transformers
from safetensors.torch import load_file

from support.running.programs import run_program
from trials.tasks.huggingface.lora import ADAPTERS

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").is_file(), reason="needs Linux's count of memory"
)

RANK = 4
LORA = {
    "lora": True, "lora_rank": RANK, "precision": "bf16", "batch_size": 2, "max_length": 8,
    "learning_rate": 1e-3, "keep_checkpoints": 3,
}  # fmt: skip
BUDGET = {"steps": 3, "report_every": 1}
TRAINED = 1.5
"""The most that training may take, in sizes of the base: itself, and activations, adapters and
their optimizer."""
PUBLISHED = 4.0
"""The most that a final training may take: the base, the merged model, and what memory is not yet
given back."""

CHILD = """
import gc, json, sys
from pathlib import Path
import peft, torch, transformers
from trials import tasks; from trials.tasks.final import training as final
from trials.running.arithmetic import Arithmetic
from trials.running.report_grid import budget_from
from trials.contract import Setup

def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024

folder, part, params, budget = Path(sys.argv[1]), *map(json.loads, sys.argv[2:])
torch.set_num_threads(2)
task, budget = tasks.load(part, folder), budget_from(budget)
data = task.prepare(params)
from trials.tasks.sequences import workload  # all that training imports
before = peak()
setup = Setup(params, 5, budget, folder / "run")
run = task.start(setup, data)
reports = [item for item in run if item]
run.close()
del run
gc.collect()
trained = peak()
say = lambda line: None
short = budget_from({"steps": 1})
plan = final.Plan(params, 5, short, False, "cpu", {}, Arithmetic(1))
version = final.train(task, plan, folder / "models", say)
print(json.dumps({
    "trained": trained - before, "published": peak() - before, "version": str(version),
    "checkpoints": [str(report.checkpoint) for report in reports], \
"loss": [r.metrics["loss"] for r in reports],
}))
"""


@pytest.fixture
def base(tmp_path):
    """A Llama with random weights in bfloat16, with a head of its own and a tokenizer of words."""
    config = transformers.LlamaConfig(
        vocab_size=512, hidden_size=1024, intermediate_size=4096,
        num_hidden_layers=12, num_attention_heads=8, max_position_embeddings=64,
        tie_word_embeddings=False, pad_token_id=0, eos_token_id=1, bos_token_id=None,
    )  # fmt: skip
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config).to(torch.bfloat16)
    model.to_empty(device="cpu")
    noise = (
        torch.empty(4096 * 1024)
        .uniform_(-0.03, 0.03, generator=torch.Generator().manual_seed(0))
        .bfloat16()
    )
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("norm.weight"):
                parameter.fill_(1.0)
            else:
                parameter.copy_(noise[: parameter.numel()].view_as(parameter))
    folder = tmp_path / "base"
    transformers.logging.disable_progress_bar()
    model.save_pretrained(folder)
    words = {"<pad>": 0, "</s>": 1, **{f"w{number}": number for number in range(2, 512)}}
    built = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="</s>"))
    built.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=built, pad_token="<pad>", eos_token="</s>", unk_token="</s>"
    ).save_pretrained(folder)
    return folder


@pytest.mark.thorough
def test_adapters_of_a_large_model_train_in_little_more_memory_than_it_and_are_all_that_is_saved(
    tmp_path, base
):
    (tmp_path / "train.txt").write_text(
        "\n\n".join(" ".join(f"w{2 + n * 7 % 97}" for n in range(40)) for _ in range(4))
    )
    part = {"kind": "language_modeling", "train": "train.txt", "validation": 0.25, "model": "base"}
    command = [sys.executable, "-c", CHILD, str(tmp_path), *map(json.dumps, (part, LORA, BUDGET))]
    done = run_program(command)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    size = (base / "model.safetensors").stat().st_size
    assert size > 400e6, "it is large enough for everything else to be small beside it"
    assert told["trained"] < TRAINED * size, told
    assert told["published"] < PUBLISHED * size, told
    assert told["loss"][-1] < told["loss"][0]

    shapes = {"k_proj": (1024, 1024), "gate_proj": (1024, 4096), "down_proj": (4096, 1024)}
    kinds = {
        **shapes,
        "q_proj": (1024, 1024),
        "v_proj": (1024, 1024),
        "o_proj": (1024, 1024),
        "up_proj": (1024, 4096),
    }
    weights = 12 * sum(RANK * (inputs + outputs) for inputs, outputs in kinds.values())
    assert len(told["checkpoints"]) == 3
    for checkpoint in map(Path, told["checkpoints"]):
        tensors = load_file(checkpoint / ADAPTERS)
        assert all(".lora_" in name for name in tensors), "the head that scores tokens is frozen"
        assert sum(tensor.numel() for tensor in tensors.values()) == weights
        written = sum(path.stat().st_size for path in checkpoint.iterdir())
        assert written < 3 * 4 * weights + 1e6, (
            "weights and two moments of AdamW in float32, and small files"
        )

    version = Path(told["version"])
    merged = sum(path.stat().st_size for path in version.glob("*.safetensors"))
    assert merged == pytest.approx(size, rel=0.01)
    loaded = transformers.AutoModelForCausalLM.from_pretrained(version)
    assert loaded.dtype == torch.bfloat16
    changed = load_file(base / "model.safetensors")["model.layers.0.self_attn.q_proj.weight"]
    assert not torch.equal(loaded.model.layers[0].self_attn.q_proj.weight, changed)
