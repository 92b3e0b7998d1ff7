"""The prepared data of tasks whose model predicts tokens: flat arrays of inputs and targets."""

from dataclasses import dataclass, field

import numpy as np

from trials.data.batching import Ints, Sequences
from trials.tasks.huggingface.tokenizer import Cut

IGNORED = -100  # a token without a target (torch's own `ignore_index`)


@dataclass(frozen=True)
class Split:
    """The samples of a split. `targets`: tokens or classes to predict, `IGNORED` for none."""

    inputs: Sequences
    targets: Sequences

    @property
    def weights(self) -> Ints:
        """The number of targets of each sample, shape (n,)."""
        is_target = self.targets.tokens != IGNORED
        counted = np.concatenate([[0], np.cumsum(is_target)])
        offsets = self.targets.offsets
        found: Ints = counted[offsets[1:]] - counted[offsets[:-1]]
        return found


@dataclass(frozen=True)
class Scored:
    """The targets of validation samples that are the same in every trial, however much of a sample
    that trial reads."""

    targets: Sequences  # the tokens or classes to predict, never `IGNORED`
    cells: Sequences | None = None
    """The place in a sample's inputs where the model predicts each target; `IGNORED` for a target
    that was cut off, which counts as missed. None if every target has its own place."""

    @property
    def missed(self) -> int:
        if self.cells is None:
            return 0
        return int(np.count_nonzero(self.cells.tokens == IGNORED))


@dataclass(frozen=True)
class SequenceData:
    """Prepared data: plain arrays, which may be read-only, and a little metadata."""

    train: Split
    validation: Split
    padding: int
    vocabulary: int
    tokenizer_files: dict[str, bytes]  # the tokenizer as `save_pretrained` writes it, by file name
    labels: tuple[str, ...] = ()
    """The names of the classes of a token; empty if tokens themselves are predicted."""
    scored: Scored | None = None
    """The targets that the validation samples are scored on; None for their own."""
    cut: Cut = field(default_factory=dict)
    """The texts that are longer than a setting allows, of all texts."""
    scored_bytes: int = 0  # the UTF-8 bytes of the text that is scored, if tokens are predicted


SEQUENCE_TYPES: tuple[type, ...] = (SequenceData, Split, Scored, Sequences)
"""The dataclasses that the prepared data of such a task is made of."""
