"""Disrupt a real study at random moments, and verify that nothing is lost and nothing is repeated.

    python benchmarks/chaos.py --kills 100 --seed 1 --storage sqlite,postgresql

A study with one worker trains for real, on a Ray cluster of three nodes, with real checkpoints. At
random moments parts of it are killed, stopped, cut off, filled up or damaged, each kind in turn in
a random order. The study is resumed when necessary.

After every disruption, no ended trial may have changed, and each worker may have trained at most
one report again (more only if the checkpoints themselves are damaged). At the end, `hpsearch db
check` must pass, and configurations, decisions and results must equal those of an undisturbed
study. If a study ends before all disruptions have been made, another one follows. The last study
ends because its budget is spent, and must not exceed it. The exit code is 1 if any of this does not
hold.

`--storage` is `sqlite` or `postgresql` for a temporary database, or the URL of another. `--kind`
names some kinds, with commas. Results are not compared with more than one of `--workers`, and
`--patience` multiplies all timeouts, for a busy machine. `--quick` is a smaller study, disrupted
sooner, without a tight budget. A few kinds need a temporary database or the right to mount a disk;
otherwise they are left out, with a message.
"""

import random
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tables
from strikes.kinds import COSTLY, DAMAGE, KINDS, possible
from strikes.study import TIGHT_S, Struck, write_files
from strikes.world import Nodes, World


@dataclass
class Tally:
    """What one kind of disruption has cost so far."""

    strikes: int = 0
    resumed: int = 0
    again: list[int] = field(default_factory=list)
    """Reports that were trained again, for each disruption."""
    seconds: list[float] = field(default_factory=list)
    """From each disruption to the next report, including its repair."""
    problems: list[str] = field(default_factory=list)


def main() -> None:
    """Run the benchmark."""
    options = tables.arguments(
        __doc__,
        {},
        kills=100,
        seed=0,
        storage=["sqlite"],
        kind=list(KINDS),
        workers=1,
        patience=1,
    )
    rows, failed = [], False
    with tempfile.TemporaryDirectory(prefix="chaos-") as name:
        folder = Path(name)
        file = write_files(
            folder / "files", 12 if options.quick else 30, options.workers, options.patience
        )
        nodes = Nodes(options.workers, options.patience)
        try:
            undisturbed = _undisturbed(file, folder) if options.workers == 1 else None
            for storage in options.storage:
                for row in _campaign(options, storage, folder, file, nodes, undisturbed):
                    rows.append(row)
                    failed |= bool(row["problems"])
        except AssertionError:
            for log in sorted(file.parent.glob("*.log")):
                print(f"\n----- {log.name}\n{log.read_text()[-4000:]}", file=sys.stderr)
            raise
        finally:
            nodes.close()
    tables.show("Disruptions and their cost", rows, options.json)
    sys.exit(1 if failed else 0)


Results = tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]


def _undisturbed(file: Path, folder: Path) -> Results:
    url = f"sqlite:///{folder}/undisturbed.db"
    study = Struck("undisturbed", file, url, url, None, folder / "undisturbed")
    study.run_to_end()
    return study.results()


def _campaign(
    options: Namespace,
    storage: str,
    folder: Path,
    file: Path,
    nodes: Nodes,
    undisturbed: Results | None,
) -> Iterator[dict[str, Any]]:
    """Disrupt studies in one storage; yields a row for each kind, and one for the studies' ends."""
    draw = random.Random(f"{options.seed} {storage}")
    label = storage if "://" not in storage else storage.partition("://")[0]
    world = World(storage, folder / label, nodes)
    try:
        kinds, without = possible(world)
        kinds = [kind for kind in kinds if kind in options.kind]
        tallies = {kind: Tally() for kind in kinds}
        ends = Tally()
        schedule = _schedule(kinds, options.kills, draw)
        while schedule:
            ends.strikes += 1
            study = Struck(
                f"{label}-{ends.strikes}",
                file,
                world.url,
                world.direct_url,
                nodes,
                world.checkpoints,
            )
            _strike_while_it_runs(study, world, schedule, tallies, draw, options)
            study.run_to_end()
            ends.resumed += study.resumed
            ends.problems += _judge(study, undisturbed)
            study.tidy_up()
        tight = None if options.quick else _tight_budget(options, world, label, file, draw)
        for kind, tally in tallies.items():
            yield _row(label, kind, tally)
        if tight is not None:
            yield _row(label, "a tight budget", tight)
        yield _row(label, "the studies' ends", ends)
        for kind, why in without.items():
            print(f"{label}: {kind} is left out: {why}", file=sys.stderr)
    finally:
        world.close()


