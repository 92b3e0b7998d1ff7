"""Studies that agents run by themselves, within the compute time and money that a person grants.

An agent trains, and nothing of what it hands in is executed here; or drivers do, what is in a
folder that is granted too. Each study is marked in the database as it is created, and counts by the
limits of its own budget, which its ledger keeps; once it is over, by what it took. So their sum
never exceeds the grant, whatever dies in between.
"""

from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from hpsearch.asking import opening
from hpsearch.asking.study import AskedStudy
from hpsearch.asking.trial import AskedTrial
from hpsearch.domain.facts import RequestKind
from hpsearch.domain.records import Request, StudyState
from hpsearch.errors import UserError
from hpsearch.plugins.mcp.folder import drive, read_in
from hpsearch.running.creation.study import create_study, spec_of
from hpsearch.running.creation.warm_start import earlier_studies
from hpsearch.running.study_run.requests import ask, send
from hpsearch.store.reading.status import list_studies
from hpsearch.store.store import Store
from hpsearch.study_file.models import HOUR_S, StudySpec
from hpsearch.study_file.text import value_of
from hpsearch.study_file.types import is_number
from trials.descriptions.description import ASK
from trials.settings import in_full

PRICE = "price"
GRANTED = "hpsearch:granted"
"""System attribute of a study that an agent has started."""
_BEGUN = ("number", "attempt", "params", "seed", "budget", "unit", "report_at")
OF_A_TRIAL = (*_BEGUN, "resource", "resume_from")
EXAMPLE = "write it like this: --grant gpu_hours=4 or --grant cost=20,price=2.5"
MOST_CHARACTERS = 100_000  # of a study file
ROUNDING = 1e-9
Plain = dict[str, Any]
Name = Annotated[str, Field(max_length=2000, description="The study's name.")]
Number = Annotated[int, Field(ge=0, description="The number of a trial.")]
Metrics = Annotated[dict[str, float], Field(description="Numbers by the names of metrics.")]


def granted(text: str) -> dict[str, float]:
    """The limits in ``gpu_hours=4,cost=20,price=2.5``. Raises UserError."""
    parts = [part.partition("=") for part in text.split(",")]
    given = {name.strip(): value_of(value.strip()) for name, _, value in parts}
    is_known = given.keys() in ({"gpu_hours"}, {"cost", PRICE}, {"gpu_hours", "cost", PRICE})
    are_amounts = all(is_number(value) and value > 0 for value in given.values())
    if not (is_known and are_amounts) or len(parts) > len(given):
        raise UserError(f"--grant {text} is no amount, or without the price of a GPU hour", EXAMPLE)
    return given


