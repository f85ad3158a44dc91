"""From a push to a mail, every step the real one, on both databases."""

from __future__ import annotations

import email
import email.policy
import re
from dataclasses import replace

from sqlalchemy import select

from bisectbot.jobs.assignment import BuildAssignment, RunAssignment
from bisectbot.results.delivery import BuildDelivery, RunDelivery
from bisectbot.service.commands import submit_bisection
from bisectbot.service.people import status
from bisectbot.service.people.requests import BisectArguments
from bisectbot.service.search.replay import replay
from bisectbot.store.tables import (
    Bisection,
    BisectionState,
    Experiment,
    ExperimentState,
    Outbox,
    Purpose,
    Report,
    Run,
    Step,
    StepState,
)
from tests.service.conftest import MakeLab
from tests.support.lab import KPI, Lab


def push_line(lab: Lab, shas: list[str], every: int = 1) -> None:
    """Push head after head, each once the one before has been measured."""
    for sha in shas[:: every if every > 0 else 1]:
        lab.upstream.push(sha)
        lab.work()


def test_a_slow_commit_is_named_and_its_author_told(lab: Lab) -> None:
    shas = lab.upstream.line([100.0] * 24 + [90.0] * 18)
    push_line(lab, shas, every=3)
    with lab.context.database.read() as session:
        bisection = session.execute(select(Bisection)).scalar_one()
        stored = session.execute(select(Report)).scalar_one()
        mail = session.execute(select(Outbox)).scalar_one()
        assert session.execute(select(Step.state)).scalars().all() == [StepState.CLOSED]
    seen = status.bisection_status(lab.context, f"B{bisection.id}")
    assert seen.line.verdict == "culprit"
    assert seen.line.culprit == shas[24]
    assert stored.sha == shas[24]
    message = email.message_from_bytes(mail.raw, policy=email.policy.default)
    assert message["To"] == "Ada Byron <ada@example.org>"
    assert message["Message-ID"] == stored.message_id == mail.message_id
    assert f"{shas[24][:10]}:  {KPI}" in stored.subject
    assert "regression" in stored.subject
    text = message.get_content()
    assert shas[24] in text
    [ends] = re.findall(r"All runs of the search: between -([\d.]+)% and -([\d.]+)%, with 95 %", text)
    assert 7.0 < float(ends[0]) < 10.0 < float(ends[1]) < 13.0
    assert f'{shas[23][:10]} ("change 23")' in text
    assert replay(lab.context, f"B{bisection.id}").agrees


def test_the_same_change_is_reported_once_however_often_it_is_found(lab: Lab) -> None:
    shas = lab.upstream.line([100.0] * 9 + [90.0] * 6)
    push_line(lab, shas)
    for _ in range(3):
        lab.tick()
    with lab.context.database.read() as session:
        assert len(session.execute(select(Report)).scalars().all()) == 1
        assert len(session.execute(select(Outbox)).scalars().all()) == 1
        assert len(session.execute(select(Bisection)).scalars().all()) == 1


def test_noise_alone_costs_no_bisection(lab: Lab) -> None:
    push_line(lab, lab.upstream.line([100.0] * 16))
    with lab.context.database.read() as session:
        assert session.execute(select(Bisection)).scalars().all() == []


def test_a_culprit_that_is_the_only_candidate_is_confirmed(lab: Lab) -> None:
    shas = lab.upstream.line([100.0] * 9 + [90.0] * 6)
    push_line(lab, shas)
    with lab.context.database.read() as session:
        assert session.execute(select(Report.sha)).scalar_one() == shas[9]


def test_a_block_that_does_not_build_is_skipped_and_blamed_with_its_successor(lab: Lab) -> None:
    levels: list[float | None] = [100.0] * 10
    shas = lab.upstream.line([*levels, None, None, None, *[90.0] * 7])
    for sha in [*shas[:10], *shas[14:]]:
        lab.upstream.push(sha)
        lab.work()
    with lab.context.database.read() as session:
        bisection = session.execute(select(Bisection)).scalar_one()
        skipped = session.execute(select(Experiment.sha).where(Experiment.state == ExperimentState.SKIPPED)).scalars()
        assert set(skipped) <= set(shas[10:13])
        stored = session.execute(select(Report)).scalar_one()
        mail = session.execute(select(Outbox).where(Outbox.kind == "report")).scalar_one()
    seen = status.bisection_status(lab.context, f"B{bisection.id}")
    assert seen.line.verdict == "culprit_set"
    assert stored.sha in shas[10:14]
    assert stored.state.value == "held"  # nobody is blamed by name before a person has looked
    assert mail.state.value == "awaiting_approval"