def _tight_budget(
    options: Namespace, world: World, label: str, file: Path, draw: random.Random
) -> Tally:
    """Disrupt a study that ends because its budget is spent; it must not spend more."""
    study = Struck(
        f"{label}-tight",
        file,
        world.url,
        world.direct_url,
        world.nodes,
        world.checkpoints,
        tight=True,
    )
    tallies = {kind: Tally() for kind in COSTLY}
    _strike_while_it_runs(study, world, list(COSTLY), tallies, draw, options)
    study.run_to_end()
    total = Tally(sum(each.strikes for each in tallies.values()), study.resumed)
    for each in tallies.values():
        total.again += each.again
        total.seconds += each.seconds
        total.problems += each.problems
    total.problems += _judge(study, None)
    if study.spent_s() > TIGHT_S:
        total.problems.append(f"{study.spent_s():.1f} s were spent, of a budget of {TIGHT_S:g} s")
    return total


def _schedule(kinds: list[str], count: int, draw: random.Random) -> list[str]:
    """Each kind in turn, in a different order each turn."""
    schedule: list[str] = []
    while len(schedule) < count:
        schedule += draw.sample(kinds, len(kinds))
    return schedule[:count]


def _strike_while_it_runs(
    study: Struck,
    world: World,
    schedule: list[str],
    tallies: dict[str, Tally],
    draw: random.Random,
    options: Namespace,
) -> None:
    study.wait_for_progress()
    while schedule and not study.finished:
        time.sleep(draw.uniform(0.0, 1.0 if options.quick else 4.0))
        if study.keep_going():
            return
        kind = schedule.pop(0)
        tally = tallies[kind]
        reports, ended, resumed = study.reports(), study.ended(), study.resumed
        print(
            f"{study.name}: {kind}, after {len(ended)} trials have ended",
            file=sys.stderr,
            flush=True,
        )
        began = time.monotonic()
        KINDS[kind](world, study, draw)
        study.wait_for_progress()
        tally.seconds.append(time.monotonic() - began)
        tally.strikes += 1
        tally.resumed += study.resumed - resumed
        again = set(reports) - set(study.reports())  # the same reports exist, from another attempt
        tally.again.append(len(again))
        if len(again) > options.workers and kind not in DAMAGE:
            tally.problems.append(f"{len(again)} reports trained again: {sorted(again)}")
        now = study.ended()
        tally.problems += [
            f"{before} became {now.get(n)}" for n, before in ended.items() if now.get(n) != before
        ]


def _judge(study: Struck, undisturbed: Results | None) -> list[str]:
    """What is wrong with a finished study."""
    problems = []
    if (violations := study.check()) is not None:
        problems.append(f"db check: {violations}")
    if undisturbed is None:
        return problems
    for what, expected, found in zip(
        ("trials", "decisions"), undisturbed, study.results(), strict=True
    ):
        if expected != found:
            odd = [pair for pair in zip(expected, found, strict=False) if pair[0] != pair[1]][:2]
            shown = odd or (len(expected), len(found))
            problems.append(f"{what} differ from those of an undisturbed study: {shown}")
    return problems


def _row(storage: str, kind: str, tally: Tally) -> dict[str, Any]:
    for problem in tally.problems:
        print(f"{storage}, {kind}: {problem}", file=sys.stderr)
    return {
        "storage": storage,
        "kind": kind,
        "strikes": tally.strikes,
        "resumed": tally.resumed,
        "reports_trained_again": sum(tally.again),
        "most_at_once": max(tally.again, default=None),
        "longest_s": max(tally.seconds, default=None),
        "problems": len(tally.problems),
    }


if __name__ == "__main__":
    main()
