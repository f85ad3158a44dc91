"""`help`, `status`, `queue`, `hosts`, `whoami`; and how a request goes on and ends, for those who wait for it."""

from __future__ import annotations

from sqlalchemy import func, select

from bisectbot.bisect import Verdict
from bisectbot.chat.answer import Answer
from bisectbot.chat.grammar import VERBS
from bisectbot.chat.said import Ask
from bisectbot.errors import UserError
from bisectbot.results.trial import Column
from bisectbot.service import commands
from bisectbot.service.context import Context
from bisectbot.service.people import status as states
from bisectbot.service.people import trials
from bisectbot.service.people.trials import TrialStatus
from bisectbot.service.search.verdicts import verdict_of
from bisectbot.store.tables import Bisection, BisectionState, Finding, Report, Request, RequestState, Run, RunState


def link(context: Context, path: str) -> str:
    """The address of what the web serves under ``/api``."""
    return f"{context.config.server.url.rstrip('/')}/api/{path}"


def help_(ask: Ask) -> Answer:
    """All verbs, or one with its usage."""
    if ask.words:
        verb = VERBS.get(ask.words[0].casefold())
        if verb is None:
            raise UserError(f"there is no {ask.words[0][:20]!r}; `help` lists what there is")
        usage = f"usage: {verb.name} {verb.usage}".rstrip()
        role = f"for {verb.role.name.lower()}s" if verb.role else "for anyone"
        return Answer(f"{usage} ({verb.does}; {role})", (f"example: {verb.example}",), private=True)
    rows = tuple((f"{verb.name} {verb.usage}".rstrip(), verb.does) for verb in VERBS.values())
    return Answer(f"I understand: {', '.join(VERBS)}", ("`help VERB` tells more",), rows, private=True)


def whoami(ask: Ask) -> Answer:
    """Who somebody is to us."""
    person = ask.person
    known = (
        f"{person.name}, {person.role.name.lower()}" if person.listed else f"nobody listed ({person.role.name.lower()})"
    )
    return Answer(f"you are {known}; I know you as {ask.said.identity}", private=True)


def status(ask: Ask) -> Answer:
    """One thing, or everything at a glance."""
    if not ask.words:
        return _overview(ask)
    word = ask.words[0].upper()
    match word[:1]:
        case "B":
            return bisection(ask.context, word)
        case "Q":
            return request(ask.context, word)
        case "R":
            with ask.context.database.read() as session:
                row = commands.row_of(session, Report, word, "R")
                return Answer(f"R{row.id} is {row.state.value}: {row.subject}", (row.reason,) if row.reason else ())
    return hosts(ask)


def _overview(ask: Ask) -> Answer:
    seen = states.overview(ask.context)
    running = [line for line in seen.bisections if line.state in {"running", "waiting"}]
    head = (
        f"{sum(host.attached for host in seen.hosts)} of {len(seen.hosts)} hosts at work, "
        f"{sum(seen.runs.values())} runs and {sum(seen.builds.values())} builds to come, "
        f"{len(running)} bisections open"
    )
    lines = tuple(f"{line.id} {line.state}: {line.kpi} on {line.group}" for line in running[:5])
    lines += tuple(f"{line.id} {line.state}: {line.subject}" for line in seen.reports[:3])
    return Answer(head, lines, link=link(ask.context, "status"))


def queue(ask: Ask) -> Answer:
    """What waits for which host group, people's requests by name."""
    with ask.context.database.read() as session:
        states_ = [RequestState.OPEN, RequestState.RUNNING]
        rows = session.execute(select(Request).where(Request.state.in_(states_)).order_by(Request.id)).scalars().all()
        waiting = session.execute(
            select(func.count()).where(Run.state.in_([state for state in RunState if state.open]))
        ).scalar_one()
        open_ = [BisectionState.WAITING, BisectionState.RUNNING]
        automatic = session.execute(
            select(func.count()).where(Bisection.state.in_(open_), Bisection.automatic)
        ).scalar_one()
        head = f"{len(rows)} requests, {automatic} bisections of my own, {waiting} runs to come"
        return Answer(head, tuple(f"Q{row.id} {row.kind} of {row.asker}: {row.state.value}" for row in rows[:10]))


def hosts(ask: Ask) -> Answer:
    """Hosts and how they are."""
    wanted = ask.words[0] if ask.words else ""
    found = [host for host in states.hosts(ask.context) if wanted.casefold() in f"{host.group} {host.name}".casefold()]
    if not found:
        raise UserError(f"there is no host {wanted[:40]!r}; `hosts` lists them")
    rows = tuple((host.name, host.state, host.run or "idle", f"{host.waiting} waiting", host.reason) for host in found)
    bad = sum(host.state in {"bad", "suspect", "maintenance"} for host in found)
    return Answer(
        f"{len(found)} hosts, {bad} of them not at work", (), (("host", "state", "runs", "queue", "why"), *rows)
    )


