"""Workers in threads of this process: real trainings for a real driver, without a cluster."""

from hpsearch.domain import events as ev
from hpsearch.running.executors.worker import ReplaceWorker, Worker
from hpsearch.running.executors.worker_config import WorkerConfig


class LocalExecutor:
    """Runs attempts on workers of this process.

    Args:
        config: What every worker needs to know.
        slots: How many workers.
    """

    def __init__(self, config: WorkerConfig, slots: int = 1) -> None:
        task = config.load_task()

        def worker() -> Worker:
            return Worker(config, fetch=lambda params: task.prepare(params))

        self._config = config
        self._workers = {f"w{number}": worker() for number in range(slots)}
        self._on: dict[tuple[int, int], Worker] = {}
        self._new: list[ev.Event] = [ev.SlotUp(name, "here", "cpu", 0.0) for name in self._workers]

    def launch(self, order: ev.Launch) -> None:
        """Start an attempt."""
        worker = self._on[order.trial, order.attempt] = self._workers[order.slot]
        worker.launch(order, self._config.params(order))

    def advance(self, order: ev.Advance) -> None:
        """Let a waiting attempt train on."""
        worker = self._on.get((order.trial, order.attempt))
        if worker is not None:
            worker.advance(order)

    def stop(self, order: ev.Stop) -> None:
        """End an attempt."""
        worker = self._on.get((order.trial, order.attempt))
        if worker is not None:
            worker.stop(order)

    def avoid(self, order: ev.Avoid) -> None:
        """There is one node only."""

    def fill(self, order: ev.Fill) -> None:
        """Its slots share no GPU."""

    def recorded(self, trial: int, attempt: int, resource: float) -> None:
        """Say that reports are in the database."""
        worker = self._on.get((trial, attempt))
        if worker is not None:
            worker.recorded(trial, attempt, resource)

    def poll(self, timeout_s: float) -> list[ev.Event]:
        """Events of all workers."""
        events, self._new = self._new, []
        for worker in self._workers.values():
            found = worker.poll(min(timeout_s, 0.05))
            events += [event for event in found if not isinstance(event, ReplaceWorker)]
        return events
