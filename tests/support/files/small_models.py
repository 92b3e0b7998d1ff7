"""Small models with weights, as `save_pretrained` writes them, made on the spot."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
import transformers

from trials.tasks.huggingface import tokenizer as tokenizers

WEIGHTS = "model.safetensors"
VOCABULARY = 300
_SHAPE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
_WIDE = {**_SHAPE, "intermediate_size": 32}
_IMAGES = {"image_size": 16, "patch_size": 4}
_CONFIGS = {
    "bert": lambda words: transformers.BertConfig(vocab_size=words, **_WIDE),
    "llama": lambda words: transformers.LlamaConfig(vocab_size=words, **_WIDE),
    "gpt2": lambda words: transformers.GPT2Config(vocab_size=words, n_embd=16, n_layer=2, n_head=2),
    "t5": lambda words: transformers.T5Config(
        vocab_size=words,
        d_model=16,
        d_kv=8,
        d_ff=32,
        num_layers=2,
        num_heads=2,
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
    ),
    "bart": lambda words: transformers.BartConfig(
        vocab_size=words,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_position_embeddings=32,
        pad_token_id=0,
        bos_token_id=0,
        eos_token_id=1,
        forced_eos_token_id=1,
        decoder_start_token_id=0,
    ),
    "vit": lambda _: transformers.ViTConfig(**_WIDE, **_IMAGES),
    "clip": lambda _: transformers.CLIPConfig(vision_config={**_WIDE, **_IMAGES}),
    "resnet": lambda _: transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_channels=3
    ),
}
_TOKENIZERS = {
    "bert": tokenizers.paired_word_pieces,
    "llama": tokenizers.byte_pairs,
    "gpt2": tokenizers.byte_pairs,
    "t5": tokenizers.ended_byte_pairs,
    "bart": tokenizers.ended_byte_pairs,
}


def config_of(family: str, words: int = VOCABULARY) -> Any:
    """The configuration of a small model of a family."""
    return _CONFIGS[family](words)


def write(
    folder: Path, family: str, texts: Sequence[str] = (), auto: Any = transformers.AutoModel
) -> Path:
    """Write a model of a family, with the tokenizer of some texts; return its folder.

    Args:
        auto: The class of transformers for the head; without one, only a body is written.
    """
    words = VOCABULARY
    if family in _TOKENIZERS:
        tokenizer = _TOKENIZERS[family](texts, VOCABULARY)
        tokenizer.save_pretrained(folder)
        words = len(tokenizer)
    torch.manual_seed(0)
    transformers.utils.logging.disable_progress_bar()
    auto.from_config(config_of(family, words)).save_pretrained(folder)
    return folder


def rewrite(folder: Path, change: Any) -> None:
    """Replace the weights in a folder by what `change` makes of them, by name."""
    file = folder / WEIGHTS
    safetensors.torch.save_file(change(safetensors.torch.load_file(file)), file, {"format": "pt"})
