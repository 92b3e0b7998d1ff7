"""The steps from a task's files to arrays: read, check, split, encode."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from trials.contract import Problem, TaskError
from trials.tasks.datasets import splitting
from trials.tasks.datasets.spec import DataSpec

SpecT = TypeVar("SpecT", bound=DataSpec)
Examples = TypeVar("Examples")


class DataSet(abc.ABC, Generic[SpecT, Examples]):
    """The data of a task. A kind says how a file is read and how examples are encoded.

    Args:
        spec: The `task` part, parsed.
    """

    TYPES: ClassVar[tuple[type, ...]]
    """The dataclasses that prepared data is made of."""
    UNIT: ClassVar[str] = "row"

    def __init__(self, spec: SpecT) -> None:
        self.spec = spec

    @abc.abstractmethod
    def examples(self, path: Path, where: str) -> tuple[Examples, list[Problem]]:
        """The examples in a file, and what is wrong with their values.

        Args:
            where: The study file's key that names it.

        Raises:
            TaskError: The file cannot be read, or has no examples.
        """

    @abc.abstractmethod
    def encode(self, train: Examples, validation: Examples, settings: Any) -> Any:
        """Flat arrays in a dataclass.

        Raises:
            TaskError: With every problem of the model.
        """

    @abc.abstractmethod
    def with_test(self, data: Any, test: Examples, settings: Any) -> Any:
        """Encoded data with test samples in place of the validation samples."""

    def unfit(self, train: Examples, *, readable: bool) -> Iterable[Problem]:
        """Reasons why a training file cannot be learnt from.

        Args:
            readable: No value of the file has a problem.
        """
        return ()

    def misfits(self, train: Examples, other: Examples, where: str) -> Iterable[Problem]:
        """Differences of another file that the training file does not allow."""
        return ()

    def strata(self, train: Examples) -> Sequence[str]:
        """A group name for each example; a validation fraction takes a share of every group."""
        return [""] * len(train)  # type: ignore[arg-type]

    def lost(self, train: Examples, validation: Examples) -> Iterable[str]:
        """The labels that a split leaves no training example of."""
        return ()

    def taken(self, examples: Any, mask: splitting.Taken) -> Any:
        """The examples where the mask is true."""
        return list(itertools.compress(examples, mask))

    def problems(self) -> list[Problem]:
        """All problems of the files, those of the test file included."""
        train, problems = self._read(self.spec.train, "task.train")
        _, more = self._parts(train, problems)
        _, of_test = self._other(train, self.spec.test, "task.test")
        return [*more, *of_test]

    def prepare(self, settings: Any) -> Any:
        """Read, check, split and encode.

        Raises:
            TaskError: With every problem of the data or the model.
        """
        train, problems = self._read(self.spec.train, "task.train")
        parts, problems = self._parts(train, problems)
        if problems or parts is None:
            raise TaskError(problems)
        return self.encode(*parts, settings)

    def on_test(self, data: Any, settings: Any) -> Any:
        """Encoded data with the test samples, which have no problems, for validation."""
        assert self.spec.test is not None
        test, _ = self.examples(self.spec.test, "task.test")
        return self.with_test(data, test, settings)

    def _read(self, path: Path, where: str) -> tuple[Examples | None, list[Problem]]:
        try:
            found, problems = self.examples(path, where)
        except TaskError as error:
            return None, error.problems
        return found, list(problems)

    def _other(
        self, train: Examples | None, path: Path | None, where: str
    ) -> tuple[Examples | None, list[Problem]]:
        """The examples of another file than the training file, and its problems."""
        if path is None:
            return None, []
        found, problems = self._read(path, where)
        if train is not None and found is not None:
            problems += self.misfits(train, found, where)
        return found, problems

    def _parts(
        self, train: Examples | None, problems: list[Problem]
    ) -> tuple[tuple[Examples, Examples] | None, list[Problem]]:
        """Training and validation examples, None if they cannot be had; and all problems."""
        if train is not None:
            problems = [*problems, *self.unfit(train, readable=not problems)]
        chosen = self.spec.validation
        if isinstance(chosen, Path):
            validation, more = self._other(train, chosen, "task.validation")
            whole = train is not None and validation is not None
            return (train, validation) if whole else None, problems + more  # type: ignore[return-value]
        if train is None or problems:
            return None, problems
        mask = splitting.stratified(self.strata(train), chosen, self.spec.split_seed)
        if problems := splitting.too_small(chosen, mask):
            return None, problems
        parts = self.taken(train, ~mask), self.taken(train, mask)
        lost = ", ".join(self.lost(*parts))
        if not lost:
            return parts, []
        what = f"leaves no training {self.UNIT} with {lost}"
        hint = "choose another split_seed, or give a file"
        return parts, [Problem("task.validation", f"{what}; {hint}")]
