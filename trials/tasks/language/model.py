"""The model of a language modelling task: a pretrained one, or a small GPT-2 from scratch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import transformers

from trials.contract import Setup
from trials.descriptions.models import Pretrained, Scratch
from trials.settings import Settings
from trials.tasks.huggingface import lora
from trials.tasks.huggingface.data import SequenceData
from trials.tasks.huggingface.sequences import SequenceWorkload, template
from trials.tasks.huggingface.tokenizer import SCRATCH_POSITIONS
from trials.tasks.metrics import perplexity


class LanguageWorkload(SequenceWorkload):
    """A language model with its blocks or documents."""

    CAUSAL = True

    def __init__(
        self, model: Pretrained | Scratch, data: SequenceData, settings: Settings, setup: Setup
    ) -> None:
        dtype = lora.base_dtype(settings, torch.device(setup.device))
        source = template(model, data, transformers.AutoModelForCausalLM, _scratch, dtype)
        super().__init__(source, data, settings, setup)

    def measure(self, loss: float, counts: Sequence[int]) -> dict[str, float]:
        """The perplexity of a token."""
        return {"perplexity": perplexity(loss)}


def _scratch(shape: Scratch, data: SequenceData) -> transformers.PretrainedConfig:
    return transformers.GPT2Config(
        vocab_size=data.vocabulary,
        n_embd=shape.width,
        n_layer=shape.layers,
        n_head=shape.heads,
        n_inner=shape.feed_forward,
        n_positions=SCRATCH_POSITIONS,
        bos_token_id=data.padding,
        eos_token_id=data.padding,
        pad_token_id=data.padding,
        use_cache=False,
    )
