"""What people may ask: one set of commands for the command line, the web and chat.

Each takes words as people write them (``B77``, ``N5051``) and returns a frozen answer, or raises UserError.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from bisectbot.errors import UserError
from bisectbot.jobs import wire
from bisectbot.service.advance import cancel_runs
from bisectbot.service.care import states
from bisectbot.service.context import Context
from bisectbot.service.people import judgements
from bisectbot.service.people.requests import BISECT, BisectArguments
from bisectbot.service.post import approval, optouts, rules
from bisectbot.service.post.letters import addressees
from bisectbot.service.search import again
from bisectbot.store.database import now
from bisectbot.store.tables import (
    Base,
    Bisection,
    BisectionState,
    Build,
    BuildState,
    CommandLog,
    Experiment,
    ExperimentState,
    FailureKind,
    Host,
    HostState,
    Judged,
    Outbox,
    OutboxState,
    Report,
    Request,
    RequestState,
    Run,
    RunState,
    Switch,
)

T = TypeVar("T", bound=Base)

_KINDS = {
    "N": "run", "S": "step", "B": "bisection", "Q": "request", "R": "report", "U": "build", "M": "mail",
    "W": "subscription",
}  # fmt: skip


@dataclass(frozen=True)
class Asker:
    """Who gives a command, where, and how it was written: what the log keeps of it."""

    name: str
    origin: str = "command line"
    raw: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    entries: list[str] = field(default_factory=list, compare=False)
    """What was logged of it."""

    def __str__(self) -> str:
        return self.name


Who = Asker | str
"""A name alone is somebody at the command line."""


def number(word: str, letter: str) -> int:
    """``B77`` → 77; raises UserError with what was expected."""
    match = re.fullmatch(rf"{letter}?(\d{{1,18}})", word.strip(), re.IGNORECASE)
    if not match:
        raise UserError(f"{word!r} is no {_KINDS[letter]}; expected {letter} and a number, as in {letter}12")
    return int(match[1])


def row_of(session: Session, kind: type[T], word: str, letter: str) -> T:
    row = session.get(kind, number(word, letter))
    if row is None:
        raise UserError(f"there is no {_KINDS[letter]} {word.upper()}; see `bisectbot status`")
    return row


def submit_bisection(context: Context, asker: Who, asked: BisectArguments) -> str:
    """Ask for a bisection; returns the request's id, ``Q12``. What cannot work is answered when it is taken up."""
    for rev in (asked.good, asked.bad):
        if not rev or rev.startswith("-"):
            raise UserError(f"{rev!r} is no revision; give a commit id, a tag or a branch")
    with context.database.write() as session:
        request = Request(kind=BISECT, asker=str(asker), arguments=wire.to_plain(asked), created=now(session))
        session.add(request)
        session.flush()
        log(session, asker, f"submit bisect {asked.good}..{asked.bad}", f"Q{request.id}")
        return f"Q{request.id}"


def cancel(context: Context, who: Who, word: str, why: str) -> str:
    """Stop a bisection (B), a request (Q) or a run (N); what is running ends at its next heartbeat."""
    with context.database.write() as session:
        match word[:1].upper():
            case "B":
                answer = _cancel_bisection(session, row_of(session, Bisection, word, "B"), why)
            case "Q":
                request = row_of(session, Request, word, "Q")
                if request.state not in {RequestState.OPEN, RequestState.RUNNING}:
                    raise UserError(f"{word.upper()} is {request.state.value} already")
                request.state, request.answer = RequestState.CANCELLED, why
                for bisection in session.execute(select(Bisection).filter_by(request_id=request.id)).scalars():
                    _cancel_bisection(session, bisection, why)
                answer = f"{word.upper()} is cancelled"
            case "N":
                run = row_of(session, Run, word, "N")
                if not run.state.open:
                    raise UserError(f"{word.upper()} is {run.state.value} already")
                run.state, run.message, run.finished = RunState.CANCELLED, why, now(session)
                answer = f"{word.upper()} is cancelled"
            case _:
                raise UserError(f"{word!r} cannot be cancelled; name a bisection B…, a request Q… or a run N…")
        log(session, who, f"cancel {word} {why}", answer)
        return answer


def _cancel_bisection(session: Session, bisection: Bisection, why: str) -> str:
    if bisection.state in {BisectionState.DONE, BisectionState.CANCELLED}:
        raise UserError(f"B{bisection.id} is {bisection.state.value} already")
    bisection.state, bisection.reason, bisection.finished = BisectionState.CANCELLED, why, now(session)
    runs = cancel_runs(session, bisection, f"B{bisection.id} was cancelled: {why}")
    return f"B{bisection.id} is cancelled; {runs} runs that were to come with it"


def retry(context: Context, who: Who, word: str) -> str:
    """Run a failed or cancelled run (N), build (U) or bisection (B) again; `asks.order_more` gives it more runs."""
    with context.database.write() as session:
        match word[:1].upper():
            case "N":
                answer = _retry_run(session, row_of(session, Run, word, "N"))
            case "U":
                build = row_of(session, Build, word, "U")
                if build.state not in {BuildState.FAILED, BuildState.UNTESTABLE}:
                    raise UserError(
                        f"{word.upper()} is {build.state.value}; only a failed or untestable build is retried"
                    )
                _again(build)
                answer = f"{word.upper()} is planned again"
            case "B":
                again.resume(session, row_of(session, Bisection, word, "B"))
                answer = f"{word.upper()} goes on with what it has measured"
            case _:
                raise UserError(f"{word!r} cannot be retried; name a run N…, a build U… or a bisection B…")
        log(session, who, f"retry {word}", answer)
        return answer