class Campaign:
    """The studies of one grant. Trials that an agent held when its server died are handed out
    again."""

    def __init__(self, storage: str, limits: dict[str, float], folder: Path | None = None) -> None:
        self._storage = storage
        self._folder = None if folder is None else folder.resolve()
        self._price = limits.get(PRICE)
        self._limits = {name: most for name, most in limits.items() if name != PRICE}
        self._asked: dict[str, AskedStudy] = {}
        self._trials: dict[tuple[str, int], AskedTrial] = {}

    def grant(self) -> Plain:
        """What no study of agents may take yet, of the compute time and money that was granted."""
        with closing(Store.open(self._storage)) as store:
            return {"granted": self._limits, "left": self._left(store, None)}

    def start(
        self,
        file: Annotated[
            str, Field(max_length=MOST_CHARACTERS, description="A study file, as YAML.")
        ],
    ) -> Plain:
        """Start a study, or go on with the one that has this file. Its budget must be within what
        is left of the grant. Without a task you train its trials: `ask`, `tell`. With the task of a
        granted folder a driver does, and another one if that has died."""
        spec = opening.read(f"{file}\n")
        self._refuse_unlimited(spec)
        folder = None if spec.task["kind"] == ASK.kind else self._folder
        spec = spec if folder is None else read_in(folder, spec)
        with closing(Store.open(self._storage)) as store:
            is_new = spec.study not in store.study_names()
            if is_new:
                earlier = earlier_studies(store, spec)
                create_study(store, spec, None, earlier=earlier, attrs={GRANTED: True})
            try:
                self._refuse_excess(store, spec.study)
            except UserError:
                if is_new:
                    store.delete_study(store.find_study(spec.study).id)
                raise
            if folder is not None:
                return {"study": spec.study, "told": drive(store, self._storage, spec)}
        self._asked[spec.study] = opening.create(self._storage, f"{file}\n")
        return {"study": spec.study, "told": "ask for its trials"}

    def ask(self, study: Name) -> Plain:
        """A trial to train: its parameters, from which `resource` on, up to which `budget`, and the
        levels at which to report (`report_at`)."""
        trial = (asked := self._opened(study)).ask_now()
        if trial is None:
            return {"number": None, "ended": asked.ended}
        self._trials[study, trial.number] = trial
        return {name: getattr(trial, name) for name in OF_A_TRIAL}

    def tell(
        self,
        study: Name,
        number: Number,
        metrics: Metrics | None = None,
        resource: Annotated[
            float | None, Field(description="How far it has trained; its budget if missing.")
        ] = None,
        checkpoint: Annotated[
            str | None, Field(description="Where it can go on from: `resume_from` of `ask`.")
        ] = None,
        failed: Annotated[str | None, Field(description="Why it cannot be trained.")] = None,
        kind: Literal["error", "diverged", "out_of_memory", "timeout"] = "error",
    ) -> Plain:
        """Tell a trial's metrics so far or at its end, or why it failed; the answer says whether it
        is to go on."""
        if (study, number) not in self._trials:
            raise UserError(f"trial {number} of {study} is not in your hands", "ask for a trial")
        trial = self._trials[study, number]
        if metrics is not None and trial.report(resource or trial.budget, metrics, checkpoint):
            return {"goes_on": True}
        self._asked[study].tell(trial, failed=None if trial.ended else failed, kind=kind)
        del self._trials[study, number]
        return {"goes_on": False, "why": "" if trial.ended is None else trial.ended.why}

    def stop(self, study: Name) -> Plain:
        """End a study, which `start` continues; what it has not taken goes back to the grant."""
        with closing(Store.open(self._storage)) as store:
            if not self._is_asked(store, study):
                store.request_stop(study, "an agent")
                return {"told": "its driver saves and ends; if it has died, start it before"}
            asked = self._opened(study)
            store.request_stop(study, "an agent")
        asked.ask_now()  # which nobody is handed out any more
        asked.close("its agent stopped the study")
        del self._asked[study]
        self._trials = {key: each for key, each in self._trials.items() if key[0] != study}
        return {"told": "stopped"}

    def request(
        self, study: str, kind: RequestKind, content: Plain, origin: str
    ) -> tuple[Request, bool]:
        """As `requests.ask`, of a study that an agent has started."""
        with closing(Store.open(self._storage)) as store:
            if not self._is_asked(store, study):
                return ask(store, study, kind, content, origin)
            asked = self._opened(study)
            number, _ = send(store, study, kind, content, origin)
            asked.answer()
            answer = store.find_request(number)
        if answer.refused is not None:
            raise UserError(f"study {study} refuses: {answer.refused}")
        return answer, True

    def _is_asked(self, store: Store, study: str) -> bool:
        record = store.find_study(study)
        if GRANTED not in record.system_attrs:
            raise UserError(f"study {study} was not started by an agent", "start one of your own")
        return bool(spec_of(record).task["kind"] == ASK.kind)

    def _refuse_excess(self, store: Store, study: str) -> None:
        self._is_asked(store, study)
        for name, left in self._left(store, study).items():
            if left < -ROUNDING:
                what = f"study {study} may take {in_full(round(-left, 6))} {name} more than is left"
                raise UserError(what, f"lower budget.{name}: the tool `grant` tells what is left")

    def _left(self, store: Store, starting: str | None) -> dict[str, float]:
        """What is left of each limit, if the study `starting` may take all of its own."""
        own = {each.name for each in store.studies() if GRANTED in each.system_attrs}
        left = dict(self._limits)
        with store.reading() as connection:
            for each in list_studies(connection):
                used = {line.name: line.used for line in each.budget}
                taken = {"gpu_hours": used["gpu_seconds"] / HOUR_S, "cost": used.get("cost", 0.0)}
                is_over = each.head.state is not StudyState.RUNNING and each.head.name != starting
                for name in left if each.head.name in own else ():
                    most = getattr(each.head.budget, name, None)
                    left[name] -= taken[name] if is_over or most is None else most
        return left

    def _refuse_unlimited(self, spec: StudySpec) -> None:
        for name in self._limits:
            if getattr(spec.budget, name) is None:
                raise UserError(f"budget.{name} is missing", "give one within what is left")
        if self._price is not None and spec.budget.cost_per_gpu_hour != self._price:
            raise UserError(f"budget.cost_per_gpu_hour must be {in_full(self._price)}")
        has_task = self._folder is None and spec.task["kind"] != ASK.kind
        if has_task or spec.track or spec.resources.gpu != "auto":
            what = "no track, no resources.gpu, and no task without --folder"
            raise UserError(f"an agent's study has {what}")

    def _opened(self, study: str) -> AskedStudy:
        if study not in self._asked:
            with closing(Store.open(self._storage)) as store:
                self._refuse_excess(store, study)
                if not self._is_asked(store, study):
                    raise UserError(f"study {study} is trained by its driver", "read its status")
            self._asked[study] = opening.resume(self._storage, study, {})
        return self._asked[study]
