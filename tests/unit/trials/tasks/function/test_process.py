"""The process of training code: its main thread, its end, and what a trial finds in it."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from support.running.function_runs import items_of, raises_in_training, reports_of, setup_in
from trials import tasks
from trials.contract import ProcessEnded, TaskError
from trials.running.runner import failure_of
from trials.tasks.function import process

CHANGES = {
    "os.getcwd()": "os.chdir('/')",
    "sorted(os.environ.items())": "os.environ.update(LEFT='1'); del os.environ['PATH']",
    "os.umask(os.umask(0o22)) and None": "os.umask(0o77)",
    "signal.getsignal(signal.SIGUSR1)": "signal.signal(signal.SIGUSR1, print)",
    "signal.getsignal(signal.SIGTERM)": "signal.signal(signal.SIGTERM, signal.SIG_DFL)",
    "signal.getitimer(signal.ITIMER_REAL)": "signal.alarm(1000)",
    "signal.pthread_sigmask(0, ())": "signal.pthread_sigmask(0, {signal.SIGUSR2})",
    "resource.getrlimit(resource.RLIMIT_CORE)[0]": "lower(resource.RLIMIT_CORE)",
    "locale.setlocale(locale.LC_ALL)": "locale.setlocale(locale.LC_ALL, 'C')",
    "time.tzname": "os.environ.update(TZ='Asia/Tokyo'); time.tzset()",
    "(sys.path, sys.argv)": "sys.path.insert(0, 'left'); sys.argv.append('left')",
    "sys.stdout": "sys.stdout = io.StringIO()",
    "sys.excepthook": "sys.excepthook = print",
    "sys.getrecursionlimit()": "sys.setrecursionlimit(5000)",
    "vars(builtins).get('left')": "builtins.left = 1",
    "warnings.filters": "warnings.simplefilter('error')",
    "logging.root.level, logging.root.handlers": "logging.basicConfig(level=10, force=True)",
    "logging.getLogger('left').handlers": "handle(logging.getLogger('left'))",
    "logging.root.manager.disable": "logging.disable(50)",
    "gc.isenabled(), gc.get_threshold()": "gc.disable(); gc.set_threshold(1)",
    "decimal.getcontext().prec": "decimal.getcontext().prec = 3",
    "socket.getdefaulttimeout()": "socket.setdefaulttimeout(1)",
    "mp.get_start_method(True)": "mp.set_start_method('spawn', force=True)",
    "random.random(), np.random.rand(), torch.rand(1)": "random.seed(7); torch.manual_seed(7)",
    "np.geterr()": "np.seterr(all='raise')",
    "torch.get_default_dtype()": "torch.set_default_dtype(torch.float64)",
    "torch.ones(1).device": "torch.set_default_device('meta')",
    "torch.are_deterministic_algorithms_enabled()": "torch.use_deterministic_algorithms(True)",
    "torch.get_num_threads()": "torch.set_num_threads(3)",
    "torch.is_grad_enabled()": "torch.set_grad_enabled(False)",
    "torch.get_float32_matmul_precision()": "torch.set_float32_matmul_precision('medium')",
    "torch.backends.cudnn.benchmark": "torch.backends.cudnn.benchmark = True",
    "torch.is_anomaly_enabled()": "torch.autograd.set_detect_anomaly(True)",
    "torch.is_autocast_enabled('cpu')": "torch.set_autocast_enabled('cpu', True)",
}
"""What a trial does to its process, by how the next one would see it."""

MODULE = """
import builtins, decimal, gc, io, locale, logging, os, random, resource, signal
import multiprocessing as mp, socket, sys, threading, time, warnings
TORCH
def lower(limit):
    resource.setrlimit(limit, (0, resource.getrlimit(limit)[1]))

def handle(logger):
    logger.addHandler(logging.NullHandler())

seen = {}

def train(params, trial):
    import numpy as np, torch
    from torch import distributed as dist
    from trials.tasks.function import process_state
    scope = {**globals(), **locals()}
    for sight in params["changes"]:
        now = repr(eval(sight, scope))
        assert seen.setdefault(sight, now) == now, sight
    for change in params["changes"].values():
        exec(change, scope)
    trial.report(3, {"process": os.getpid()})
"""


def report_of(task, tmp_path, **params):
    run = task.start(setup_in(tmp_path, params=params), None)
    try:
        (report,) = reports_of(run)
    finally:
        run.close()
    return report.metrics


@pytest.mark.parametrize("imported", ["", "import torch"])
def test_a_function_finds_its_process_as_no_trial_had_been_before(tmp_path, module, imported):
    base = module(MODULE.replace("TORCH", imported))
    task = tasks.load({"kind": "their_training:train"}, base)
    found = [report_of(task, tmp_path, changes=CHANGES) for _ in range(3)]
    assert found[0] == found[1] == found[2]


def test_files_beside_it_do_not_stand_in_for_what_the_process_needs(tmp_path, module, monkeypatch):
    base = module(MODULE.replace("TORCH", ""))
    for name in ("json", "pickle", "trials"):
        (base / f"{name}.py").write_text("raise SystemExit('run by mistake')\n")
    monkeypatch.chdir(base)
    task = tasks.load({"kind": "their_training:train"}, base)
    assert report_of(task, tmp_path, changes={})["process"] != os.getpid()


@pytest.mark.parametrize(
    "change",
    [
        "threading.Thread(target=time.sleep, args=[1000], name='left', daemon=True).start()",
        "resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))",
        "dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)",
        "process_state.allocated_bytes = lambda device: 1 << 30",
    ],
    ids=["a thread", "a limit", "a process group", "memory of a GPU"],
)
def test_what_cannot_be_put_back_ends_the_process(tmp_path, module, change, capfd):
    task = tasks.load({"kind": "their_training:train"}, module(MODULE.replace("TORCH", "")))
    found = [report_of(task, tmp_path, changes={"0": change}) for _ in range(2)]
    assert found[0] != found[1]
    assert "the next trial gets a new process, as this one has left: " in capfd.readouterr().err


SCRIPT = """
import atexit, os, signal, threading
from trials.script import trial

