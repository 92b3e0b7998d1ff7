"""The end of a process in words."""

import signal

NOT_STARTED = {126: "as where a file is not executable", 127: "as where there is no such program"}
"""The exit codes of shells and `env` where they could not start a program."""
_NAMES = {int(each): each.name for each in signal.Signals}
_SIGNALS = {
    "SIGKILL": "as where memory runs out",
    "SIGSEGV": "a fault in compiled code",
    "SIGABRT": "as where compiled code finds an error",
    "SIGBUS": "as where /dev/shm or a disk is full",
    "SIGILL": "an instruction that this processor does not have",
    "SIGFPE": "a division by zero in compiled code",
    "SIGTERM": "it was asked to end",
    "SIGINT": "it was interrupted",
    "SIGXCPU": "its processor time is used up",
    "SIGXFSZ": "a file became too large",
}


def exit_text(code: int) -> str:
    """The end of a process in words, by its exit code; below 0 is a signal."""
    if code in NOT_STARTED:
        return f"exit code {code}, {NOT_STARTED[code]}"
    if code > 128 and code - 128 in _NAMES:
        return f"exit code {code}: {_with_cause(_NAMES[code - 128])}"
    if code >= 0:
        return f"exit code {code}"
    return _with_cause(_NAMES.get(-code, f"signal {-code}"))


def _with_cause(name: str) -> str:
    return f"{name}, {_SIGNALS[name]}" if name in _SIGNALS else name
