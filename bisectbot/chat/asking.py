"""`bisect`, `compare`, `test`, `cancel`, `retry`: what costs host time, told before it is spent."""

from __future__ import annotations

import datetime as dt
import re

from sqlalchemy import select

from bisectbot.chat import telling
from bisectbot.chat.answer import Answer
from bisectbot.chat.said import Ask
from bisectbot.errors import UserError
from bisectbot.jobs import wire
from bisectbot.jobs.assignment import BuildRecipe
from bisectbot.service import commands
from bisectbot.service.people import asks, rights, trials
from bisectbot.service.people.asks import Quote, Target, Wanted
from bisectbot.service.people.trials import COMPARE, TEST, Trial
from bisectbot.source.patch import patched
from bisectbot.store.database import now
from bisectbot.store.tables import Bisection, Finding, Report

MOST_MORE = 500
"""Runs that a bisection may get more at a time."""
_RANGE = re.compile(r"(.+?)\.\.(.+)")
_ID = re.compile(r"[BQNRU]\d{1,18}", re.IGNORECASE)
_MESSAGE = re.compile(r"(?:https?://\S+?/|mid:|<)?([\w.+=%$!*-]{1,200}@[\w.-]{1,200}?)(?:/raw|/|>)?", re.ASCII)


def bisect(ask: Ask) -> Answer:
    """Quote a bisection; order it if it is cheap or confirmed."""
    good, bad, target = _bisection_meant(ask)
    quoted = asks.quote(ask.context, target, good, bad)
    cost = _quote_lines(ask, quoted)
    ask.asker.arguments.update(good=good, bad=bad, kpi=target.kpi_name, group=target.group)
    if _too_much(ask, quoted.host_s):
        hours = ask.context.config.chat.confirm_host_hours
        head = f"that is {_hours(quoted.host_s)} of {target.group}, more than {hours:g}: say it again with `confirm`"
        return Answer(head, cost, private=True)
    request, bisection, new = asks.order_bisection(ask.context, ask.asker, quoted, ask.limits)
    head = f"{bisection}: {quoted.steps} steps, about {_hours(quoted.host_s)} of {target.group}"
    if not new:
        head = f"{bisection} is what you asked for a moment ago; `status {bisection}` tells how it goes"
    link = telling.link(ask.context, f"bisections/{bisection}")
    return Answer(head, (*cost, f"cancel {bisection} stops it"), link=link, follow=request)


def _bisection_meant(ask: Ask) -> tuple[str, str, Target]:
    """Good and bad end (40 hex digits) and the benchmark: as given, or those of the report that is spoken of."""
    good, bad = ask.command.option("good"), ask.command.option("bad")
    kpi = suite = report = ""
    for word in ask.words:
        if match := _RANGE.fullmatch(word):
            good, bad = match.groups()
        elif re.fullmatch(r"R\d+", word, re.IGNORECASE):
            report = word.upper()
        elif "." in word:
            kpi = word
        else:
            suite = word
    report = report or ("" if good or bad else ask.said.report)
    if report:
        row = bisection_of(ask, report)
        with ask.context.database.read() as session:
            found = session.get_one(Bisection, row)
            target = Target(
                found.kpi_id, found.kpi.name, found.job.name, found.job.group.name, found.tree,
                found.branch.name if found.branch else "",
            )  # fmt: skip
            return found.good, found.bad, target
    if not good or not bad:
        raise UserError("bisect between what? say `bisect METRIC good=REV bad=REV`, or reply to a report")
    ends = asks.revision(ask.context, good), asks.revision(ask.context, bad)
    return *ends, asks.target(ask.context, _wanted(ask, kpi, suite), ends[1])


def bisection_of(ask: Ask, report: str) -> int:
    """The bisection that a report came from."""
    with ask.context.database.read() as session:
        query = select(Finding.bisection_id).where(Finding.report_id == commands.number(report, "R"))
        found = session.execute(query.order_by(Finding.id).limit(1)).scalar_one_or_none()
    if found is None:
        raise UserError(f"there is no report {report.upper()}")
    return found


