"""A letter becomes a row of the outbox, in the caller's transaction: the ladder says to whom, the gate whether."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from bisectbot.jobs import wire
from bisectbot.mail.gate import Contents, reasons_to_hold
from bisectbot.mail.mailbox import Mailbox, distinct
from bisectbot.mail.message import Facts, Kind, Letter, choose_message_id, compose
from bisectbot.mail.policy import Decision, Matter, Rung, Way, decide
from bisectbot.mail.recipients import Recipients
from bisectbot.mail.thread import Thread
from bisectbot.report import from_json
from bisectbot.report.model import Report as ReportModel
from bisectbot.service.context import Context
from bisectbot.service.post import rules
from bisectbot.service.post.concerned import Concerned
from bisectbot.service.post.wanted import with_subscribers
from bisectbot.store.tables import Outbox, OutboxState, Report

_OTHERWISE = {
    **dict.fromkeys(Kind, "named by configuration"),
    **dict.fromkeys((Kind.CORRECTION, Kind.FOLLOWUP), "got the first letter"),
    **dict.fromkeys((Kind.ANSWER, Kind.TEST), "asked"),
}


@dataclass(frozen=True)
class Addressee:
    """Somebody whom a letter concerns. ``place``: to, cc, or why they do not get it."""

    address: str
    name: str
    place: str
    why: str
    list: bool = False

    @property
    def mailbox(self) -> Mailbox:
        return Mailbox(self.address, self.name)

    @property
    def gets_it(self) -> bool:
        return self.place in {"to", "cc"}


@dataclass(frozen=True)
class Draft:
    """A letter before it is decided who gets it. ``key`` names it for ever; ``held`` are the writer's own doubts."""

    key: str
    subject: str
    body: str
    matter: Matter
    facts: Facts = field(default_factory=Facts)
    report: int | None = None
    message_id: str | None = None
    thread: Thread | None = None
    contents: Contents = field(default_factory=Contents)
    held: tuple[str, ...] = ()
    decision: Decision | None = None
    """To whom, where it is no matter of the ladder."""


def put(context: Context, session: Session, draft: Draft, now: float) -> Outbox | None:
    """Write the letter into the outbox, queued or held; None if it stands there already."""
    if session.execute(select(Outbox.id).filter_by(dedup_key=draft.key)).scalar_one_or_none() is not None:
        return None
    row = Outbox(
        report_id=draft.report,
        kind=draft.matter.kind.value,
        message_id=draft.message_id or _message_id(context, draft, now),
        dedup_key=draft.key,
        created=now,
    )
    rewrite(context, session, row, draft, now)
    session.add(row)
    session.flush()
    return row


def rewrite(context: Context, session: Session, row: Outbox, draft: Draft, now: float) -> None:
    """Decide and compose a letter that nobody has got yet, under the name that it has."""
    decision = _decided(context, session, draft, now)
    letter = _write(context, row, draft, decision)
    held = (*reasons_to_hold(letter, draft.contents), *([decision.held] if decision.held else []), *draft.held)
    if decision.way is Way.DIGEST:
        held = ("below the bar for a mail of its own", *held)
    row.held, row.state = list(dict.fromkeys(held)), OutboxState.AWAITING_APPROVAL if held else OutboxState.QUEUED


def approve(context: Context, session: Session, row: Outbox, draft: Draft, who: str, now: float) -> None:
    """Somebody answers for a held letter: it goes as far as the ladder reaches by now, whatever it was held for."""
    matter = replace(draft.matter, confidence=None, effect=None)  # a person's word counts for more than the bar
    _write(context, row, draft, _decided(context, session, replace(draft, matter=matter), now, approved_by=who))
    row.state, row.approved_by, row.not_before = OutboxState.QUEUED, who, 0.0


def addressees(row: Outbox) -> tuple[Addressee, ...]:
    """Whom a letter concerns."""
    return tuple(wire.from_plain(Addressee, plain) for plain in row.addressees)


def reached(row: Outbox) -> tuple[Mailbox, ...]:
    """Those who have got a letter by mail."""
    if row.way != Way.MAIL.value:
        return ()
    names = {entry.mailbox.key: entry.mailbox for entry in addressees(row)}
    return tuple(names.get(address.lower(), Mailbox(address)) for address in row.reached)


def model_of(report: Report) -> ReportModel:
    """A stored report as the report room's record."""
    return from_json(json.dumps(report.twin), f"R{report.id}")


