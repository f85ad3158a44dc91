"""Power and console of a machine, through labgrid: any of its drivers, none of its surprises.

A driver of labgrid raises what it likes and may wait for ever; here everything has a time limit and fails as
InfraError.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

import pexpect
from labgrid.factory import target_factory
from labgrid.step import Step, steps

from bisectbot.errors import InfraError, UserError

POWER_S = 90.0
"""Real seconds within which a power switch must have answered."""
READ_S = 0.2


class _Stack(threading.local):
    """The steps that a thread is in, newest last. labgrid has one stack for all threads and asserts that each step that
    ends is its newest: a console that is read while power is switched breaks that, and both fail."""

    def __init__(self) -> None:
        self._steps: list[Step] = []

    def append(self, step: Step) -> None:
        self._steps.append(step)

    def pop(self) -> Step:
        return self._steps.pop()

    def __getitem__(self, index: int) -> Step:
        return self._steps[index]

    def __len__(self) -> int:
        return len(self._steps)


steps._stack = _Stack()


class Power(Protocol):
    """labgrid's PowerProtocol."""

    def on(self) -> None: ...
    def off(self) -> None: ...
    def cycle(self) -> None: ...


class Machine:
    """A labgrid target with a power switch and, where ``console`` is wanted, a console.

    ``target`` is what labgrid's environment files hold for one: ``resources`` and ``drivers``.
    """

    def __init__(self, name: str, target: Mapping[str, Any], power_s: float = POWER_S) -> None:
        self.name = name
        self._settings = _plain(target)
        self._power_s = power_s
        self._target: Any = None
        self._turn = threading.RLock()

    def check(self) -> None:
        """Raises UserError for settings that labgrid does not take."""
        try:
            self._make()
        except InfraError as error:
            raise UserError(str(error)) from None
        finally:
            self.close()

    def power(self, action: str) -> None:
        """``on``, ``off`` or ``cycle``. Raises InfraError when the switch does not do it in time."""
        power = cast("Power", self.driver("PowerProtocol"))
        self._limited(f"power {action}", {"on": power.on, "off": power.off, "cycle": power.cycle}[action])

    def read(self) -> bytes:
        """What the console said since, b"" if nothing within a moment. Raises InfraError when it is gone; the next call
        opens it again."""
        console = self.driver("ConsoleProtocol")
        try:
            return bytes(console.read(size=65536, timeout=READ_S) or b"")
        except pexpect.TIMEOUT:
            return b""
        except Exception as error:  # noqa: BLE001 - a driver of labgrid raises what it likes
            with self._turn, contextlib.suppress(Exception):
                console.target.deactivate(console)
            raise InfraError(f"{self.name}: console: {_said(error)}") from None

    def close(self) -> None:
        """Let go of power and console."""
        with self._turn:
            target, self._target = self._target, None
        if target is not None:
            with contextlib.suppress(Exception):  # a console whose program has ended complains of it
                target.cleanup()

    def driver(self, protocol: str) -> Any:
        """The driver that speaks ``protocol`` (or is of that class), active. Raises InfraError."""
        try:
            with self._turn:
                return self._make().get_driver(protocol)
        except InfraError:
            raise
        except Exception as error:  # noqa: BLE001
            raise InfraError(f"{self.name}: no {protocol} ({_said(error)})") from None

    def _make(self) -> Any:
        if self._target is None:
            try:
                self._target = target_factory.make_target(self.name, self._settings)
            except Exception as error:  # noqa: BLE001
                raise InfraError(f"{self.name}: labgrid does not take the settings: {_said(error)}") from None
        return self._target

    def _limited(self, what: str, act: Callable[[], None]) -> None:
        failure: list[Exception] = []

        def work() -> None:
            try:
                act()
            except Exception as error:  # noqa: BLE001
                failure.append(error)

        thread = threading.Thread(target=work, name=what, daemon=True)
        thread.start()
        thread.join(self._power_s)
        if thread.is_alive():
            raise InfraError(f"{self.name}: {what}: no answer within {self._power_s:g} s")
        if failure:
            raise InfraError(f"{self.name}: {what}: {_said(failure[0])}")


def _plain(value: Any) -> Any:
    """labgrid empties the settings that it is given: it gets copies."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def _said(error: BaseException) -> str:
    output = getattr(error, "output", None) or b""
    last = output.decode("utf-8", "replace").strip().splitlines()[-1:] if isinstance(output, bytes) else []
    status = getattr(error, "returncode", None)
    if status is not None:  # CalledProcessError would repeat the whole command
        return " ".join([f"exit status {status}", *last])[:300]
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]
