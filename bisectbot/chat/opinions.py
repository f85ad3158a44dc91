"""What people say of reports, and of what they want to hear; what operators do with hosts."""

from __future__ import annotations

import re

from bisectbot.chat import asking
from bisectbot.chat.answer import Answer
from bisectbot.chat.said import Ask
from bisectbot.errors import UserError
from bisectbot.service import commands
from bisectbot.service.commands import row_of
from bisectbot.service.people import asks, trials, wishes
from bisectbot.service.people import status as states
from bisectbot.service.people.trials import COMPARE, Trial
from bisectbot.store.tables import HostState, Judged, Report
from bisectbot.yamlfile import seconds

_COMMIT = re.compile(r"\b[0-9a-f]{7,40}\b")


def wrong(ask: Ask) -> Answer:
    """The report is wrong: recorded, and a commit that is named instead is measured beside its parent."""
    _judge(ask, Judged.WRONG, ask.command.text)
    head = f"R{ask.report()} is recorded as wrong; who got it by mail is told so in its thread"
    named = _COMMIT.search(ask.command.text)
    if not named:
        return Answer(head, ("name the commit that you think did it, and I test it: `wrong R… effect is in COMMIT`",))
    sha = asks.revision(ask.context, named[0])
    kpi, recipe, group = asking.job_of(ask, ask.about())
    columns = (("its parent", ask.context.mirror.git.resolve(f"{sha}^")), (sha[:12], sha))
    request, _ = trials.order_trial(
        ask.context, ask.asker, COMPARE, Trial(columns, kpi, recipe, trials.RUNS, ask.about()), ask.limits
    )
    return Answer(head, (f"{request} measures {sha[:12]} beside its parent on {group}",), follow=request)


def accept(ask: Ask) -> Answer:
    """The new level is the expected one."""
    _judge(ask, Judged.ACCEPTED, ask.command.text)
    count = wishes.accept_steps(ask.context, ask.report())
    return Answer(
        f"R{ask.report()} is accepted: no more mail for this step",
        (f"{count} steps take their new level as the usual one",),
    )


def fix(ask: Ask) -> Answer:
    """What mends it: a commit, or the title of one that is to come."""
    if not ask.command.text:
        raise UserError("fixed by what? say `fix R12 COMMIT`, or the title that the fix will have")
    what = ask.command.text
    if _COMMIT.fullmatch(what):
        what = asks.revision(ask.context, what)
    _judge(ask, Judged.FIXED, what)
    return Answer(f"R{ask.report()} is recorded as fixed by {what[:80]}")


def dup(ask: Ask) -> Answer:
    """The same as another report."""
    if len(ask.words) != 2:
        raise UserError("the same as which? say `dup R12 R9`")
    with ask.context.database.read() as session:
        other = row_of(session, Report, ask.words[1], "R").id
    if other == ask.report():
        raise UserError(f"R{other} is no duplicate of itself")
    _judge(ask, Judged.DUPLICATE, f"R{other}")
    return Answer(f"R{ask.report()} is recorded as the same as R{other}")


def _judge(ask: Ask, judged: Judged, why: str) -> None:
    commands.judge(ask.context, ask.asker, f"R{ask.report()}", judged, why)


def approve(ask: Ask) -> Answer:
    """Send a held report."""
    return Answer(commands.approve(ask.context, ask.asker, ask.about()))


def reject(ask: Ask) -> Answer:
    """Never send it."""
    if not ask.command.text:
        raise UserError("why? say `reject R12 WHY`; the reason is kept")
    return Answer(commands.reject(ask.context, ask.asker, ask.about(), ask.command.text))


def subscribe(ask: Ask) -> Answer:
    """Be told of what fits a rule."""
    rule = wishes.rule(dict(ask.command.options))
    word = wishes.subscribe(ask.context, ask.person.name, ask.person.mails, rule)
    told = ", ".join(f"{key}={value}" for key, value in sorted(rule.items())) or "everything"
    return Answer(f"{word}: you are told of {told}", (f"unsubscribe {word} ends it",), private=True)


def unsubscribe(ask: Ask) -> Answer:
    """End a subscription."""
    if not ask.words:
        raise UserError("which? say `unsubscribe W12`")
    wishes.unsubscribe(ask.context, ask.person.name, ask.words[0])
    return Answer(f"{ask.words[0].upper()} is ended", private=True)


def mute(ask: Ask) -> Answer:
    """No mail to whoever says it; of one suite, or for a time, if they say so."""
    suite, span = ask.command.option("suite"), ask.words[0] if ask.words else ""
    try:
        lasts = seconds(span) if span else None
    except ValueError as error:
        raise UserError(f"mute for how long? {error}") from None
    until = wishes.mute(ask.context, ask.person.name, ask.person.mails, suite, lasts)
    what = f"of {suite} " if suite else ""
    return Answer(f"no mail {what}to you {f'until {until} UTC' if until else 'until you say unmute'}", private=True)


def unmute(ask: Ask) -> Answer:
    """Mail again."""
    wishes.unmute(ask.context, ask.person.name, ask.person.mails)
    return Answer("mail to you is on again", private=True)


def pause(ask: Ask) -> Answer:
    """A host, or a group of them, takes nothing new; what runs there ends."""
    return _set(ask, _hosts_named(ask), HostState.MAINTENANCE, "takes nothing new")


def drain(ask: Ask) -> Answer:
    """As `pause`, for all hosts unless some are named."""
    found = _hosts_named(ask) if ask.command.option("host") else list(states.hosts(ask.context))
    return _set(ask, found, HostState.MAINTENANCE, "takes nothing new")


def resume(ask: Ask) -> Answer:
    """A host works again."""
    return _set(ask, _hosts_named(ask), HostState.GOOD, "works again")


def _hosts_named(ask: Ask) -> list[states.HostStatus]:
    wanted = ask.command.option("host")
    found = [h for h in states.hosts(ask.context) if wanted and (wanted in {h.name, h.group} or wanted in h.group)]
    if not found:
        known = ", ".join(h.name for h in states.hosts(ask.context)[:10])
        raise UserError(f"which host? say host=NAME; there are: {known}")
    return found


def _set(ask: Ask, hosts: list[states.HostStatus], state: HostState, what: str) -> Answer:
    for host in hosts:
        commands.set_host(ask.context, ask.asker, host.name, state, ask.command.text or ask.command.verb)
    running = [f"{host.run} still runs on {host.name}" for host in hosts if host.run]
    return Answer(f"{', '.join(host.name for host in hosts)} {what}", tuple(running))


HANDLERS = {
    "wrong": wrong, "accept": accept, "fix": fix, "dup": dup, "approve": approve, "reject": reject,
    "subscribe": subscribe, "unsubscribe": unsubscribe, "mute": mute, "unmute": unmute, "pause": pause,
    "resume": resume, "drain": drain,
}  # fmt: skip