def facts_of(report: Report, model: ReportModel) -> Facts:
    """What X-Bisectbot-* say in every letter about a report."""
    return Facts(
        report=f"R{report.id}",
        change=report.sha,
        hosts=(model.finding.machine.group,) if model.finding.machine else (),
        metrics=(model.finding.stat,),
        confidence=model.evidence.probability if model.evidence else None,
    )


def matter_of(model: ReportModel, kind: Kind, recipients: Recipients) -> Matter:
    """What a letter about a report is about, as the ladder asks."""
    return Matter(
        kind=kind,
        tree=f"{model.tree.name}:{model.tree.branch}",
        testcase=model.finding.testcase,
        recipients=recipients,
        confidence=model.evidence.probability if model.evidence else None,
        effect=model.finding.percent,
    )


def testcase_of(session: Session, row: Outbox) -> str:
    """What a letter is about, "" for one that is about no report."""
    report = session.get(Report, row.report_id) if row.report_id is not None else None
    return model_of(report).finding.testcase if report else ""


def first_draft(context: Context, session: Session, report: Report, model: ReportModel, found: Concerned) -> Draft:
    """The letter that a report's thread begins with, to whom it concerns and who subscribed, yet undecided."""
    most = rules.tree_rules(context, model.tree.name).most
    recipients = with_subscribers(session, model, found.files, found.recipients, most)
    return Draft(
        key=f"report/{report.id}",
        subject=report.subject,
        body=report.body,
        matter=matter_of(model, Kind.REPORT, recipients),
        facts=facts_of(report, model),
        report=report.id,
        message_id=report.message_id,
        thread=found.thread,
    )


def first_letter(session: Session, report: int) -> Outbox | None:
    """The letter that a report's thread begins with."""
    return session.execute(select(Outbox).filter_by(report_id=report, kind=Kind.REPORT.value)).scalar_one_or_none()


def _message_id(context: Context, draft: Draft, now: float) -> str:
    return choose_message_id(f"{draft.key} {context.config.state}", rules.identity(context), now)


def _decided(context: Context, session: Session, draft: Draft, now: float, approved_by: str = "") -> Decision:
    if draft.decision is not None:
        return draft.decision
    record = rules.record(context, session, now, draft.report)
    return decide(rules.policy(context, session, draft.matter.testcase), draft.matter, record, approved_by=approved_by)


def _write(context: Context, row: Outbox, draft: Draft, decision: Decision) -> Letter:
    """Compose the letter into its row. One that is only a file shows those whom it would have reached."""
    identity, found = rules.identity(context), draft.matter.recipients
    to, cc = decision.to, decision.cc
    if decision.way is not Way.MAIL:
        to = found.to or rules.mailboxes(context.config.mail.operators) or (identity.mailbox,)
        cc = ()
    thread = draft.thread
    letter = Letter(
        key=draft.key,
        kind=draft.matter.kind,
        subject=draft.subject,
        body=draft.body,
        to=to,
        cc=cc,
        message_id=row.message_id,
        in_reply_to=thread.in_reply_to if thread else None,
        references=thread.references if thread else (),
        facts=draft.facts,
    )
    row.way, row.rung = decision.way.value, int(decision.rung)
    row.raw = bytes(compose(letter, identity, row.created))
    row.waiting = [box.address for box in (*to, *cc)]
    row.addressees = [wire.to_plain(entry) for entry in _addressees(context, draft, decision, to, cc)]
    return letter


def _addressees(
    context: Context, draft: Draft, decision: Decision, to: tuple[Mailbox, ...], cc: tuple[Mailbox, ...]
) -> list[Addressee]:
    found = draft.matter.recipients
    lists = {box.key for box in found.lists}
    operators = {box.key for box in rules.mailboxes(context.config.mail.operators)}
    dropped = {entry.mailbox.key: entry.why for entry in decision.dropped}
    got = {**{box.key: "cc" for box in cc}, **{box.key: "to" for box in to}}
    everybody = distinct(
        (*to, *cc, *(entry.mailbox for entry in decision.dropped), *found.to, *found.people, *found.lists)
    )
    return [
        Addressee(
            address=box.address,
            name=box.name,
            place=got.get(box.key) or dropped.get(box.key) or _beyond(decision),
            why=found.why.get(box.key) or ("operator" if box.key in operators else _OTHERWISE[draft.matter.kind]),
            list=box.key in lists,
        )
        for box in everybody
    ]


def _beyond(decision: Decision) -> str:
    if decision.way is Way.DIGEST:
        return "below the bar"
    rung = {Rung.FILES: "files are written only", Rung.OPERATORS: "only operators are mailed"}
    return rung.get(decision.rung, "only the author is mailed")