assert threading.current_thread() is threading.main_thread()
signal.signal(signal.SIGTERM, lambda *_: None)
atexit.register(print, "the end")
os.chdir("/")
trial.report(3, {"process": os.getpid()})
"""


@pytest.mark.parametrize("warm", [None, True])
def test_a_script_has_a_new_process_in_its_main_thread_unless_it_is_warm(
    tmp_path, module, warm, capfd
):
    part = {"kind": "their_training:__main__"} | ({} if warm is None else {"warm": warm})
    task = tasks.load(part, module(SCRIPT))
    found = [report_of(task, tmp_path)["process"] for _ in range(3)]
    assert len(set(found)) == (1 if warm else 3)
    assert capfd.readouterr().out == "the end\n" * 3
    assert os.getpid() not in found


@pytest.mark.parametrize("kind", ["their_training:train", "their_training:__main__"])
@pytest.mark.parametrize(
    ("end", "is_lost", "words"),
    [
        ("os.kill(os.getpid(), 11)", True, "SIGSEGV, a fault in compiled code"),
        ("os.kill(os.getpid(), 9)", True, "SIGKILL"),
        ("os._exit(0)", False, "ended with exit code 0"),
    ],
)
def test_the_end_of_its_process_is_known_for_what_it_is(
    tmp_path, module, kind, end, is_lost, words
):
    lines = "import os\ndef train(params, trial):\n    {0}\nif __name__ == '__main__':\n    {0}\n"
    task = tasks.load({"kind": kind}, module(lines.format(end)))
    run = task.start(setup_in(tmp_path), None)
    with pytest.raises(ProcessEnded, match=words) as caught:
        reports_of(run)
    run.close()
    assert caught.value.is_lost is is_lost


def test_a_process_that_is_killed_as_memory_runs_out_has_run_out_of_memory(
    tmp_path, module, monkeypatch
):
    counts = tmp_path / "memory.events"
    counts.write_text("oom 0\noom_kill 0\n")
    monkeypatch.setattr(process, "_events_of_group", lambda: [counts])
    lines = (
        "import os",
        "from pathlib import Path",
        "def train(params, trial):",
        f"    Path('{counts}').write_text('oom 1\\noom_kill 1\\n')",
        "    os.kill(os.getpid(), 9)",
    )
    task = tasks.load({"kind": "their_training:train"}, module("\n".join(lines)))
    with pytest.raises(ProcessEnded, match="out of memory") as caught:
        reports_of(task.start(setup_in(tmp_path), None))
    assert failure_of(caught.value).kind == "out_of_memory"
    assert not caught.value.is_lost


ENDLESS = """
import os, signal, time
from trials.script import trial

def train(params, trial):
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    try:
        trial.report(1, {"process": os.getpid()})
    finally:
        time.sleep(1000)

if __name__ == "__main__":
    train({}, trial)
"""


@pytest.mark.parametrize("kind", ["their_training:train", "their_training:__main__"])
def test_a_function_that_does_not_end_is_ended(tmp_path, module, kind, caplog):
    task = tasks.load({"kind": kind}, module(ENDLESS))
    run = task.start(setup_in(tmp_path), None)
    run._grace_s = 0.0
    trains = int(next(items_of(run)).metrics["process"])
    assert run.close()
    assert "its process is killed" in caplog.text
    with suppress(FileNotFoundError):  # the fork of a process that was killed ends with it
        while Path(f"/proc/{trains}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
            pass


def test_a_notice_to_end_is_left_to_the_worker(tmp_path, module):
    base = module(
        "import os, signal\n"
        "def train(params, trial):\n"
        "    trial.report(1, {'process': os.getpid()})\n"
        "    child = os.fork()\n"
        "    while not child: signal.pause()\n"
        "    os.kill(child, 15)\n"
        "    trial.report(2, {'status': os.waitpid(child, 0)[1]})\n"
    )
    run = tasks.load({"kind": "their_training:train"}, base).start(setup_in(tmp_path), None)
    items = items_of(run)
    trains = int(next(items).metrics["process"])
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(trains, number)
    assert next(items).metrics["status"] == signal.SIGTERM, "what it starts ends by it"
    run.close()


def test_errors_of_the_contract_arrive_as_they_are(tmp_path, module):
    lines = "def train(params, trial):\n    raise MemoryError('so large')\n"
    task = tasks.load({"kind": "their_training:train"}, module(lines))
    with raises_in_training("so large") as caught:
        reports_of(task.start(setup_in(tmp_path), None))
    assert caught.value.failure.kind == "out_of_memory"
    missing = tasks.load({"kind": "their_training:missing"}, tmp_path)
    with pytest.raises(TaskError, match="has no function 'missing'"):
        missing.start(setup_in(tmp_path), None)
