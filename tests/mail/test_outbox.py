"""The life of a letter in the outbox."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bisectbot.errors import UserError
from bisectbot.mail import outbox
from bisectbot.mail.outbox import Row, State
from bisectbot.mail.smtp import Outcome, Refusal, Result

A, B = "a@example.org", "b@example.org"
DRAFT = Row(1, "<m@example.org>", "key", (A, B))
SENT = Outcome(Result.SENT, accepted=(A, B))
LATER = Outcome(Result.DEFERRED, 451, "greylisted", waiting=(A, B))
LOST = Outcome(Result.UNKNOWN, None, "connection lost", waiting=(A, B))


def sending(now: float = 0.0) -> Row:
    return outbox.claim(outbox.submit(DRAFT), now)


def test_the_straight_way():
    row = outbox.submit(DRAFT, not_before=10.0)
    assert not outbox.is_due(row, 9.0)
    row = outbox.claim(row, 10.0, lease=60.0)
    assert (row.state, row.token, row.lease_until) == (State.SENDING, 1, 70.0)
    row = outbox.settle(row, 1, SENT, 12.0)
    assert (row.state, row.waiting, row.lease_until) == (State.SENT, (), None)
    assert outbox.operators_note(row, SENT) is None


def test_a_held_letter_waits_for_somebody():
    row = outbox.submit(DRAFT, held=("table 1 is empty",))
    assert row.state is State.AWAITING_APPROVAL
    assert not outbox.is_due(row, 1e12)
    row = outbox.approve(row, "grace")
    assert (row.state, row.approved_by) == (State.QUEUED, "grace")
    assert outbox.is_due(row, 0.0)


@pytest.mark.parametrize("outcome", [LATER, LOST])
def test_backs_off_and_gives_up_after_ten_attempts(outcome: Outcome):
    row, now, waits = outbox.submit(DRAFT), 0.0, []
    while row.state is not State.FAILED:
        row = outbox.settle(outbox.claim(row, now), row.token + 1, outcome, now)
        waits.append(row.not_before - now)
        now = max(now, row.not_before)
    assert [wait / 60 for wait in waits[:-1]] == [5, 30, 120, 360, 1440, 1440, 1440, 1440, 1440]
    assert row.attempts == 10
    assert row.last_error.startswith("given up after 10 attempts: ")
    assert "given up after 10" in (outbox.operators_note(row, outcome) or "")
    assert outbox.is_due(outbox.approve(row, "grace"), now)


def test_only_those_who_wait_get_it_again():
    row = outbox.settle(sending(), 1, Outcome(Result.DEFERRED, 450, "later", accepted=(B,), waiting=(A,)), 0.0)
    assert (row.state, row.waiting) == (State.DEFERRED, (A,))


def test_some_refused_for_good():
    outcome = Outcome(Result.SENT, accepted=(B,), refused=(Refusal(A, 550, "unknown"),))
    row = outbox.settle(sending(), 1, outcome, 0.0)
    assert (row.state, row.last_error) == (State.SENT, "a@example.org (550 unknown)")
    assert outbox.operators_note(row, outcome) == "mail <m@example.org> was refused for a@example.org (550 unknown)"


def test_all_refused_for_good():
    outcome = Outcome(Result.FAILED, 554, "spam", refused=(Refusal(A, 554, "spam"), Refusal(B, 554, "spam")))
    row = outbox.settle(sending(), 1, outcome, 0.0)
    assert (row.state, row.last_error) == (State.FAILED, "failed: 554 spam")
    assert outbox.operators_note(row, outcome) == "mail <m@example.org> failed: failed: 554 spam"


def test_a_dead_senders_letter_goes_out_again_under_its_name():
    row = sending(now=0.0)
    assert not outbox.has_expired(row, outbox.LEASE - 1)
    assert outbox.has_expired(row, outbox.LEASE)
    again = outbox.expire(row, outbox.LEASE)
    assert (again.state, again.message_id, again.waiting) == (State.DEFERRED, row.message_id, (A, B))
    assert again.not_before == outbox.LEASE + 5 * outbox.MINUTE


def test_a_slow_sender_comes_back_after_its_lease():
    row = outbox.expire(sending(), outbox.LEASE)
    late = outbox.settle(row, 1, SENT, outbox.LEASE + 1)
    assert late.state is State.SENT
    second = outbox.claim(row, row.not_before)
    part = outbox.settle(second, 1, Outcome(Result.UNKNOWN, accepted=(B,), waiting=(A,)), row.not_before)
    assert (part.state, part.token, part.waiting) == (State.SENDING, 2, (A,))


@pytest.mark.parametrize("state", [State.SENDING, State.SENT, State.FAILED, State.CANCELLED])
def test_what_can_no_longer_be_stopped(state: State):
    with pytest.raises(UserError, match=f"outbox row 1 is {state}"):
        outbox.cancel(replace(DRAFT, state=state), "no")


def test_cancelled_for_a_reason():
    row = outbox.cancel(outbox.submit(DRAFT, held=("x",)), "numbers are from a broken host")
    assert (row.state, row.last_error) == (State.CANCELLED, "numbers are from a broken host")
    assert not outbox.is_due(row, 1e12)


def test_claims_need_their_time():
    with pytest.raises(UserError, match="not due"):
        outbox.claim(outbox.submit(DRAFT, not_before=10.0), 9.0)


def test_postponed_never_to_earlier():
    row = outbox.submit(DRAFT, not_before=100.0)
    assert outbox.postpone(row, 50.0).not_before == 100.0
    assert outbox.postpone(row, 150.0).not_before == 150.0


FATES = st.lists(st.sampled_from(["take", "take and lose", "lose", "defer", "die before", "die after"]), max_size=12)


@given(FATES)
def test_whatever_happens_everybody_gets_it_under_one_name_or_the_operators_hear(fates: list[str]):
    """A sender and a server that fail in any order; who has it is what the server saw."""
    row, now = outbox.submit(DRAFT), 0.0
    has: set[str] = set()
    for fate in [*fates, "take"]:
        if row.state in outbox.OVER:
            break
        now = max(now, row.not_before)
        row = outbox.claim(row, now)
        reached = row.waiting if fate in {"take", "take and lose", "die after"} else ()
        has |= set(reached)
        if fate.startswith("die"):
            now += outbox.LEASE
            row = outbox.expire(row, now)
        elif fate == "take":
            row = outbox.settle(row, row.token, Outcome(Result.SENT, accepted=row.waiting), now)
        else:
            result = Result.DEFERRED if fate == "defer" else Result.UNKNOWN
            row = outbox.settle(row, row.token, Outcome(result, 451, "x", waiting=row.waiting), now)
        assert row.message_id == DRAFT.message_id
    assert (row.state is State.SENT and has == {A, B}) or row.state is State.FAILED
