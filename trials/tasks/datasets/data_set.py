"""The steps from a task's files to arrays: read, check, split, encode."""

import abc
import collections
import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from trials.contract import Fold, Problem, TaskError
from trials.descriptions.description import IN_FOLDS
from trials.descriptions.models import Pretrained, Scratch
from trials.tasks.datasets import remarks
from trials.tasks.datasets.splits import Mask, in_fold, stratified


@dataclass(frozen=True)
class DataSpec:
    """The data of a task; paths are absolute. `validation`: a file, or a fraction or a fold of the
    training data, which `split_seed` picks. `group`: the column whose rows of one value stay
    together; None for none."""

    train: Path
    validation: float | Fold | Path
    test: Path | None
    split_seed: int
    group: str | None = field(default=None, kw_only=True)

    @property
    def facts(self) -> tuple[object, ...]:
        """All other facts that decide on the prepared data; compared by `repr`."""
        return (self.split_seed,)

    @property
    def encoder(self) -> Pretrained | Scratch | None:
        """The model whose tokenizer encodes the data; None if none does."""
        return None

    def groups_in(self, where: str) -> tuple[str, ...]:
        """The column of groups, which of the files the training file alone must have."""
        return () if self.group is None or where != "task.train" else (self.group,)

    @staticmethod
    def shared(task: Mapping[str, Any], base: Path) -> dict[str, Any]:
        """The fields of this class, from a valid `task` part."""
        return {
            "train": base / task["train"],
            "validation": _validation(task["validation"], base),
            "test": base / task["test"] if "test" in task else None,
            "split_seed": task.get("split_seed", 0),
            "group": task.get("group"),
        }


def _validation(stated: float | str, base: Path) -> float | Fold | Path:
    if not isinstance(stated, str):
        return float(stated)
    folds = stated.removesuffix(IN_FOLDS)
    return Fold(0, int(folds)) if folds != stated and folds.isdecimal() else base / stated


_BY_HEART = "what is measured on them is learnt by heart"

SpecT = TypeVar("SpecT", bound=DataSpec)
Examples = TypeVar("Examples")


