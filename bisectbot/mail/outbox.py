"""The life of a letter in the outbox: a pure state machine, whose rows the store keeps.

    draft → awaiting_approval → queued → sending → sent
                                            ↑ ↓  → failed
                                         deferred                cancelled: from anything not in sending or over

A row is written in its report's transaction, with its Message-ID. A sender claims it with a lease, hands it over
outside any transaction, and settles it. A row whose lease ended in ``sending`` belongs to a sender that died or hangs:
whether the letter arrived is unknown, so after the back-off it goes out again with the same Message-ID, to those who
are not known to have it; mail servers and archives drop the second copy.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from bisectbot.errors import UserError
from bisectbot.mail.smtp import Outcome, Result

MINUTE = 60.0
HOUR = 60 * MINUTE
BACK_OFF = (5 * MINUTE, 30 * MINUTE, 2 * HOUR, 6 * HOUR, *(24 * HOUR,) * 5)
LEASE = 15 * MINUTE  # more than a delivery to 12 people with a 60 s timeout per answer usually takes


class State(enum.StrEnum):
    """Where a letter is."""

    DRAFT = "draft"
    AWAITING_APPROVAL = "awaiting_approval"
    QUEUED = "queued"
    SENDING = "sending"
    SENT = "sent"
    DEFERRED = "deferred"
    FAILED = "failed"
    CANCELLED = "cancelled"


OVER = frozenset({State.SENT, State.FAILED, State.CANCELLED})


@dataclass(frozen=True)
class Row:
    """One letter. Times in seconds since 1970 UTC, on the clock of whoever passes ``now``.

    ``waiting`` are the addresses that have not accepted it yet; ``token`` grows with every claim and must be
    given back to settle.
    """

    id: int
    message_id: str
    key: str
    waiting: tuple[str, ...]
    state: State = State.DRAFT
    not_before: float = 0.0
    attempts: int = 0
    token: int = 0
    lease_until: float | None = None
    held: tuple[str, ...] = ()
    approved_by: str = ""
    last_error: str = ""


def submit(row: Row, *, held: tuple[str, ...] = (), not_before: float = 0.0) -> Row:
    """A draft is queued, or waits for approval if there is a reason to hold it."""
    _must(row, State.DRAFT)
    return replace(row, state=State.AWAITING_APPROVAL if held else State.QUEUED, held=held, not_before=not_before)


def approve(row: Row, by: str) -> Row:
    """Somebody answers for the letter: it is queued whatever it was held for. A failed one is tried afresh."""
    _must(row, State.DRAFT, State.AWAITING_APPROVAL, State.FAILED)
    return replace(row, state=State.QUEUED, approved_by=by, attempts=0, not_before=0.0)


def cancel(row: Row, why: str) -> Row:
    """The letter will not be sent. While it is being handed over it can no longer be stopped."""
    _must(row, State.DRAFT, State.AWAITING_APPROVAL, State.QUEUED, State.DEFERRED)
    return replace(row, state=State.CANCELLED, last_error=why)


def postpone(row: Row, until: float) -> Row:
    """Leave a row that is due alone until ``until``: a cap is reached, or a quiet day has begun."""
    _must(row, State.QUEUED, State.DEFERRED)
    return replace(row, not_before=max(until, row.not_before))


def is_due(row: Row, now: float) -> bool:
    """Whether a sender may claim the row now."""
    return row.state in {State.QUEUED, State.DEFERRED} and row.not_before <= now


def claim(row: Row, now: float, lease: float = LEASE) -> Row:
    """The row in the hands of one sender for ``lease`` seconds. Raises UserError if it is not due."""
    if not is_due(row, now):
        raise UserError(f"outbox row {row.id} ({row.state}) is not due; wait for its time or for its sender")
    return replace(row, state=State.SENDING, attempts=row.attempts + 1, token=row.token + 1, lease_until=now + lease)


def has_expired(row: Row, now: float) -> bool:
    """Whether the row's sender has died, or hangs: to be given to `expire`."""
    return row.state is State.SENDING and row.lease_until is not None and row.lease_until <= now


def expire(row: Row, now: float) -> Row:
    """The row after its sender's lease has ended: as if the connection had been lost in the middle."""
    lost = Outcome(Result.UNKNOWN, reason="the sender's lease ended", waiting=row.waiting)
    return settle(row, row.token, lost, now)


def settle(row: Row, token: int, outcome: Outcome, now: float) -> Row:
    """What a delivery came to, told by the sender that holds ``token``.

    Deferred rows, and those of which nobody knows, back off for 5 min, 30 min, 2 h, 6 h, then five times 24 h, and
    go out again with the same Message-ID; after that they have failed. A sender whose lease has ended can still
    say who has got the letter; everything else about the row is no longer its business.
    """
    waiting = tuple(address for address in row.waiting if address not in outcome.accepted)
    if token != row.token or row.state is not State.SENDING:
        arrived = not waiting and row.state not in OVER
        return replace(row, waiting=waiting, state=State.SENT if arrived else row.state)
    refused = {refusal.address for refusal in outcome.refused}
    waiting = tuple(address for address in waiting if address not in refused)
    error = _error(outcome)
    row = replace(row, waiting=waiting, lease_until=None, last_error=error)
    if not waiting:
        return replace(row, state=State.FAILED if outcome.result is Result.FAILED else State.SENT)
    if row.attempts > len(BACK_OFF):
        return replace(row, state=State.FAILED, last_error=f"given up after {row.attempts} attempts: {error}")
    return replace(row, state=State.DEFERRED, not_before=now + BACK_OFF[row.attempts - 1])


def operators_note(row: Row, outcome: Outcome) -> str | None:
    """One line for the operators about a settled row, if there is something that only they can mend."""
    if row.state is State.FAILED:
        return f"mail {row.message_id} failed: {row.last_error}"
    if outcome.refused:
        return f"mail {row.message_id} was refused for {_refusals(outcome)}"
    return None


def _error(outcome: Outcome) -> str:
    if outcome.result is Result.SENT:
        return _refusals(outcome)
    code = f"{outcome.code} " if outcome.code is not None else ""
    return f"{outcome.result}: {code}{outcome.reason}"


def _refusals(outcome: Outcome) -> str:
    return "; ".join(f"{refusal.address} ({refusal.code} {refusal.reason})" for refusal in outcome.refused)


def _must(row: Row, *states: State) -> None:
    if row.state not in states:
        allowed = " or ".join(states)
        raise UserError(f"outbox row {row.id} is {row.state}, not {allowed}; see `bisectbot status`")