def _wanted(ask: Ask, kpi: str, suite: str) -> Wanted:
    option = ask.command.option
    kpi, _, group = (option("kpi") or kpi).partition("@")
    return Wanted(
        kpi, option("suite") or suite, option("job"), option("host") or group, option("tree"), option("branch")
    )


def _quote_lines(ask: Ask, quoted: Quote) -> tuple[str, ...]:
    with ask.context.database.read() as session:
        time = now(session)
    clock = ask.context.clock
    start = time + clock.real(quoted.starts_in_s)
    end = start + clock.real(quoted.wall_s)
    return (
        f"{quoted.commits} commits, {quoted.good[:12]} to {quoted.bad[:12]}; {quoted.measured} already measured",
        f"{quoted.ahead} requests ahead, start ~{_moment(start)}, end ~{_moment(end)} UTC",
    )


def _moment(at: float) -> str:
    return dt.datetime.fromtimestamp(at, dt.UTC).strftime("%b %d %H:%M")


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} host hours"


def _too_much(ask: Ask, host_s: float) -> bool:
    return not ask.confirmed and not ask.operator and host_s > ask.context.config.chat.confirm_host_hours * 3600


def compare(ask: Ask) -> Answer:
    """Measure two commits beside each other."""
    words, kpi, revisions = list(ask.words), "", []
    if len(words) == 1 and (match := _RANGE.fullmatch(words[0])):
        revisions = list(match.groups())
    else:
        revisions, rest = words[:2], words[2:]
        kpi = rest[0] if rest else ""
    if len(revisions) != 2:
        raise UserError("compare what? say `compare REV REV`, with suite=, host= or a metric if there are several")
    shas = [asks.revision(ask.context, word) for word in revisions]
    target = asks.target(ask.context, _wanted(ask, kpi if "." in kpi else "", "" if "." in kpi else kpi), shas[1])
    columns = tuple((word[:40], sha) for word, sha in zip(revisions, shas, strict=True))
    trial = Trial(columns, target.kpi, trials.recipe_of(ask.context, target), _runs(ask, 2, trials.MOST_RUNS))
    return _order(ask, COMPARE, trial, target.group)


def test(ask: Ask) -> Answer:
    """Measure a patch, or a branch, on top of a report's culprit or of a commit, beside both."""
    report = next((word.upper() for word in ask.words if re.fullmatch(r"R\d+", word, re.IGNORECASE)), ask.said.report)
    base = ask.command.option("base")
    culprit = asks.revision(ask.context, base) if base else rights.commit_of(ask.context, report)
    if not culprit:
        raise UserError("on top of what? say `test base=REV`, or `test R12` for a report's commit")
    parent = ask.context.mirror.git.resolve(f"{culprit}^")
    tested, title = _tested(ask, culprit)
    if report and not base:
        kpi, recipe, group = job_of(ask, report)
    else:
        option = ask.command.option
        wanted = Wanted(option("kpi"), option("suite"), option("job"), option("host"), option("tree"))
        target = asks.target(ask.context, wanted, culprit)
        kpi, recipe, group = target.kpi, trials.recipe_of(ask.context, target), target.group
    name = "base" if base else "culprit"
    columns = (("parent", parent), (name, culprit), (f"{name} + {title}", tested))
    return _order(ask, TEST, Trial(columns, kpi, recipe, _runs(ask, 2, trials.MOST_RUNS), report), group)


def _tested(ask: Ask, culprit: str) -> tuple[str, str]:
    """The commit that is to be tested, and what to call it."""
    if branch := ask.command.option("branch"):
        return asks.revision(ask.context, branch), "branch"
    patch = ask.said.patch
    named = next((word for word in ask.words if "@" in word), "")
    if named:
        match = _MESSAGE.fullmatch(named)
        if not match:
            raise UserError(f"{named[:80]!r} names no mail; give its Message-ID or its address in an archive")
        patch = ask.fetch(match[1])
    return patched(ask.context.mirror.git, culprit, patch), "patch"


