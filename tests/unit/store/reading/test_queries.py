"""What a row of `studies` says about the study: whether its trials have limits to keep."""

from hpsearch.domain.records import StudyState
from hpsearch.store.reading.queries import StudyHead


def study_of(spec: str) -> StudyHead:
    return StudyHead(
        id=1,
        name="a-study",
        spec=spec,
        directions=("maximize",),
        state=StudyState.RUNNING,
        reason=None,
        created=0.0,
        ended=None,
        active_seconds=0.0,
        driver=None,
        stop_requested=False,
        base=None,
    )
