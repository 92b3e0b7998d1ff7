"""Hosts on a network of their own, whose links can be cut and whose power can be switched off.

A host is a set of Linux namespaces: its processes, network, name, `/etc/hosts` and `/tmp/ray` are
its own; what is installed, and all other files, are this machine's. Nothing of it has a name
outside, and all of it ends with the process of the tests, however that ends.
"""

import itertools
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from support.running.programs import run_program

NAMESPACES = ("--net", "--pid", "--uts", "--mount", "--mount-proc", "--fork")

# The first process of a host waits until nobody holds its input open any more. It reaps whatever
# is left to it. When it ends, the kernel kills all other processes of the host.
KEEPER = "echo ready; trap '' CHLD; exec cat"

SWITCH = """
ip address add 10.77.0.254/24 dev switch
ip link set switch up
"""
# Without a name server, nobody waits for the answer of one that cannot be reached.
HOST = """
hostname "$1"
mount --bind "$2" /etc/hosts
mount --bind /dev/null /etc/resolv.conf
mkdir -p /tmp/ray
mount -t tmpfs none /tmp/ray
ip link set lo up
"""
# Ray finds out its own address by its way to the internet.
LINK = """
ip address add "$1/24" dev eth0
ip link set eth0 up
ip route add default via 10.77.0.254
"""
TRIED = "ip link add switch type bridge && ip link add port type veth peer name eth0"


def require_hosts() -> None:
    """Skip the test where this machine cannot have such hosts. Where `ip` is missing,
    HPSEARCH_TESTS_REQUIRE_IPROUTE2=1 asks for a failure."""
    if shutil.which("ip") is None:
        if os.environ.get("HPSEARCH_TESTS_REQUIRE_IPROUTE2") == "1":
            pytest.fail("iproute2 is not installed, and these tests must not be skipped")
        pytest.skip("iproute2 is not installed: there is no ip")
    tried = run_program(["unshare", *NAMESPACES, "sh", "-c", TRIED])
    if tried.returncode:
        pytest.skip(f"hosts need root and the right to make namespaces: {tried.stderr.strip()}")


class _Namespaces:
    """Namespaces in which a script has run, with arguments."""

    def __init__(self, script: str, *arguments: str) -> None:
        shell = ["sh", "-euc", f"{script}\n{KEEPER}", "sh", *arguments]
        pipe = subprocess.PIPE
        self._keeper = subprocess.Popen(
            ["unshare", *NAMESPACES, *shell], stdin=pipe, stdout=pipe, text=True
        )
        assert self._keeper.stdout is not None
        assert self._keeper.stdout.readline() == "ready\n"
        self.process = self._keeper.pid
        # Of these two, the processes of `unshare` itself are outside.
        own = f"--pid=/proc/{self.process}/ns/pid_for_children"
        self.enter = ["nsenter", f"--target={self.process}", "--net", "--uts", "--mount", own]

    def run(self, script: str, *arguments: str) -> None:
        """Run a script inside."""
        shell = ["sh", "-euc", script, "sh", *arguments]
        subprocess.run([*self.enter, *shell], check=True)

    def end(self) -> None:
        """Kill every process inside, and wait for their end."""
        self._keeper.communicate()


class Network:
    """A switch, and the hosts that are linked to it: 10.77.0.1, 10.77.0.2 and so on, which know
    each other by their names."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self._count = itertools.count()
        self._switch = _Namespaces(f"ip link add switch type bridge\n{SWITCH}")
        addresses = {name: f"10.77.0.{number}" for number, name in enumerate(names, start=1)}
        known = folder / "hosts"
        known.write_text(
            "127.0.0.1 localhost\n"
            + "".join(f"{address} {name}\n" for name, address in addresses.items())
        )
        self.hosts = {name: Host(self, name, at, known) for name, at in addresses.items()}

    def link(self, namespaces: _Namespaces, address: str) -> str:
        """Plug a host in; returns the port of the switch."""
        port = f"port{next(self._count)}"
        # The same for a host that comes back: others remember it.
        hardware = f"02:00:00:00:00:{int(address.rpartition('.')[2]):02x}"
        outside = ["nsenter", f"--target={self._switch.process}", "--net"]
        peer = ["peer", "name", "eth0", "address", hardware, "netns", str(namespaces.process)]
        subprocess.run([*outside, "ip", "link", "add", port, "type", "veth", *peer], check=True)
        self._switch.run('ip link set "$1" master switch up', port)
        namespaces.run(LINK, address)
        return port

    def set_link(self, port: str, state: str) -> None:
        """Let a port of the switch be up or down."""
        self._switch.run('ip link set "$1" "$2"', port, state)

    def close(self) -> None:
        """Switch everything off."""
        for host in self.hosts.values():
            host.power_off()
        self._switch.end()


class Host:
    """A host that is switched off until `power_on`."""

    def __init__(self, network: Network, name: str, address: str, known: Path) -> None:
        self.name, self.address = name, address
        self._network, self._known = network, known
        self._inside: _Namespaces | None = None
        self._port = ""

    @property
    def enter(self) -> list[str]:
        """Words to put before a command that is to run on this host."""
        assert self._inside is not None, f"{self.name} is off"
        return self._inside.enter

    def power_on(self) -> None:
        """Switch it on; nothing runs on it yet."""
        self._inside = _Namespaces(HOST, self.name, str(self._known))
        self._port = self._network.link(self._inside, self.address)

    def power_off(self) -> None:
        """Kill everything on it, without a word to anybody."""
        if self._inside is not None:
            self._inside.end()
            self._inside = None

    def cut_off(self) -> None:
        """Unplug it: what runs on it runs on, and hears and reaches nobody."""
        self._network.set_link(self._port, "down")

    def reconnect(self) -> None:
        """Plug it in again."""
        self._network.set_link(self._port, "up")

    def start(
        self, command: Sequence[str], environment: Mapping[str, str], folder: Path, log: Path
    ) -> subprocess.Popen[bytes]:
        """Start a command on this host, with nothing else in its environment."""
        inside = [*self.enter, "env", f"--chdir={folder}", *command]
        with log.open("ab") as out:
            return subprocess.Popen(
                inside, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