class DataSet(abc.ABC, Generic[SpecT, Examples]):
    TYPES: ClassVar[tuple[type, ...]]  # the dataclasses that prepared data is made of
    UNIT: ClassVar[str] = "row"

    def __init__(self, spec: SpecT) -> None:
        self.spec = spec

    @abc.abstractmethod
    def examples(self, path: Path, where: str) -> tuple[Examples, list[Problem]]:
        """The examples in a file, and the problems of their values. `where` is the study file's key
        of the file. Raises TaskError if the file cannot be read, or has no examples."""

    @abc.abstractmethod
    def encode(self, train: Examples, validation: Examples, settings: Any) -> Any:
        """Flat arrays in a dataclass. Raises TaskError: with every problem of the model."""

    def unfit(self, train: Examples) -> Iterable[Problem]:
        """Reasons why a training file with valid values cannot be learnt from."""
        return ()

    def misfits(self, train: Examples, other: Examples, where: str) -> Iterable[Problem]:
        """Differences of another file that the training file does not allow."""
        return ()

    def strata(self, train: Examples) -> Sequence[str]:
        """The name of a stratum for each example; a validation fraction takes a share of each."""
        return [""] * len(train)  # type: ignore[arg-type]

    def groups(self, train: Examples) -> Sequence[str] | None:
        """The name of a group for each example: those of a group stay together. None for none."""
        return None

    def lost(self, train: Examples, validation: Examples) -> Iterable[str]:
        """The labels without a training example after a split."""
        return ()

    def keys(self, examples: Examples, train: Examples) -> Sequence[Hashable]:
        """The input of each example, or what stands for it, to compare examples by. `train` are the
        examples of the training file."""
        return examples  # type: ignore[return-value]

    def notes(self, examples: Examples) -> Iterable[str]:
        return ()

    def remarks(self, train: Examples) -> Iterable[tuple[str, str]]:
        """Sentences on training data that may not be what its owner believes, each after its place
        in the study file."""
        return ()

    def taken(self, examples: Any, mask: Mask) -> Any:
        return list(itertools.compress(examples, mask))

    def problems(self, remark: Callable[[str, str], None] | None = None) -> list[Problem]:
        """All problems of the files, those of the test file included. `remark` takes keys,
        each with a sentence on its data, where there are no problems."""
        train, problems = self._train()
        parts, problems = self._parts(train, problems)
        test, of_test = self._other(train, self.spec.test, "task.test")
        problems += of_test
        if remark is not None and not problems:
            assert train is not None
            assert parts is not None
            for where, what in self._remarks(train, parts[1], test):
                remark(where, what)
        return problems

    def prepare(self, settings: Any) -> Any:
        """Read, check, split and encode. Raises TaskError with every problem."""
        parts, problems = self._parts(*self._train())
        if problems or parts is None:
            raise TaskError(problems)
        return self.encode(*parts, settings)

    def on_test(self, settings: Any) -> Any:
        """Encoded data without problems, with test samples in place of the validation samples."""
        parts, _ = self._parts(*self._train())
        assert parts is not None
        train, _ = parts
        return self.encode(train, self.test_examples(), settings)

    def test_examples(self) -> Examples:
        assert self.spec.test is not None
        test, _ = self.examples(self.spec.test, "task.test")
        return test

    def _remarks(
        self, train: Examples, validation: Examples, test: Examples | None
    ) -> Iterator[tuple[str, str]]:
        files = {"task.train": train}
        if isinstance(self.spec.validation, Path):
            files["task.validation"] = validation
        if test is not None:
            files["task.test"] = test
        for where, examples in files.items():
            for what in self.notes(examples):
                yield where, what
        yield from self.remarks(train)

        keys = {where: self.keys(examples, train) for where, examples in files.items()}
        if not isinstance(self.spec.validation, Path):
            mask = self._mask(train, self.spec.validation)
            learnt = itertools.compress(keys["task.train"], ~mask)
            split_off = list(itertools.compress(keys["task.train"], mask))
            twice = f"have a duplicate that is trained: {_BY_HEART}"
            for what in remarks.on_shared(set(learnt), split_off, self.UNIT, twice):
                yield "task.validation", what
        for (one, known), (other, others) in itertools.combinations(keys.items(), 2):
            why = _BY_HEART if one == "task.train" else "the search chooses by them"
            for what in remarks.on_shared(
                set(known), others, self.UNIT, f"are in {one} too: {why}"
            ):
                yield other, what

    def _train(self) -> tuple[Examples | None, list[Problem]]:
        train, problems = self._read(self.spec.train, "task.train")
        if train is not None and not problems:
            problems = list(self.unfit(train))
        return train, problems

    def _read(self, path: Path, where: str) -> tuple[Examples | None, list[Problem]]:
        try:
            found, problems = self.examples(path, where)
        except TaskError as error:
            return None, error.problems
        return found, list(problems)

    def _other(
        self, train: Examples | None, path: Path | None, where: str
    ) -> tuple[Examples | None, list[Problem]]:
        if path is None:
            return None, []
        found, problems = self._read(path, where)
        if train is not None and found is not None:
            problems += self.misfits(train, found, where)
        return found, problems

    def _parts(
        self, train: Examples | None, problems: list[Problem]
    ) -> tuple[tuple[Examples, Examples] | None, list[Problem]]:
        chosen = self.spec.validation
        if isinstance(chosen, Path):
            validation, more = self._other(train, chosen, "task.validation")
            if train is None or validation is None:
                return None, problems + more
            return (train, validation), problems + more
        if train is None or problems:
            return None, problems
        mask = self._mask(train, chosen)
        if not mask.any():
            return None, [Problem("task.validation", self._too_few(train, chosen))]
        parts = self.taken(train, ~mask), self.taken(train, mask)
        lost = set(self.lost(*parts))
        if self.spec.group is not None:
            strata = self.strata(train)
            lost |= {*itertools.compress(strata, mask)} - {*itertools.compress(strata, ~mask)}
        if not lost:
            return parts, []
        what = f"leaves no training {self.UNIT} with {', '.join(sorted(lost))}"
        hint = "choose another split_seed, or give a file"
        return parts, [Problem("task.validation", f"{what}; {hint}")]

    def _mask(self, train: Examples, chosen: float | Fold) -> Mask:
        strata, groups, seed = self.strata(train), self.groups(train), self.spec.split_seed
        if groups is None and not isinstance(chosen, Fold):
            return stratified(strata, chosen, seed)
        fold = chosen if isinstance(chosen, Fold) else Fold(0, max(2, round(1 / chosen)))
        return in_fold(*fold, strata, groups, seed)

    def _too_few(self, train: Examples, chosen: float | Fold) -> str:
        strata, groups = self.strata(train), self.groups(train)
        if isinstance(chosen, Fold) or groups is not None:
            of = f"{self.UNIT}s" if groups is None else f"groups of {self.UNIT}s"
            count = len(strata if groups is None else set(groups))
            return f"{count} {of} are too few to train and to validate on; add some, or fewer folds"
        fraction = chosen
        largest = max(collections.Counter(strata).values())
        unit, rows = self.UNIT, len(strata)
        if largest > 1:
            what = f"a fraction of {fraction} leaves no validation {unit}s out of {rows}"
            return f"{what}; give a larger one"
        what = f"no class has two {unit}s, one to train and one to validate"
        if rows == 1:
            what = f"there is only one {unit} to train and to validate"
        return f"{what}; add {unit}s, or name a file"
