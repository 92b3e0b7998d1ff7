"""The tokenizer of a text model: the pretrained one's own, or word pieces learnt from the training texts."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trials.contract import Problem, TaskError
from trials.tasks.text_classification import Scratch

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

PAD, UNKNOWN, START, END = SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
SCRATCH_POSITIONS = 512
"""The longest text of a model from scratch, in tokens."""


def load(
    model: str | Scratch,
    texts: Sequence[str],
    max_length: int,
    scratch: Callable[[Sequence[str], int], PreTrainedTokenizerBase] | None = None,
    **options: Any,
) -> PreTrainedTokenizerBase:
    """The tokenizer for a model.

    Args:
        model: A hub id or local folder, or the shape of a model from scratch.
        texts: The training texts; a tokenizer from scratch learns its word pieces from them alone.
        max_length: The longest text that will be asked for, in tokens.
        scratch: Learns a vocabulary of a size from texts; None for lower-cased word pieces.
        options: For a pretrained tokenizer.

    Raises:
        TaskError: The model cannot be found or loaded, or cannot read texts so long.
    """
    if isinstance(model, Scratch):
        _check_length(max_length, SCRATCH_POSITIONS)
        return (scratch or word_pieces)(texts, model.vocabulary)
    from transformers import AutoConfig, AutoTokenizer

    try:
        config = AutoConfig.from_pretrained(model, trust_remote_code=False)
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(model, trust_remote_code=False, **options)
    except (OSError, ValueError) as error:
        raise TaskError([not_loadable(model, error)]) from error
    positions = getattr(config, "max_position_embeddings", None) or max_length
    _check_length(max_length, min(positions, tokenizer.model_max_length))
    return tokenizer


def written(files: Mapping[str, bytes]) -> PreTrainedTokenizerBase:
    """The tokenizer that `save_pretrained` wrote as these files."""
    from transformers import AutoTokenizer

    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    return tokenizer


def padding_of(tokenizer: PreTrainedTokenizerBase) -> int:
    """The token that fills a batch; models of the GPT family have none of their own and take the end of text."""
    for token in (tokenizer.pad_token_id, tokenizer.eos_token_id):
        if token is not None:
            return int(token)
    return 0


def not_loadable(model: str, error: Exception) -> Problem:
    """The problem of a model that transformers cannot load."""
    first = (str(error).strip() or type(error).__name__).splitlines()[0]
    return Problem("task.model", f"{model!r} cannot be loaded: {first}; name a local folder or a hub id")


def _check_length(max_length: int, possible: int) -> None:
    if max_length > possible:
        what = f"must be at most {possible}, the longest text this model can read, not {max_length}"
        raise TaskError([Problem("settings.max_length", what)])


def word_pieces(texts: Sequence[str], vocabulary: int) -> PreTrainedTokenizerBase:
    """Lower-cased word pieces, the same for the same texts."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    # The trainer numbers letters in the order of a hash table, which breaks ties between merges differently in every
    # process; naming all letters beforehand fixes their numbers.
    letters = sorted({letter for text in texts for letter in tokenizer.normalizer.normalize_str(text)} - {" "})
    first = [*SPECIAL, *letters, *(f"##{letter}" for letter in letters)]
    trainer = trainers.WordPieceTrainer(
        vocab_size=max(vocabulary, len(first)), special_tokens=first, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    pieces = tokenizer.get_vocab()

    # A second tokenizer with the same pieces, in which the letters are no special tokens.
    plain = Tokenizer(models.WordPiece(pieces, unk_token=UNKNOWN))
    plain.normalizer = tokenizer.normalizer
    plain.pre_tokenizer = tokenizer.pre_tokenizer
    numbered = [(START, pieces[START]), (END, pieces[END])]
    plain.post_processor = processors.TemplateProcessing(single=f"{START} $A {END}", special_tokens=numbered)
    return PreTrainedTokenizerFast(
        tokenizer_object=plain,
        unk_token=UNKNOWN,
        pad_token=PAD,
        cls_token=START,
        sep_token=END,
        model_max_length=SCRATCH_POSITIONS,
        model_input_names=["input_ids", "attention_mask"],
    )
