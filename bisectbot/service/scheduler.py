"""The scheduler: one leader runs the steps below, for ever; others wait until its lease ends.

Each step is a function of the database; a process may die between any two lines of any of them. A step that fails
is logged and tried again: what the machinery or a user did wrong must not stop the others, but a bug ends the
process loudly, for its supervisor to restart.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable

import structlog

from bisectbot.errors import InfraError, UserError
from bisectbot.service.advance import advance
from bisectbot.service.bisections import open_bisections
from bisectbot.service.care.canary import canary
from bisectbot.service.catalog import synchronise
from bisectbot.service.context import Context
from bisectbot.service.detect import detect
from bisectbot.service.dispatch import dispatch
from bisectbot.service.people.requests import requests
from bisectbot.service.people.trials import trials
from bisectbot.service.plan import plan
from bisectbot.service.post.inbox import receive
from bisectbot.service.post.notes import hosts
from bisectbot.service.post.sequels import sequels
from bisectbot.service.post.weekly import weekly
from bisectbot.service.reap import reap
from bisectbot.service.report import report
from bisectbot.service.send import send
from bisectbot.service.suspect import suspect
from bisectbot.service.watch import watch
from bisectbot.store import leases

log = structlog.get_logger()

LEADER = "leader"
Step = Callable[[Context], int]

# What waits for the network has a thread of its own, so that a slow upstream or mail server delays nothing else.
DECIDE: tuple[Step, ...] = (
    plan, requests, trials, canary, detect, suspect, open_bisections, advance, report, reap, dispatch,
)  # fmt: skip
WRITE: tuple[Step, ...] = (sequels, weekly, hosts)
LOOPS: dict[str, tuple[Step, ...]] = {
    "watch": (watch,),
    "decide": (*DECIDE, *WRITE),
    "send": (send,),
    "receive": (receive,),
}


class Scheduler:
    """Runs until ``stop`` is called. ``instance`` is this process's name among would-be leaders."""

    def __init__(self, context: Context, instance: str) -> None:
        self.context = context
        self.instance = instance
        self._stop = threading.Event()
        self._leading = threading.Event()
        self._token = 0
        self._waits_for: str | None = None
        self._crash: BaseException | None = None

    def stop(self) -> None:
        """Ask all loops to end after the step that they are in."""
        self._stop.set()

    def leading(self) -> bool:
        """Whether this process leads now."""
        return self._leading.is_set()

    def run(self) -> None:
        """Lead when the lease can be had, wait otherwise; returns after ``stop``. A bug is raised."""
        with self.context.database.write() as session:
            synchronise(session, self.context.config)
        threads = [threading.Thread(target=self._loop, args=item, name=item[0], daemon=True) for item in LOOPS.items()]
        for thread in threads:
            thread.start()
        while not self._stop.is_set():
            self._lead()
            self._stop.wait(self.context.clock.real(self.context.config.tick))
        for thread in threads:
            thread.join()
        if self._leading.is_set():
            with self.context.database.write() as session:
                leases.release(session, LEADER, self._token)
        if self._crash is not None:
            raise self._crash

    def _lead(self) -> None:
        """Take or keep the leadership; the loops run while it is held."""
        try:
            with self.context.database.write() as session:
                grant = leases.acquire(session, LEADER, self.instance, self.context.lease_s)
                other = None if grant else leases.holder(session, LEADER)
        except InfraError as error:
            log.warning("leadership unknown; waiting", error=str(error))
            self._leading.clear()
            return
        if grant is None:
            self._leading.clear()
            if other != self._waits_for:
                log.info("another scheduler leads; waiting", leader=other)
            self._waits_for = other
            return
        self._token = grant.token
        if not self._leading.is_set():
            log.info("leading", instance=self.instance, token=grant.token)
            self._leading.set()

    def _loop(self, name: str, steps: tuple[Step, ...]) -> None:
        try:
            while not self._stop.is_set():
                if self._leading.is_set():
                    for step in steps:
                        self._once(name, step)
                self._stop.wait(self.context.clock.real(self.context.config.tick))
        except BaseException as error:  # noqa: BLE001 - handed to the main thread, which raises it
            self._crash = error
            self._stop.set()

    def _once(self, name: str, step: Step) -> None:
        if self._stop.is_set():
            return
        try:
            step(self.context)
        except (InfraError, UserError) as error:
            log.warning("step failed; it will be tried again", loop=name, step=step.__name__, error=str(error))


def new_instance() -> str:
    """A name for this process that no other has."""
    return f"scheduler-{uuid.uuid4().hex[:12]}"