def request(context: Context, word: str) -> Answer:
    """How a request goes, or how it ended."""
    trial = trials.trial_status(context, word)
    if trial is not None:
        return _trial(context, trial)
    bisection_id, answer = commands.request_answer(context, word)
    return bisection(context, bisection_id) if bisection_id else Answer(answer)


def over(context: Context, word: str) -> bool:
    """Whether a request has ended."""
    with context.database.read() as session:
        row = session.get_one(Request, commands.number(word, "Q"))
        return row.state not in {RequestState.OPEN, RequestState.RUNNING}


def _trial(context: Context, seen: TrialStatus) -> Answer:
    if seen.state == "cancelled":
        return Answer(f"{seen.id} is cancelled")
    if not seen.over:
        return Answer(f"{seen.id}: {seen.done} of {seen.planned} runs done on {seen.group}")
    if seen.judgement is None:
        return Answer(f"{seen.id} failed: {seen.failure}")
    head = f"{seen.id} done: {seen.judgement.sentence}"
    tested = trials.tested_by(context, seen)
    line = (f"    {tested}",) if tested else ()
    return Answer(head, line, _columns(seen.kpi, seen.unit, seen.columns))


def _columns(kpi: str, unit: str, columns: tuple[Column, ...]) -> tuple[tuple[str, ...], ...]:
    """One row, a column per build: LKP's order, base first, each with its change."""
    base = columns[0].mean
    cells = []
    for column in columns:
        half = column.half_width
        change = f" ({100 * (column.mean - base) / abs(base):+.1f} %)" if column is not columns[0] and base else ""
        cells.append(f"{column.mean:.6g}{f' ±{half:.2g}' if half is not None else ''}{change}")
    return (
        ("", *(column.title for column in columns)),
        ("commit", *(column.sha[:12] for column in columns)),
        (f"{kpi}{f' ({unit})' if unit else ''}", *cells),
        ("runs (boots)", *(f"{len(c.runs)} ({len({boot for boot, _ in c.runs})})" for c in columns)),
    )


def bisection(context: Context, word: str) -> Answer:
    """How a bisection goes: steps, the three likeliest, when it ends; or its verdict."""
    seen = states.bisection_status(context, word)
    line = seen.line
    where = link(context, f"bisections/{line.id}")
    if line.state in {"waiting", "running"}:
        eta = f", about {seen.ends_in_s / 3600:.1f} h to go" if seen.ends_in_s is not None else ""
        head = f"{line.id} {line.state}: {len(seen.experiments)} steps, {seen.host_s / 3600:.1f} host hours{eta}"
        likely = tuple(f'{c.commit[:12]} ("{c.subject}") {c.probability:.2f}' for c in seen.likeliest if c.subject)
        return Answer(head, (*likely, *([line.reason] if line.reason else [])), link=where)
    with context.database.read() as session:
        row = session.get_one(Bisection, commands.number(line.id, "B"))
        verdict = verdict_of(row)
        found = select(Report).join(Finding, Finding.report_id == Report.id).where(Finding.bisection_id == row.id)
        report = session.execute(found.limit(1)).scalar_one_or_none()
    if verdict is None or not line.culprit:
        what = line.verdict.replace("_", " ") or line.state
        return Answer(f"{line.id} {what}: {line.reason}", link=where)
    subject = next((e.subject for e in seen.experiments if e.commit == line.culprit and e.subject), "")
    what = f'{line.culprit[:10]} ("{subject}") {_effect(seen, verdict)}'
    head = f"{line.id} done: {what}, probability {verdict.probability:.2f}"
    return Answer(head, _evidence(seen, verdict, report), link=where)


def _effect(seen: states.BisectionStatus, verdict: Verdict) -> str:
    """The effect with its interval, in % of the good level where that is known."""
    if verdict.effect is None:
        return "no size known"
    good = [value for e in seen.experiments if e.commit == seen.line.good for value in e.values]
    base = sum(good) / len(good) if good else 0.0
    scale, unit = (100 / abs(base), " %") if base else (1.0, f" {seen.unit}".rstrip())
    half = (verdict.interval[1] - verdict.interval[0]) / 2 * scale if verdict.interval else None
    return f"{verdict.effect * scale:+.3g}{unit}" + (f" ±{half:.2g}" if half is not None else "")


def _evidence(seen: states.BisectionStatus, verdict: Verdict, report: Report | None) -> tuple[str, ...]:
    runs = sum(len(e.values) for e in seen.experiments)
    spent = f"{len(seen.experiments)} commits measured, {runs} runs, {seen.host_s / 3600:.1f} host hours"
    lines = [f"{spent}; {verdict.reason}"]
    if report is not None:
        waits = "waits for approval" if report.state.value == "held" else f"is {report.state.value}"
        lines.append(f"R{report.id} {waits}")
    return tuple(lines)


HANDLERS = {"help": help_, "whoami": whoami, "status": status, "queue": queue, "hosts": hosts}
