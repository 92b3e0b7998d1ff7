"""The tokenizer of a text model: the pretrained one's own, or one learnt from the texts."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trials.contract import TaskError
from trials.descriptions.models import Pretrained, Scratch
from trials.tasks.huggingface.pretrained import loading

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import BatchEncoding, PreTrainedTokenizerBase

PAD, UNKNOWN, START, END = SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
END_OF_TEXT = "<|endoftext|>"
FILL, END_OF_SEQUENCE = "<pad>", "</s>"
TOKEN_TYPES = "token_type_ids"  # noqa: S105 - no password: tokens are words here
"""An input of some models of pairs: the number of each token's text."""
INPUTS = ("input_ids", "attention_mask")
SCRATCH_POSITIONS = 512  # the longest text of a model from scratch, in tokens

Cut = Mapping[str, tuple[int, int]]
"""By a setting of the longest text: the number of texts that are cut, and the number of all."""


def load(
    model: Pretrained | Scratch,
    texts: Sequence[str],
    max_length: int,
    scratch: Callable[[Sequence[str], int], PreTrainedTokenizerBase] | None = None,
    targets: Mapping[str, int] | None = None,
    **options: Any,
) -> PreTrainedTokenizerBase:
    """The tokenizer for a model. Raises TaskError if the model cannot be found or loaded, or cannot
    read texts so long.

    Args:
        texts: The training texts, from which a tokenizer from scratch learns.
        scratch: Learns a vocabulary of a size from texts; None for lower-cased word pieces.
        targets: The longest target texts, in tokens, by their settings; None without targets.
    """
    lengths = {"max_length": max_length, **(targets or {})}
    if isinstance(model, Scratch):
        _check(lengths, SCRATCH_POSITIONS)
        return (scratch or word_pieces)(texts, model.vocabulary)
    from transformers import AutoConfig, AutoTokenizer

    with loading(model):
        config = AutoConfig.from_pretrained(model.name, trust_remote_code=model.trusted)
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            model.name, trust_remote_code=model.trusted, **options
        )
    longest = tokenizer.model_max_length
    positions = getattr(config, "max_position_embeddings", None) or longest
    _check(lengths, min(positions, longest))
    return tokenizer


def facts_of(tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    """The fields of prepared data that its tokenizer decides on."""
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        found = {}
        for path in sorted(Path(folder).iterdir()):
            if path.is_file():
                found[path.name] = path.read_bytes()
    padding = padding_of(tokenizer)
    return {"padding": padding, "vocabulary": len(tokenizer), "tokenizer_files": found}


def bytes_of(tokenizer: PreTrainedTokenizerBase, tokens: Sequence[int]) -> int:
    """The UTF-8 bytes of the text that tokens stand for; special ones stand for none."""
    text = tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return len(text.encode())


def padding_of(tokenizer: PreTrainedTokenizerBase) -> int:
    """The token that fills a batch; for models of the GPT family, the end of text."""
    for token in (tokenizer.pad_token_id, tokenizer.eos_token_id):
        if token is not None:
            return int(token)
    return 0


def cut(encoded: BatchEncoding, max_length: int) -> int:
    """The number of texts that were cut to a length, in tokens."""
    if encoded.encodings is None:  # a tokenizer in Python does not tell
        return sum(len(tokens) >= max_length for tokens in encoded["input_ids"])
    return sum(bool(each.overflowing) for each in encoded.encodings)


def _check(lengths: Mapping[str, int], possible: int) -> None:
    for name, length in lengths.items():
        if length > possible:
            what = f"must be at most {possible}, the longest text this model can read, not {length}"
            raise TaskError.at(f"settings.{name}", what)


def parts_pairs(tokenizer: PreTrainedTokenizerBase) -> bool:
    """True if it puts a token between the two texts of a pair; some only join them."""
    of_a_pair: int = tokenizer.num_special_tokens_to_add(pair=True)
    of_a_text: int = tokenizer.num_special_tokens_to_add(pair=False)
    return of_a_pair > of_a_text


def word_pieces(
    texts: Sequence[str], vocabulary: int, inputs: Sequence[str] = INPUTS
) -> PreTrainedTokenizerBase:
    """Lower-cased word pieces, the same for the same texts."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    # The trainer numbers letters in the order of a hash table, which breaks ties between merges
    # differently in every process; naming all letters beforehand fixes their numbers.
    found: set[str] = set()
    for text in texts:
        found.update(normalizer.normalize_str(text))
    letters = sorted(found - {" "})
    inside_words = [f"##{letter}" for letter in letters]
    first = [*SPECIAL, *letters, *inside_words]
    trainer = trainers.WordPieceTrainer(
        vocab_size=max(vocabulary, len(first)), special_tokens=first, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    pieces = tokenizer.get_vocab()

    # A second tokenizer with the same pieces, in which the letters are not special tokens.
    plain = Tokenizer(models.WordPiece(pieces, unk_token=UNKNOWN))
    plain.normalizer = normalizer
    plain.pre_tokenizer = tokenizer.pre_tokenizer
    numbered = [(START, pieces[START]), (END, pieces[END])]
    plain.post_processor = processors.TemplateProcessing(
        single=f"{START} $A {END}", pair=f"{START} $A {END} $B:1 {END}:1", special_tokens=numbered
    )
    special = {"unk_token": UNKNOWN, "pad_token": PAD, "cls_token": START, "sep_token": END}
    return _fast(plain, inputs, **special)


def paired_word_pieces(texts: Sequence[str], vocabulary: int) -> PreTrainedTokenizerBase:
    """Word pieces for pairs of texts, with the types of tokens for BERT."""
    return word_pieces(texts, vocabulary, [*INPUTS, TOKEN_TYPES])


def byte_pairs(texts: Sequence[str], vocabulary: int) -> PreTrainedTokenizerBase:
    """Byte pairs for any text, in the manner of GPT-2; the same for the same texts."""
    tokenizer = _learnt_byte_pairs(texts, vocabulary, [END_OF_TEXT])
    special = dict.fromkeys(("bos_token", "eos_token", "pad_token"), END_OF_TEXT)
    return _fast(tokenizer, INPUTS, **special)


def ended_byte_pairs(texts: Sequence[str], vocabulary: int) -> PreTrainedTokenizerBase:
    """Byte pairs in the manner of T5: with a token at the end of each text, and a padding token."""
    from tokenizers import processors

    tokenizer = _learnt_byte_pairs(texts, vocabulary, [FILL, END_OF_SEQUENCE])
    numbered = [(END_OF_SEQUENCE, tokenizer.token_to_id(END_OF_SEQUENCE))]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {END_OF_SEQUENCE}", special_tokens=numbered
    )
    return _fast(tokenizer, INPUTS, eos_token=END_OF_SEQUENCE, pad_token=FILL)


def _learnt_byte_pairs(texts: Sequence[str], vocabulary: int, special: list[str]) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=max(vocabulary, len(alphabet) + len(special)),
        special_tokens=special,
        initial_alphabet=alphabet,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _fast(tokenizer: Tokenizer, inputs: Sequence[str], **special: str) -> PreTrainedTokenizerBase:
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=SCRATCH_POSITIONS,
        model_input_names=list(inputs),
        **special,
    )
