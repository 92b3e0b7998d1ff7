"""The files with the output of a trial's attempts."""

from hpsearch.store.reading.queries import StudyHead, TrialDetail
from trials.checkpoints import folders


def logs_of(study: StudyHead, detail: TrialDetail) -> list[str]:
    """The logs of a trial's attempts. Those in an object store are not checked for existence."""
    folder = study.checkpoints
    if folder is None:
        return []
    number = detail.trial.number
    logs = [str(folders.log_of(folder, number, int(each["number"]))) for each in detail.attempts]
    return logs if folders.is_url(folder) else [log for log in logs if folders.is_there(log)]
