"""Child processes that end with this one, however it ends, and loopback ports for them."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from pathlib import Path


class ProcessFailed(Exception):
    """A child ended that was meant to keep running; the text holds the end of its log."""


class Processes:
    """Starts long-running children, each with its output in `logs/NAME.txt`.

    The kernel kills a child when this process dies (`setpriv --pdeathsig`), so that even `kill -9` leaves nothing behind.
    Children have sessions of their own: Ctrl-C in the terminal reaches this process alone, which then decides.
    Start them from the main thread, for the kernel watches the thread that forked, not the process.
    """

    def __init__(self, logs: Path):
        self.logs = logs
        self.children: list[tuple[str, subprocess.Popen]] = []
        logs.mkdir(parents=True, exist_ok=True)

    def start(self, name: str, argv: list, env: dict | None = None, cwd: Path | None = None) -> subprocess.Popen:
        """Starts `argv`; `env` is added to this process's environment."""
        with open(self.log(name), "ab") as log:
            child = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *map(str, argv)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                cwd=cwd,
                start_new_session=True,
            )
        self.children.append((name, child))
        return child

    def log(self, name: str) -> Path:
        """Where the output of the child of this name goes."""
        return self.logs / f"{name}.txt"

    def check(self) -> None:
        """Raises `ProcessFailed` if a child has ended."""
        for name, child in self.children:
            if child.poll() is not None:
                lines = self.log(name).read_text(errors="replace").splitlines()[-15:]
                raise ProcessFailed(f"{name} ended with {child.returncode}; the end of {self.log(name)}:\n" + "\n".join(lines))

    def wait_until(self, what: str, condition, timeout: float, interval: float = 0.1):
        """Returns the first true value of `condition()`; raises if a child ends or `timeout` (seconds) passes."""
        deadline = time.monotonic() + timeout
        while True:
            self.check()
            if value := condition():
                return value
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: not within {timeout:.0f} s; logs are in {self.logs}")
            time.sleep(interval)

    def stop(self, child: subprocess.Popen, grace: float = 10.0) -> None:
        """Ends one child in good order: SIGTERM, and SIGKILL if that takes longer than `grace` seconds."""
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(grace)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        self.children = [(name, other) for name, other in self.children if other is not child]

    def kill(self, name: str) -> None:
        """Ends the children of this name at once."""
        for child in [child for other, child in self.children if other == name]:
            child.kill()
            child.wait()
        self.children = [(other, child) for other, child in self.children if other != name]

    def kill_all(self) -> None:
        """Ends all children at once, the latest first: what a cluster on loopback holds is not meant to outlive it."""
        for _, child in reversed(self.children):
            child.kill()
        for _, child in self.children:
            child.wait()
        self.children.clear()


def exit_on_signals() -> None:
    """Turns SIGTERM and SIGHUP into `SystemExit`, so that `finally` blocks run as they do after Ctrl-C, and makes sure of
    the latter: a shell starts its background jobs with SIGINT ignored."""
    def leave(number, _frame):
        raise SystemExit(128 + number)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, from below the range out of which the kernel serves outgoing connections:
    a port of that range may be taken between the choice and the listening."""
    held: list[socket.socket] = []
    try:
        while len(held) < count:
            candidate = socket.socket()
            try:
                candidate.bind(("127.0.0.1", random.randint(20000, 32000)))
                held.append(candidate)
            except OSError:
                candidate.close()
        return [s.getsockname()[1] for s in held]
    finally:
        for s in held:
            s.close()
