"""A training job as processes: who they are, and what is left of them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import Dict, List, Optional, Tuple

Identity = Tuple[int, str]  # pid and start time: a pid alone may be used again


def _stat(pid: int) -> Optional[Tuple[int, str, str]]:
    """Parent, state and start time of a process that exists."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except (OSError, IndexError):
        return None
    return int(fields[1]), fields[0], fields[19]


def descendants(root: int) -> Dict[Identity, int]:
    """All living ones below `root`, with their depth (1: its children)."""
    children: Dict[int, List[int]] = {}
    for entry in os.listdir("/proc"):
        facts = _stat(int(entry)) if entry.isdigit() else None
        if facts and facts[1] not in "ZX":
            children.setdefault(facts[0], []).append(int(entry))
    found: Dict[Identity, int] = {}
    level, depth = children.get(root, []), 1
    while level:
        for pid in level:
            facts = _stat(pid)
            if facts:
                found[pid, facts[2]] = depth
        level, depth = [child for pid in level for child in children.get(pid, [])], depth + 1
    return found


def alive(identity: Identity) -> bool:
    facts = _stat(identity[0])
    return facts is not None and facts[2] == identity[1] and facts[1] not in "ZX"


def command_name(identity: Identity) -> str:
    """As `ps -o comm` shows it: of a worker, with its rank."""
    try:
        with open(f"/proc/{identity[0]}/comm") as file:
            return file.read().strip()
    except OSError:
        return ""


class Job:
    """`autohet-run` in the background; below it supervisors, below them workers."""

    def __init__(self, name: str, log: str, *command: str) -> None:
        self.name, self.log = name, log
        print("+", " ".join(command), "&", flush=True)
        with open(log, "wb") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        self.seen: Dict[Identity, int] = {}

    def members(self) -> Dict[Identity, int]:
        now = descendants(self.process.pid)
        self.seen.update(now)
        return now

    def workers(self) -> List[Identity]:
        """Children of supervisors, by rank."""
        return sorted((i for i, depth in self.members().items() if depth == 2), key=lambda i: (command_name(i), i))

    def supervisors(self) -> List[Identity]:
        return sorted(identity for identity, depth in self.members().items() if depth == 1)

    def node(self, supervisor: Identity) -> int:
        """The index of its node, which its executable bears."""
        with open(f"/proc/{supervisor[0]}/cmdline") as file:
            return int(os.path.basename(file.read().split("\0")[0])[len("node") :])

    def wait_for(self, condition, seconds: float, what: str, every_s: float = 0.02) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            self.members()
            if self.process.poll() is not None:
                raise AssertionError(f"the job ended with {self.process.returncode} before {what}:\n{self.output()}")
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {seconds} s: {what}:\n{self.output()}")
            time.sleep(every_s)

    def end(self, seconds: float) -> Optional[int]:
        """The exit status; None if it still runs after that time."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def left(self, grace_s: float = 2.0) -> List[Identity]:
        """Processes of the job that outlived it."""
        deadline = time.monotonic() + grace_s
        while True:
            still = [identity for identity in self.seen if alive(identity)]
            if not still or time.monotonic() > deadline:
                return still
            time.sleep(0.05)

    def output(self) -> str:
        with open(self.log, errors="replace") as file:
            return file.read()

    def clean_up(self) -> None:
        for pid, start in [*self.seen, *self.members()]:
            if alive((pid, start)):
                os.kill(pid, signal.SIGKILL)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