def job_of(ask: Ask, report: str) -> tuple[int, BuildRecipe, str]:
    row = bisection_of(ask, report)
    with ask.context.database.read() as session:
        found = session.get_one(Bisection, row)
        return found.kpi_id, wire.from_plain(BuildRecipe, found.recipe), found.job.group.name


def _runs(ask: Ask, least: int, most: int) -> int:
    text = ask.command.option("runs") or str(trials.RUNS)
    if not re.fullmatch(r"\d{1,3}", text, re.ASCII) or not least <= int(text) <= most:
        raise UserError(f"runs={text[:20]}: a number from {least} to {most}")
    return int(text)


def _order(ask: Ask, kind: str, trial: Trial, group: str) -> Answer:
    cost = trials.trial_cost(ask.context, trial)
    ask.asker.arguments.update(columns=[list(column) for column in trial.columns], runs=trial.runs, group=group)
    what = ", ".join(f"{title} {sha[:12]}" for title, sha in trial.columns)
    if _too_much(ask, cost):
        hours = ask.context.config.chat.confirm_host_hours
        head = f"that is {_hours(cost)} of {group}, more than {hours:g}: say it again with `confirm`"
        return Answer(head, (what,), private=True)
    request, new = trials.order_trial(ask.context, ask.asker, kind, trial, ask.limits)
    head = f"{request}: {trial.runs} runs each on {group}, about {_hours(cost)}"
    if not new:
        head = f"{request} is what you asked for a moment ago; `status {request}` tells how it goes"
    return Answer(head, (what, f"cancel {request} stops it"), follow=request)


def cancel(ask: Ask) -> Answer:
    """Stop something."""
    why = ask.command.text or "no reason given"
    return Answer(commands.cancel(ask.context, ask.asker, _id(ask), f"{why} ({ask.person.name})"))


def retry(ask: Ask) -> Answer:
    """Run something that failed again, or give the undecided commits of a bisection more runs."""
    word = _id(ask)
    if not ask.command.option("runs"):
        return Answer(commands.retry(ask.context, ask.asker, word))
    more = asks.quote_more(ask.context, word, _runs(ask, 1, MOST_MORE))
    ask.asker.arguments.update(bisection=f"B{more.bisection}", runs=more.runs, host_s=more.host_s, group=more.group)
    head = f"{word}: {more.runs} runs more for {more.undecided} undecided commits"
    cost = f"up to {_hours(more.host_s)} of {more.group}"
    if _too_much(ask, more.host_s):
        hours = ask.context.config.chat.confirm_host_hours
        return Answer(f"{head} take {cost}, more than {hours:g}: say it again with `confirm`", private=True)
    request, new = asks.order_more(ask.context, ask.asker, more, ask.limits)
    if not new:
        return Answer(f"{word} has got them a moment ago; `status {word}` tells how it goes", follow=request)
    link = telling.link(ask.context, f"bisections/{word}")
    return Answer(f"{head}, {cost}", (f"cancel {word} stops it",), link=link, follow=request)


def _id(ask: Ask) -> str:
    word = ask.about()
    if not _ID.fullmatch(word):
        raise UserError(f"{word[:20]!r} is no id; give one such as B7, Q3 or N51")
    return word


def commit_meant(ask: Ask) -> str:
    """The commit that a command is about, for the question whose code it is; "" if it names none."""
    command = ask.command
    for word in (*ask.words, ask.said.report):
        if _ID.fullmatch(word):
            return rights.commit_of(ask.context, word)
    named = command.option("base") or command.option("bad")
    if not named and command.verb == "compare" and len(ask.words) >= 2:
        named = ask.words[1]
    if not named and command.verb == "bisect":
        named = next((match[2] for word in ask.words if (match := _RANGE.fullmatch(word))), "")
    return asks.revision(ask.context, named) if named else ""


def report_row(ask: Ask) -> Report:
    """The report that a command names. Raises UserError if there is none."""
    with ask.context.database.read() as session:
        return commands.row_of(session, Report, ask.about(), "R")


HANDLERS = {"bisect": bisect, "compare": compare, "test": test, "cancel": cancel, "retry": retry}
