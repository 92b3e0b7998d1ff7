"""Studies and trials as plain values, for `--format json` and for agents."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from hpsearch.domain.numbers import finite
from hpsearch.domain.records import Request
from hpsearch.search.ranking.selection import Ranked, expectation_of
from hpsearch.store.reading.attempts import logs_of
from hpsearch.store.reading.best import LastWord
from hpsearch.store.reading.queries import StudyHead, TrialDetail
from hpsearch.store.reading.status import StudyStatus, StudySummary
from hpsearch.store.reading.trust import StudyTrust
from hpsearch.views.result import StudyResult, common_levels, differences
from hpsearch.views.words import answer_in_words, request_in_words


def study_document(summary: StudySummary) -> dict[str, Any]:
    best: dict[str, Any] | None = None
    if summary.best is not None:
        trial = summary.best.trial
        best = {"number": trial.number, "value": summary.best.value}
        best |= expectation_of(summary.best.again)
    return {
        "study": summary.head.name,
        "state": summary.state,
        "driver": summary.head.driver,
        "reason": summary.head.reason,
        "trials": {state.value: n for state, n in sorted(summary.trials.items())},
        "revision_runs": summary.revision_runs,
        "best": best,
        "gpu_seconds": summary.gpu_seconds,
        "created": summary.head.created,
        "ended": summary.head.ended,
    }


def status_document(status: StudyStatus, trust: StudyTrust, disk: int | None) -> dict[str, Any]:
    """The status of a study, with the trust in its rungs, and the bytes on the disk if known."""
    head, now = status.summary.head, time.time()
    low, high = status.seconds_left_between(now)
    return {
        **study_document(status.summary),
        "stop_requested": head.stop_requested,
        "budget": {
            line.name: {"used": line.used, "limit": line.most} for line in status.summary.budget
        },
        "devices": [asdict(line) for line in status.devices],
        "sharing": dict(status.sharing),
        "reserved_gpu_seconds": status.reserved_gpu_seconds,
        "checkpoints": head.checkpoints,
        "checkpoint_bytes": disk,
        "checkpoint_limit_bytes": head.checkpoint_limit_bytes,
        "trials_per_hour": status.trials_per_hour,
        "seconds_left": status.seconds_left(now),
        "seconds_left_low": low,
        "seconds_left_high": high,
        "seconds_left_depends": status.time_left.depends if status.time_left and high else [],
        "next_hour": None if status.next_hour is None else asdict(status.next_hour),
        "idle_share": status.idle_share(now),
        "running": [asdict(each) for each in status.running],
        "failures": [asdict(each) for each in status.failures],
        "rungs": [rung.as_plain() for rung in trust.rungs],
        "requests": [request_document(each) for each in status.requests],
    }


def best_documents(result: StudyResult, top: int | None) -> list[dict[str, Any]]:
    """The best trials that are shown, each with the verdict on the least trusted rung."""
    weakest = result.trust.weakest
    documents = []
    for each in result.shown(top):
        trial = each.trial
        document = {
            "study": result.study.name,
            **ranked_document(each, result.seen_at.get(trial.number)),
            "seed": trial.seed,
            "cost": trial.cost,
            "checkpoint": trial.best_checkpoint or trial.checkpoint,
            "rung_verdict": None if weakest is None else weakest.verdict,
        }
        if result.last_word is not None:
            document["certificate"] = _certificate(result.last_word)
        documents.append(document)
    return documents


def _certificate(word: LastWord) -> dict[str, Any]:
    plain, found = {"level": word.level, "is_shown": False}, word.found
    if found is None:
        return plain
    plain |= {"is_shown": found.is_shown, "trial": found.candidate, "gain": found.gain}
    plain |= {"at_least": found.least, "pairs": len(found.differences), "samples": found.samples}
    more = {"more_pairs": found.more, "samples_needed": found.samples_needed}
    return dict(finite(plain | more))


def ranked_document(ranked: Ranked[Any], seen_at: float | None) -> dict[str, Any]:
    """A trial in its order; `seen_at` is the resource at which it first showed its value."""
    trial = ranked.trial
    return {
        "number": trial.number,
        "state": trial.state.value,
        "value": ranked.value,
        "seen_at": seen_at,
        **expectation_of(ranked.again),
        "values": None if trial.values is None else list(trial.values),
        "violation": trial.violation,
        "params": dict(trial.params),
        "resource": trial.resource,
        "gpu_seconds": trial.gpu_seconds,
        "version": trial.version,
        "confirmed": ranked.confirmed and asdict(ranked.confirmed),
        "tied": ranked.tied,
        "unknown": ranked.unknown,
    }


def trial_document(study: StudyHead, detail: TrialDetail) -> dict[str, Any]:
    return {
        "study": study.name,
        **detail.trial.as_plain(),
        "findings": [finding.as_plain() for finding in detail.findings],
        "reports": detail.reports,
        "attempts": detail.attempts,
        "decisions": detail.decisions,
        "logs": logs_of(study, detail),
    }


def comparison_document(study: StudyHead, trials: Sequence[TrialDetail]) -> dict[str, Any]:
    levels = common_levels(trials)
    values = {}
    for each in trials:
        at_levels = [row["value"] for row in each.reports if row["resource"] in levels]
        values[str(each.trial.number)] = at_levels
    return {
        "study": study.name,
        "trials": [each.trial.as_plain() for each in trials],
        "differing": differences(trials),
        "values": values,
        "resources": levels,
    }


def request_document(request: Request) -> dict[str, Any]:
    plain = {**asdict(request), "kind": request.kind.value}
    return {**plain, "asked": request_in_words(request), "answer": answer_in_words(request)}
