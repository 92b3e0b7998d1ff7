"""How many trials share a GPU: as many as train the most together, found while they train.

Where `resources.gpu` is `share`, a slot names its GPU. The GPUs of one type begin with one slot
each. While all slots of a GPU are busy, twice as many are tried, and stay if they train `GROWTH`
more together; then numbers between. A trial that runs out of memory on a shared GPU takes one slot
back, and returns what it took if it fails all the same. The number is kept with the study, and
studies like it begin with that.

Trials differ in speed, so numbers of slots are compared by the same trials as far as possible: the
logarithm of a speed is that of its trial plus the effect of the number, by least squares, where
trials' own speeds vary by `SPREAD`, and those of one trial by `NOISE`.
"""

import math
from collections import Counter
from collections.abc import Generator

import numpy as np

from hpsearch.domain.facts import GpuSharing

GROWTH = 0.06  # the part by which twice as many trials must train more together
BASELINE = 4  # speeds of each trial on a GPU before more are tried
ENOUGH = 8  # speeds of each trial, after which the better number is taken even if it is not clear
SPREAD, NOISE = 0.5, 0.1  # standard deviations of logarithms of speeds


class Sharing:
    """The number of slots on GPUs of one type.

    Args:
        most: Slots that a GPU has room for.
        known: What earlier drivers of the study have found; None for nothing.
    """

    def __init__(self, most: int, known: GpuSharing | None = None) -> None:
        self.best = 1 if known is None else min(known["trials"], most)
        self._found = most if known is None else min(known["most"], most)
        """The most slots that may pay."""
        self._short: dict[int, tuple[int, int]] = {}
        """The slots that trials had memory for, and the best number before they took any."""
        self._speeds: list[tuple[int, int, float]] = []
        """Numbers of slots, trials, and the logarithms of their speeds."""
        self._counts: Counter[int] = Counter()  # speeds by the number of slots
        self._search = self._numbers()
        self._tried: int | None = None
        if known is None or not known["is_final"]:
            self._tried = next(self._search, None)

    @property
    def _most(self) -> int:
        return min([self._found, *(slots for slots, _ in self._short.values())])

    @property
    def trials(self) -> int:
        """The slots that each GPU should have now."""
        has_baseline = self._counts[self.best] >= BASELINE * self.best
        return self._tried if self._tried is not None and has_baseline else self.best

    @property
    def known(self) -> GpuSharing:
        """The facts to be kept with the study."""
        return GpuSharing(trials=self.best, most=self._most, is_final=self._tried is None)

    def learn(self, slots: int, trial: int, speed: float) -> None:
        """Learn from the speed of a trial, by a report, on a GPU with so many busy slots."""
        if self._tried is None or speed <= 0:
            return
        if self._counts[slots] < ENOUGH * slots:
            self._speeds.append((slots, trial, math.log(speed)))
            self._counts[slots] += 1
        while self._tried is not None and self.trials == self._tried:
            pays = self._pays(self._tried)
            if pays is None:
                return
            self._answer(pays=pays)

    def ran_short(self, slots: int, trial: int) -> None:
        """Try so many slots no more: a trial ran out of memory."""
        _, best = self._short.get(trial, (0, self.best))
        self._short[trial] = min(self._most, max(1, slots - 1)), best
        self.best = min(self.best, self._most)
        while self._tried is not None and self._tried > self._most:
            self._answer(pays=False)

    def failed(self, trial: int) -> bool:
        """Take back what a trial has changed that failed for want of memory, and search anew among
        the larger numbers; False if it changed nothing."""
        if trial not in self._short:
            return False
        _, best = self._short.pop(trial)
        self.best = min(max(self.best, best), self._most)
        self._search = self._numbers()
        self._tried = next(self._search, None)
        return True

    def _numbers(self) -> Generator[int, bool, None]:
        """Numbers of slots to try; each is answered by whether it pays, against the best so far."""
        while self.best < self._most:
            above = min(2 * self.best, self._most)
            if not (yield above):
                break
        step = self.best // 2
        while step >= max(1, self.best // 8):
            below = self.best - step
            is_less = below > 0 and (yield below)
            above = self.best + step
            if not is_less and above <= self._most:
                yield above
            step //= 2

    def _answer(self, *, pays: bool) -> None:
        tried = self._tried
        assert tried is not None
        if pays:
            self.best = min(tried, self._most)
        elif self.best < tried <= self._most:
            self._found = tried - 1
        try:
            self._tried = self._search.send(pays)
        except StopIteration:
            self._tried = None

    def _pays(self, slots: int) -> bool | None:
        """True if so many slots train enough more than the best number; None if unclear."""
        if self._counts[slots] < slots:
            return None
        gain, deviation = self._gain(slots)
        needed = max(0.0, math.log1p(GROWTH) * math.log2(slots / self.best))
        is_clear = abs(gain - needed) > 2 * deviation or self._counts[slots] >= ENOUGH * slots
        return gain > needed if is_clear else None

    def _gain(self, slots: int) -> tuple[float, float]:
        """The logarithm of what so many slots train, over the best number, and its standard
        deviation: generalised least squares, in which speeds of one trial are correlated."""
        numbers, trials, speeds = (np.array(each) for each in zip(*self._speeds, strict=True))
        tried = np.unique(numbers)
        is_own = np.equal.outer(trials, trials)
        variances = SPREAD**2 * is_own + NOISE**2 * np.eye(len(speeds))
        design = np.equal.outer(numbers, tried).astype(float)  # (speeds, numbers)
        weights = np.linalg.solve(variances, design)
        covariance = np.linalg.inv(design.T @ weights)
        effects = covariance @ weights.T @ speeds
        contrast = (tried == slots).astype(float) - (tried == self.best)
        gain = contrast @ effects + math.log(slots / self.best)
        variance = contrast @ covariance @ contrast
        return float(gain), math.sqrt(max(0.0, variance))