def _retry_run(session: Session, run: Run) -> str:
    if run.state not in {RunState.FAILED, RunState.CANCELLED}:
        raise UserError(f"N{run.id} is {run.state.value}; only a failed or cancelled run is retried")
    build = session.get_one(Build, run.build_id)
    if build.state in {BuildState.FAILED, BuildState.UNTESTABLE}:
        _again(build)
    run.state = RunState.QUEUED if build.state is BuildState.READY else RunState.PLANNED
    run.failure, run.failures, run.attempts, run.not_before, run.finished = FailureKind.NONE, 0, 0, 0.0, None
    if run.experiment_id is not None:
        session.get_one(Experiment, run.experiment_id).state = ExperimentState.PENDING
    return f"N{run.id} is {run.state.value} again"


def _again(build: Build) -> None:
    build.state, build.attempts, build.not_before, build.hinted = BuildState.PLANNED, 0, 0.0, 0.0


def set_host(context: Context, who: Who, name: str, state: HostState, why: str) -> str:
    """Change a host's state by hand."""
    with context.database.write() as session:
        host = session.execute(select(Host).filter_by(name=name)).scalar_one_or_none()
        if host is None:
            known = ", ".join(session.execute(select(Host.name).order_by(Host.name)).scalars()) or "none"
            raise UserError(f"there is no host {name!r}; there are: {known}")
        states.change(session, host, state, f"{why} ({who})")
        log(session, who, f"hosts {name} {state.value} {why}", "done")
        return f"{name} is {state.value}"


def approve(context: Context, who: Who, word: str) -> str:
    """Release a held report: its mail is queued, for those whom the ladder allows now."""
    found = approval.look(context, number(word, "R"))
    with context.database.write() as session:
        answer = approval.release(context, session, row_of(session, Report, word, "R"), found, str(who))
        log(session, who, f"approve {word}", answer)
        return answer


def reject(context: Context, who: Who, word: str, why: str) -> str:
    """Refuse a held report: its mail is never sent."""
    with context.database.write() as session:
        answer = approval.refuse(session, row_of(session, Report, word, "R"), str(who), why)
        log(session, who, f"reject {word} {why}", answer)
        return answer


def judge(context: Context, who: Who, word: str, judged: Judged, why: str) -> str:
    """Say whether a report was right; a wrong one is corrected by mail to everybody who got it."""
    with context.database.write() as session:
        report = row_of(session, Report, word, "R")
        judgements.judge(session, report, judged, str(who), why)
        answer = f"R{report.id} is judged {judged.value}"
        log(session, who, f"judge {word} {judged.value} {why}", answer)
        return answer


def stop_mail(context: Context, who: Who, why: str) -> str:
    """Hold all mail, from this moment on, until `resume_mail`."""
    with context.database.write() as session:
        if rules.stop_switch(session) is None:
            session.add(Switch(name=rules.MAIL_SWITCH, who=str(who), why=why, since=now(session)))
        log(session, who, f"mail stop {why}", "mail is stopped")
        return "mail is stopped"


def resume_mail(context: Context, who: Who) -> str:
    """Let mail leave again; what the configuration stops stays stopped."""
    with context.database.write() as session:
        if (switch := rules.stop_switch(session)) is not None:
            session.delete(switch)
        stays = context.config.mail.stopped
        answer = "mail stays stopped: the configuration says mail.stopped" if stays else "mail leaves again"
        log(session, who, "mail resume", answer)
        return answer


def allow_mail(context: Context, who: Who, address: str) -> str:
    """Mail to somebody again who had opted out or whose mail had bounced."""
    with context.database.write() as session:
        if not optouts.opt_in(session, address):
            raise UserError(f"{address!r} has neither opted out nor bounced; see `bisectbot mail status`")
        log(session, who, f"mail allow {address}", "done")
        return f"{address} gets mail again"


def refuse_mail(context: Context, who: Who, address: str) -> str:
    """No more mail to an address, for whoever asked for that in another way."""
    with context.database.write() as session:
        if not optouts.opt_out(session, address, f"operator {who}"):
            raise UserError(f"{address!r} gets no mail already")
        log(session, who, f"mail refuse {address}", "done")
        return f"{address} gets no more mail"


def retry_mail(context: Context, who: Who, word: str) -> str:
    """Send a failed mail again, to those who have not got it: M7, as `mail status` numbers them."""
    with context.database.write() as session:
        row = row_of(session, Outbox, word, "M")
        if row.state is not OutboxState.FAILED:
            raise UserError(f"M{row.id} is {row.state.value}; only a failed mail is sent again")
        entries = [entry.address for entry in addressees(row) if entry.gets_it]
        row.waiting = row.waiting or [address for address in entries if address not in row.reached]
        row.state, row.attempts, row.not_before = OutboxState.QUEUED, 0, 0.0
        log(session, who, f"mail retry {word}", f"M{row.id} is queued")
        return f"M{row.id} is queued"


def log(session: Session, who: Who, raw: str, outcome: str) -> None:
    """Append to the log of commands, in the transaction that carries the command out."""
    asker = who if isinstance(who, Asker) else Asker(who, raw=raw)
    asker.entries.append(outcome)
    session.add(
        CommandLog(
            at=now(session),
            who=asker.name,
            origin=asker.origin,
            raw=asker.raw or raw,
            arguments=asker.arguments,
            outcome=outcome,
        )
    )


def request_answer(context: Context, word: str) -> tuple[str, str]:
    """The bisection that a request became ("" if none), and its answer in one line."""
    with context.database.read() as session:
        request = row_of(session, Request, word, "Q")
        bisection = session.execute(select(Bisection.id).filter_by(request_id=request.id)).scalar_one_or_none()
        answer = f"Q{request.id} is {request.state.value}" + (f": {request.answer}" if request.answer else "")
        return (f"B{bisection}" if bisection else "", answer)
