"""What workers find out about training, on record: the health of each trial, and what fits in memory."""

from __future__ import annotations

from hpsearch import events as ev
from hpsearch.records import History
from trials.memory import merged

FINDINGS = "hpsearch:findings"
"""Trial attribute: the findings of its latest attempt, each a mapping of name, evidence and severity."""


MEMORY = "hpsearch:memory"
"""Study attribute: what its workers have learnt of the micro-batches that fit (`trials.memory.Facts`)."""


def note_memory(history: History, event: ev.Learned) -> None:
    """Keep what a worker has learnt about memory."""
    attributes = history.study.system_attrs
    attributes[MEMORY] = merged(attributes.get(MEMORY, {}), event.facts)
    history.touch_study()


def note_findings(history: History, event: ev.Finished | ev.Stopped | ev.Failed) -> None:
    """Keep what a trial's latest attempt found out about itself.

    Also of one that has ended on record already: a pruned trial's worker gives its last word after that.
    """
    trial = history.trials[event.trial] if event.trial < len(history.trials) else None
    if trial is None or event.attempt != len(trial.attempts):
        return
    findings = [dict(finding) for finding in event.findings]
    if findings == trial.user_attrs.get(FINDINGS, []):
        return
    trial.user_attrs[FINDINGS] = findings
    history.touch(trial)
