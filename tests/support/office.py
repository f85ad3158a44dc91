"""A laboratory's mail: reports about real commits, a real SMTP server that fails as told, time that passes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlalchemy import select, update

from bisectbot.jobs import wire
from bisectbot.mail.gate import Contents
from bisectbot.report.model import Commit, Tree
from bisectbot.report.model import Report as ReportModel
from bisectbot.report.render import render_mail
from bisectbot.report.twin import to_json
from bisectbot.service import catalog
from bisectbot.service.context import Context
from bisectbot.service.post import letters
from bisectbot.service.post.concerned import concerned
from bisectbot.service.report import post
from bisectbot.service.send import send
from bisectbot.store.database import now
from bisectbot.store.tables import (
    Bisection,
    BisectionState,
    Change,
    Finding,
    Kpi,
    Outbox,
    OutboxState,
    Reply,
    Report,
    ReportState,
)
from tests.mail.servers import Received, Script, smtp_server
from tests.report import samples
from tests.support.lab import BRANCH, TREE, Lab

DAY = 86400.0
AUTHOR, MAINTAINER, LIST, OPERATOR = "ada@example.org", "mia@example.net", "level@lists.example.net", "ops@example.org"
PATCH = "<20261130.patch@example.org>"
FILES = {
    "level": "90.0\n",
    "number": "5\n",
    "MAINTAINERS": """\
List of maintainers

LEVEL OF THE LAB
M:	Mia Maintainer <mia@old.example>
L:	level@lists.example.net
S:	Maintained
F:	level

FLURBS
R:	Flora Flurb <flora@example.net>
K:	\\bflurb\\b
F:	flurbs/
""",
    ".mailmap": "Mia Maintainer <mia@example.net> <mia@old.example>\n",
    ".get_maintainer.ignore": "Ignacio Ignored <ignacio@example.net>\n",
}
MESSAGE = f"""\
level: count down

Reviewed-by: Rev Reviewer <rev@example.net>
Acked-by: Ignacio Ignored <ignacio@example.net>
Link: https://patch.msgid.link/{PATCH.strip("<>")}
"""


@dataclass
class Office:
    """``script`` is what the mail server answers, and what it has received."""

    lab: Lab
    context: Context
    script: Script
    written: list[int] = field(default_factory=list)

    def commit(self, message: str = MESSAGE, **files: str) -> str:
        """A commit with a MAINTAINERS file, which the mirror has."""
        lab = self.lab
        parent = lab.upstream.commit(
            {**FILES, "level": "100.0\n", "number": f"{len(self.written)}\n"}, subject="before"
        )
        sha = lab.upstream.commit({**FILES, "number": f"{len(self.written)}\n", **files}, parent, subject=message)
        lab.upstream.push(sha)
        lab.context.mirror.add_tree(TREE, str(lab.upstream.path))
        lab.context.mirror.fetch(TREE)
        return sha

    def model(self, sha: str, **changes: Any) -> ReportModel:
        """What a report on a commit says."""
        commit = Commit(sha, "level: count down")
        return replace(samples.report(), commit=commit, tree=Tree("", BRANCH, TREE), **changes)

    def report(self, *, contents: Contents | None = None, probability: float = 0.99, **changes: Any) -> int:
        """A report with its letter in the outbox, as the service's own step writes it; returns its number."""
        sha = self.commit(f"{MESSAGE}Cc: Number {len(self.written)} <number{len(self.written)}@example.net>\n")
        model = self.model(sha, **changes)
        assert model.evidence is not None
        model = replace(model, evidence=replace(model.evidence, probability=probability))
        found = concerned(self.context, sha, TREE)
        text = render_mail(model)
        with self.context.database.write() as session:
            change = Change(key=sha)
            session.add(change)
            session.flush()
            report = Report(
                change_id=change.id,
                direction="regression",
                sha=sha,
                subject=text.subject,
                body=text.body,
                twin=json.loads(to_json(model)),
                state=ReportState.RELEASED,
                message_id=f"<202611302205.{len(self.written):08x}-bisectbot@example.org>",
                created=now(session),
            )
            session.add(report)
            session.flush()
            draft = replace(
                letters.first_draft(self.context, session, report, model, found), contents=contents or Contents()
            )
            post(self.context, session, report, draft)
            self.written.append(report.id)
            return report.id

    def found(self, report: int, *stats: str) -> None:
        """A later bisection finds that a report's change moved other stats too."""
        lab = self.lab
        with self.context.database.write() as session:
            job = catalog.job_row(session, lab.config.units("bench")[0])
            session.flush()
            kpi = session.execute(select(Kpi).filter_by(job_id=job.id)).scalar_one()
            bisection = Bisection(
                tree=TREE,
                job_id=job.id,
                kpi_id=kpi.id,
                good="a" * 40,
                bad="b" * 40,
                recipe={},
                settings={},
                state=BisectionState.DONE,
                created=now(session),
                reported=True,
            )
            session.add(bisection)
            session.flush()
            changed = [wire.to_plain(replace(samples.finding(-4.5), stat=stat)) for stat in stats]
            row = Finding(report_id=report, bisection_id=bisection.id, created=now(session), changed=changed)
            session.add(row)

    def row(self, report: int | None = None, kind: str = "report") -> Outbox:
        """The newest letter of a kind (about a report)."""
        with self.context.database.read() as session:
            query = select(Outbox).filter_by(kind=kind)
            query = query if report is None else query.filter_by(report_id=report)
            return session.execute(query.order_by(Outbox.id.desc()).limit(1)).scalar_one()

    def rows(self, kind: str) -> list[Outbox]:
        with self.context.database.read() as session:
            return list(session.execute(select(Outbox).filter_by(kind=kind).order_by(Outbox.id)).scalars())

    def replies(self) -> list[Reply]:
        with self.context.database.read() as session:
            return list(session.execute(select(Reply).order_by(Reply.id)).scalars())

    def send(self) -> list[Received]:
        """Let the sender work until nothing is due; what arrived."""
        before = len(self.script.received)
        for _ in range(3):  # what fails makes notes, which are due at once
            while send(self.context):
                pass
        return self.script.received[before:]

    def days_pass(self, days: float) -> None:
        """Everything happened so much longer ago."""
        shift = days * DAY
        with self.context.database.write() as session:
            session.execute(
                update(Outbox).values(
                    created=Outbox.created - shift, sent=Outbox.sent - shift, not_before=Outbox.not_before - shift
                )
            )

    def all_went(self) -> bool:
        """Whether no letter waits."""
        over = {OutboxState.SENT, OutboxState.CANCELLED, OutboxState.FAILED}
        with self.context.database.read() as session:
            return all(row.state in over for row in session.execute(select(Outbox)).scalars())


def reached(received: list[Received]) -> set[str]:
    """The addresses that got something."""
    return {address for one in received for address in one.recipients}


def with_mail(context: Context, **changes: Any) -> Context:
    """The same service after an operator has changed the mail section."""
    config = context.config
    section = type(config.mail).model_validate({**config.mail.model_dump(), **changes})
    return replace(context, config=config.model_copy(update={"mail": section}))


@contextmanager
def office(lab: Lab, **mail: Any) -> Iterator[Office]:
    """Mail for a laboratory, with a server that takes it."""
    script = Script()
    with smtp_server(script) as settings:
        yield Office(lab, with_mail(lab.context, smtp={"port": settings.port}, **mail), script)


def maildir(folder: Path) -> Path:
    """An empty maildir."""
    for part in ("new", "cur", "tmp"):
        (folder / part).mkdir(parents=True)
    return folder
