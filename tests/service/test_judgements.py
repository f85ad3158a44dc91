"""What people say of reports becomes the record of how right they were."""

from __future__ import annotations

import pytest

from bisectbot.service.people import judgements
from bisectbot.store.database import Database
from bisectbot.store.tables import Change, CommandLog, Judged, Report, ReportState


def made(database: Database, number: int) -> int:
    with database.write() as session:
        change = Change(key=f"{number:064x}")
        session.add(change)
        session.flush()
        report = Report(
            change_id=change.id,
            direction="regression",
            sha=f"{number:040x}",
            subject="s",
            body="b",
            twin={},
            state=ReportState.RELEASED,
            message_id=f"<{number}@example.org>",
            created=0.0,
        )
        session.add(report)
        session.flush()
        return report.id


def say(database: Database, report: int, judged: Judged) -> None:
    with database.write() as session:
        judgements.judge(session, session.get_one(Report, report), judged, "Ada", "because")


def test_the_last_opinion_on_each_report_holds_and_a_duplicate_says_nothing(database: Database) -> None:
    one, two, three = (made(database, number) for number in (1, 2, 3))
    for report, judged in [
        (one, Judged.WRONG),
        (two, Judged.FIXED),
        (three, Judged.DUPLICATE),
        (one, Judged.ACCEPTED),
        (two, Judged.WRONG),
    ]:
        say(database, report, judged)
    with database.read() as session:
        assert judgements.right(session) == [True, False]
        assert judgements.samples(session) == []  # none of them came from a bisection that stated a probability


def test_the_log_of_commands_is_only_appended_to(database: Database) -> None:
    with database.write() as session:
        session.add(CommandLog(at=0.0, who="Ada", origin="irc", raw="status", arguments={}, outcome="ok"))
    with pytest.raises(AssertionError, match="only appended to"), database.write() as session:
        session.get_one(CommandLog, 1).outcome = "something else"
    with pytest.raises(AssertionError, match="only appended to"), database.write() as session:
        session.delete(session.get_one(CommandLog, 1))
