"""Studies that compare their best trial with the defaults: what they repeat, and when they stop."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from hpsearch.brain.reopening import reopen
from hpsearch.domain.facts import Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.phase import Phase
from hpsearch.domain.records import Trial
from hpsearch.search.ranking.selection import counts
from hpsearch.search.ranking.verdicts.certificate import Certificate, Claim, defaults_among
from hpsearch.search.ranking.verdicts.question import FURTHER
from hpsearch.study_file.models import PAIRS, StudySpec
from support.studies.small import Bowl, Simulation, budget_of, search_by, spec_with
from trials.contract import Diverged

TWELVE = budget_of(12, epochs=1)


@dataclass
class Steps(Bowl):
    """Losses with luck of standard deviation 1, by `gain` less where x is above 0.7."""

    gain: float = 0.0
    breaks: bool = False

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        is_better = params["x"] > 0.7
        if self.breaks and is_better and seed % 2:
            raise Diverged("the loss is not finite")
        luck = np.random.default_rng([seed, int(params["x"] * 1e6)]).normal()
        return {"loss": float(luck) - self.gain * is_better}


def certifying(seed: int = 1, budget: Mapping[str, Any] = TWELVE, level: Any = True) -> StudySpec:
    search = search_by("random", "none", certify=level)
    return spec_with(seed=seed, search=search, budget=dict(budget), enqueue=[{"x": 0.5}])


def certificate(history: History) -> Certificate:
    defaults = defaults_among(history.trials)
    assert defaults is not None
    tried = sum(map(counts, history.trials))
    return Certificate(history.trials, defaults.number, 1.0, 0.95, tried)


def last_word(history: History) -> Claim:
    word = certificate(history).last_word()
    assert word is not None
    return word


def repeats_in(history: History) -> list[Trial]:
    return [trial for trial in history.trials if trial.role is Role.CONFIRM]


@pytest.mark.parametrize("workers", [1, 4])
def test_a_real_gain_is_shown_by_pairs_on_seeds_that_nothing_else_had(workers):
    history = Simulation(certifying(), curves=Steps(gain=6.0), workers=workers).run().history
    word, repeats = last_word(history), repeats_in(history)
    assert word.is_shown
    assert 0 < word.least < word.gain
    seeds = {
        number: [r.seed for r in repeats if r.repeats == number] for number in (0, word.candidate)
    }
    assert sorted(seeds[0]) == sorted(seeds[word.candidate])
    assert len(set(seeds[0])) == len(seeds[0]) >= 3
    searched = {trial.seed for trial in history.trials if trial.role is not Role.CONFIRM}
    assert not searched & set(seeds[0])
    firsts = [next(r.repeats for r in repeats if r.seed == seed) for seed in seeds[0]]
    assert set(firsts) == {word.candidate}, "the defaults come second"
    assert len(repeats) < 2 * PAIRS, "it ends once that is decided"


def test_where_nothing_is_better_few_studies_say_so_and_most_give_up_early():
    words, spent = [], []
    for seed in range(25):
        history = Simulation(certifying(seed), curves=Steps(), workers=2).run().history
        words.append(certificate(history).last_word())
        spent.append(len(repeats_in(history)))
    assert sum(word is not None and word.is_shown for word in words) <= 3
    assert max(spent) <= 2 * PAIRS
    assert np.mean(spent) < PAIRS


def test_a_study_that_is_killed_between_the_halves_of_a_pair_goes_on_with_the_other_half():
    simulation = Simulation(certifying(), curves=Steps(gain=6.0), workers=1)
    while len(repeats_in(simulation.history)) < 3:
        simulation.tick()
    resumed = Simulation(
        certifying(), simulation.history, curves=Steps(gain=6.0), start=simulation.executor.now
    )
    assert resumed.study.phase is Phase.CONFIRMING
    history = resumed.run().history
    undisturbed = Simulation(certifying(), curves=Steps(gain=6.0), workers=1).run().history
    assert [(r.repeats, r.seed) for r in repeats_in(history)] == [
        (r.repeats, r.seed) for r in repeats_in(undisturbed)
    ]
    assert last_word(history).is_shown


def test_a_raised_budget_continues_what_was_open_and_a_new_winner_has_a_smaller_share():
    spec = certifying(seed=4)
    first = Simulation(spec, curves=Steps(gain=0.7), workers=1).run()
    before = last_word(first.history)
    reopen(first.history)
    more = Simulation(
        certifying(4, budget_of(60, epochs=1)),
        first.history,
        curves=Steps(gain=0.7),
        workers=1,
        start=first.executor.now,
    ).run()
    found = certificate(more.history)
    assert len(more.history.repeats) > len(repeats_in_first(more.history, 12))
    levels = [found.comparison(candidate).level for candidate in found.candidates]
    assert levels == pytest.approx([1 - 0.05 * 4 / 5**k for k in range(1, len(levels) + 1)])
    assert before.candidate == found.candidates[0]


def repeats_in_first(history: History, trials: int) -> list[Trial]:
    searched = 0
    found = []
    for trial in history.trials:
        searched += trial.role is not Role.CONFIRM
        if searched > trials:
            break
        if trial.role is Role.CONFIRM:
            found.append(trial)
    return found


def test_a_candidate_whose_repeats_fail_is_not_shown_to_be_better():
    history = Simulation(certifying(), curves=Steps(gain=9.0, breaks=True), workers=1).run().history
    found = certificate(history)
    for candidate in found.candidates:
        comparison = found.comparison(candidate)
        assert not (comparison.failed and comparison.is_shown)
    assert any(found.comparison(candidate).failed for candidate in found.candidates)


@pytest.mark.parametrize(
    "budget", [{"gpu_hours": 0.2}, {"wall_clock": "20m"}, {"cost": 0.2, "cost_per_gpu_hour": 1.0}]
)
def test_of_time_and_money_a_part_is_kept_for_pairs(budget):
    spec = certifying(budget={**budget, "per_trial": {"epochs": 1}})
    history = Simulation(spec, curves=Steps(gain=6.0), workers=2).run().history
    assert last_word(history).is_shown
    assert len(repeats_in(history)) <= 2 * FURTHER * PAIRS
    assert all(repeat.state is State.COMPLETE for repeat in repeats_in(history))


def test_a_higher_level_takes_more_pairs():
    pairs = []
    for level in (0.6, 0.99):
        history = Simulation(certifying(level=level), curves=Steps(gain=6.0), workers=1).run()
        pairs.append(len(repeats_in(history.history)))
    assert pairs[0] < pairs[1]
