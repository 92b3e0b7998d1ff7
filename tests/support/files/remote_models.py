"""Models that bring code of their own, made on the spot. Every file of it writes down that it was
run."""

import json
from pathlib import Path

import safetensors.torch
import torch

from trials.tasks.huggingface import tokenizer as text_tokenizer

RAN = "ran.txt"
"""Beside the model: the files of its code that were run, a line each."""
WIDTH = 16

_NOTE = """
with open({ran!r}, "a") as _file:
    _file.write(__name__.rpartition(".")[2] + "\\n")
"""
CONFIGURATION = """
from transformers import PretrainedConfig


class BagConfig(PretrainedConfig):
    model_type = "bag_of_words"

    def __init__(self, vocabulary=120, width=16, **others):
        self.vocabulary, self.width = vocabulary, width
        super().__init__(**others)
"""
MODELING = """
from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput

from .configuration_bag import BagConfig


class BagForSequenceClassification(PreTrainedModel):
    config_class = BagConfig

    def __init__(self, config):
        super().__init__(config)
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.classifier = nn.Linear(config.width, config.num_labels)
        self.post_init()

    def forward(self, input_ids, attention_mask):
        mask = attention_mask[..., None].to(self.embedding.weight.dtype)
        mean = (self.embedding(input_ids) * mask).sum(1) / mask.sum(1)
        return SequenceClassifierOutput(logits=self.classifier(mean))
"""
TOKENIZATION = """
from transformers import PreTrainedTokenizerFast


class BagTokenizer(PreTrainedTokenizerFast):
    pass
"""


def write_model(
    folder: Path, texts: list[str], own_tokenizer: bool = False, modeling: str = MODELING
) -> Path:
    """Write a bag of words for three classes: configuration, weights, tokenizer and their code.

    Args:
        folder: Where to; made.
        texts: What the tokenizer learns its pieces from.
        own_tokenizer: Whether the tokenizer brings code too.
        modeling: The code of the model.

    Returns: The folder.
    """
    folder.mkdir()
    tokenizer = text_tokenizer.word_pieces(texts, 120)
    tokenizer.save_pretrained(folder)
    note = _NOTE.format(ran=str(folder / RAN))
    (folder / "configuration_bag.py").write_text(CONFIGURATION + note)
    (folder / "modeling_bag.py").write_text(modeling + note)
    config = {
        "model_type": "bag_of_words",
        "vocabulary": len(tokenizer),
        "width": WIDTH,
        "architectures": ["BagForSequenceClassification"],
        "auto_map": {
            "AutoConfig": "configuration_bag.BagConfig",
            "AutoModelForSequenceClassification": "modeling_bag.BagForSequenceClassification",
        },
    }
    (folder / "config.json").write_text(json.dumps(config))
    draw = torch.Generator().manual_seed(0)
    weights = {"embedding.weight": torch.randn(len(tokenizer), WIDTH, generator=draw)}
    safetensors.torch.save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    if own_tokenizer:
        (folder / "tokenization_bag.py").write_text(TOKENIZATION + note)
        told = json.loads((folder / "tokenizer_config.json").read_text())
        told |= {
            "tokenizer_class": "BagTokenizer",
            "auto_map": {"AutoTokenizer": [None, "tokenization_bag.BagTokenizer"]},
        }
        (folder / "tokenizer_config.json").write_text(json.dumps(told))
    return folder


def ran(folder: Path) -> set[str]:
    """The files of a model's code that were run."""
    path = folder / RAN
    return set(path.read_text().split()) if path.exists() else set()