def test_an_alarm_that_was_noise_is_refuted_by_a_few_runs(lab: Lab) -> None:
    shas = lab.upstream.line([100.0] * 18)
    push_line(lab, shas[:10])
    with_luck = lab.measured

    def unlucky(given: object) -> object:
        delivery = with_luck(given)  # type: ignore[arg-type]
        purpose = _purpose(lab, delivery.run)
        samples = tuple((name, value - 8.0 if purpose == 40 else value) for name, value in delivery.samples)
        return type(delivery)(**{**delivery.__dict__, "samples": samples})

    lab.measured = unlucky  # type: ignore[method-assign,assignment]
    push_line(lab, shas[10:])
    with lab.context.database.read() as session:
        states = session.execute(select(Step.state)).scalars().all()
        assert states
        assert set(states) <= {StepState.REFUTED, StepState.WITHDRAWN}
        assert session.execute(select(Bisection)).scalars().all() == []


def _purpose(lab: Lab, run: int) -> int:
    with lab.context.database.read() as session:
        return session.get_one(Run, run).purpose


def test_automatic_bisections_wait_when_the_day_s_host_hours_are_used_up(make: MakeLab) -> None:
    lab = make({"bisection": {"daily_budget": 0}})
    shas = lab.upstream.line([100.0] * 9 + [90.0] * 8)
    push_line(lab, shas)
    with lab.context.database.read() as session:
        waiting = session.execute(select(Bisection)).scalar_one()
        assert waiting.state is BisectionState.WAITING
        assert "used up" in waiting.reason
        assert session.execute(select(Experiment)).scalars().all() == []
    submit_bisection(lab.context, "somebody", BisectArguments("demo", "main", shas[0], shas[-1]))
    lab.work()
    with lab.context.database.read() as session:  # what a person asks for is not capped
        asked = session.execute(select(Bisection).where(~Bisection.automatic)).scalar_one()
        assert asked.state is BisectionState.DONE


def test_heads_of_the_same_build_are_not_measured_again(lab: Lab) -> None:
    levels = [100.0] * 10 + [92.0] * 8
    shas = lab.upstream.line(levels)
    plain = lab.built

    def same(given: BuildAssignment) -> BuildDelivery:
        delivery = plain(given)
        return replace(delivery, signature="5" * 64) if delivery.signature else delivery

    lab.built = same  # type: ignore[method-assign]
    push_line(lab, shas)
    with lab.context.database.read() as session:
        steps = session.execute(select(Step)).scalars().all()
        assert {(step.state, step.reason) for step in steps} == {
            (StepState.REFUTED, "its heads are all the same build")
        }
        assert session.execute(select(Run).where(Run.step_id.is_not(None))).scalars().all() == []


def test_a_step_that_a_re_test_missed_comes_back_when_it_is_plain(lab: Lab) -> None:
    shas = lab.upstream.line([100.0] * 10 + [95.0] * 14)
    plain = lab.measured

    def missed(given: RunAssignment) -> RunDelivery:
        """The first re-test sees the old level on both sides."""
        delivery = plain(given)
        if _purpose(lab, delivery.run) != Purpose.RETEST or _re_tests(lab) > 1:
            return delivery
        return replace(delivery, samples=((KPI, lab.rng.gauss(100.0, 1.0)),))

    lab.measured = missed  # type: ignore[method-assign]
    push_line(lab, shas)
    with lab.context.database.read() as session:
        states = session.execute(select(Step.state).order_by(Step.id)).scalars().all()
        assert states[0] is StepState.REFUTED
        assert states[-1] is StepState.CLOSED
        assert session.execute(select(Report.sha)).scalar_one() == shas[10]


def _re_tests(lab: Lab) -> int:
    with lab.context.database.read() as session:
        return len(set(session.execute(select(Run.step_id).where(Run.step_id.is_not(None))).scalars()))
