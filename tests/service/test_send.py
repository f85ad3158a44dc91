"""Mail leaves once: server down and back, a sender that died, a report that is held."""

from __future__ import annotations

import email
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import select

from bisectbot.demo.run import Sink, free_port
from bisectbot.errors import UserError
from bisectbot.service import commands, status
from bisectbot.service.context import Context
from bisectbot.service.send import mail_file, send
from bisectbot.store.database import now
from bisectbot.store.tables import Change, Outbox, OutboxState, Report, ReportState
from tests.support.lab import Lab

RAW = (
    b"From: bisectbot <bot@example.org>\r\nTo: ada@example.org\r\nSubject: demo.ops 8.0% regression\r\n"
    b"Message-ID: <202611302205.0000abcd-bisectbot@example.org>\r\n\r\nHello,\r\n"
)
MESSAGE_ID = "<202611302205.0000abcd-bisectbot@example.org>"


@pytest.fixture
def sink() -> Iterator[Sink]:
    server = Sink()
    server.start()
    yield server
    server.stop()


def point_at(lab: Lab, port: int) -> Context:
    smtp = lab.config.mail.smtp.model_copy(update={"port": port})
    mail = lab.config.mail.model_copy(update={"smtp": smtp})
    return replace(lab.context, config=lab.config.model_copy(update={"mail": mail}))


def put(lab: Lab, state: OutboxState = OutboxState.QUEUED, way: str = "mail") -> None:
    """A report with its mail in the outbox."""
    with lab.context.database.write() as session:
        change = Change(key="c" * 40)
        session.add(change)
        session.flush()
        held = state is OutboxState.AWAITING_APPROVAL
        report = Report(
            change_id=change.id,
            direction="regression",
            sha="a" * 40,
            subject="s",
            body="b",
            twin={},
            state=ReportState.HELD if held else ReportState.RELEASED,
            message_id=MESSAGE_ID,
            created=now(session),
        )
        session.add(report)
        session.flush()
        session.add(
            Outbox(
                report_id=report.id,
                kind="report",
                message_id=MESSAGE_ID,
                dedup_key="report/1",
                state=state,
                way=way,
                rung=2,
                waiting=["ada@example.org"],
                raw=RAW,
                held=["empty table"] if held else [],
                created=now(session),
            )
        )


def row(lab: Lab) -> Outbox:
    with lab.context.database.read() as session:
        return session.execute(select(Outbox)).scalar_one()


def test_a_mail_is_sent_once_and_kept(lab: Lab, sink: Sink) -> None:
    put(lab)
    context = point_at(lab, sink.port)
    assert send(context) == 1
    assert send(context) == 0
    assert [email.message_from_bytes(mail)["Message-ID"] for mail in sink.mails] == [MESSAGE_ID]
    assert row(lab).state is OutboxState.SENT
    assert mail_file(context, MESSAGE_ID).read_bytes() == RAW


def test_a_server_that_is_down_is_tried_again_later(lab: Lab, sink: Sink) -> None:
    put(lab)
    assert send(point_at(lab, free_port())) == 0
    waiting = row(lab)
    assert waiting.state is OutboxState.DEFERRED
    assert waiting.last_error
    assert send(point_at(lab, sink.port)) == 0  # not before the back-off has passed
    deadline = time.monotonic() + 10
    while not sink.mails and time.monotonic() < deadline:
        send(point_at(lab, sink.port))
        time.sleep(0.05)
    assert len(sink.mails) == 1
    assert row(lab).state is OutboxState.SENT


def test_a_sender_that_died_is_followed_by_another_with_the_same_message_id(lab: Lab, sink: Sink) -> None:
    put(lab)
    with lab.context.database.write() as session:
        stored = session.execute(select(Outbox)).scalar_one()
        stored.state, stored.attempts, stored.token = OutboxState.SENDING, 1, 1
    context = point_at(lab, sink.port)
    deadline = time.monotonic() + 10
    while not sink.mails and time.monotonic() < deadline:
        send(context)
        time.sleep(0.05)
    assert [email.message_from_bytes(mail)["Message-ID"] for mail in sink.mails] == [MESSAGE_ID]
    assert row(lab).state is OutboxState.SENT


def test_on_the_lowest_rung_a_mail_is_a_file_and_nothing_leaves(lab: Lab, sink: Sink) -> None:
    put(lab, way="file")
    context = point_at(lab, sink.port)
    assert send(context) == 1
    assert sink.mails == []
    assert mail_file(context, MESSAGE_ID).exists()


def test_a_held_report_waits_for_a_person(lab: Lab, sink: Sink) -> None:
    put(lab, OutboxState.AWAITING_APPROVAL)
    context = point_at(lab, sink.port)
    assert send(context) == 0
    assert status.overview(context).reports[0].state == "held"
    assert commands.approve(context, "ops", "R1") == "R1 is released"
    assert send(context) == 1
    assert len(sink.mails) == 1
    with pytest.raises(UserError, match="R1 is released already"):
        commands.reject(context, "ops", "R1", "too late")


def test_a_rejected_report_is_never_sent(lab: Lab, sink: Sink) -> None:
    put(lab, OutboxState.AWAITING_APPROVAL)
    context = point_at(lab, sink.port)
    commands.reject(context, "ops", "R1", "a layout effect")
    assert send(context) == 0
    assert row(lab).state is OutboxState.CANCELLED
