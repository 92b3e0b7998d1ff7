"""The model of a language modelling task: a pretrained one, or a small GPT-2 from scratch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import transformers

from trials.contract import Setup
from trials.settings import Settings
from trials.tasks.pretrained import Pretrained
from trials.tasks.sequence_data import SequenceData
from trials.tasks.sequence_model import SequenceWorkload, template
from trials.tasks.text_classification import Scratch
from trials.tasks.text_tokenizer import SCRATCH_POSITIONS

LARGEST_EXPONENT = 700.0
"""Of a floating-point number, about."""


class LanguageWorkload(SequenceWorkload):
    """A language model with its blocks or documents."""

    CAUSAL = True

    def __init__(self, model: Pretrained | Scratch, data: SequenceData, settings: Settings, setup: Setup) -> None:
        super().__init__(template(model, data, transformers.AutoModelForCausalLM, _scratch), data, settings, setup)

    def measure(self, loss: float, counts: Sequence[int]) -> dict[str, float]:
        """The perplexity of a token."""
        return {"perplexity": perplexity(loss)}


def perplexity(loss: float) -> float:
    """e to the power of the mean loss of a token."""
    return math.exp(min(loss, LARGEST_EXPONENT))


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
