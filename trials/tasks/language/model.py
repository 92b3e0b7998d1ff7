"""The model of a language modelling task: a pretrained one, or a small GPT-2 from scratch."""

from __future__ import annotations

import transformers

from trials.descriptions.models import Scratch
from trials.tasks.huggingface.data import SequenceData
from trials.tasks.huggingface.sequences import SequenceWorkload
from trials.tasks.huggingface.tokenizer import SCRATCH_POSITIONS


class LanguageWorkload(SequenceWorkload):
    """A language model with its blocks or documents."""

    AUTO = transformers.AutoModelForCausalLM
    CAUSAL = True

    @staticmethod
    def scratch(shape: Scratch, data: SequenceData) -> transformers.PretrainedConfig:
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
