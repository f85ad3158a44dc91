"""Prometheus metrics, read from the database when asked: nothing is counted twice, nothing lost in a restart."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import func, select

from bisectbot.service.context import Context
from bisectbot.store.database import now
from bisectbot.store.tables import Bisection, BisectionState, Build, BuildState, Host, Outbox, Run, RunState


class StoreCollector(Collector):
    """Open work by state, hosts by state, seconds since each host spoke, mails by state."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def describe(self) -> list[Metric]:
        """Nothing to check for doubles: the names below are all that this collector has."""
        return []

    def collect(self) -> Iterator[Metric]:
        with self._context.database.read() as session:
            open_runs = [state for state in RunState if state.open]
            runs = GaugeMetricFamily("bisectbot_open_runs", "Runs that are still to come", labels=["state"])
            counted = select(Run.state, func.count()).where(Run.state.in_(open_runs)).group_by(Run.state)
            for state, count in session.execute(counted):
                runs.add_metric([state.value], count)
            yield runs
            builds = GaugeMetricFamily("bisectbot_open_builds", "Builds that are still to come", labels=["state"])
            open_builds = [state for state in BuildState if state.open]
            built = select(Build.state, func.count()).where(Build.state.in_(open_builds)).group_by(Build.state)
            for build_state, count in session.execute(built):
                builds.add_metric([build_state.value], count)
            yield builds
            time = now(session)
            hosts = GaugeMetricFamily(
                "bisectbot_host_state", "1 for the state that a host is in", labels=["host", "state"]
            )
            silent = GaugeMetricFamily("bisectbot_host_silent_seconds", "Since the worker last spoke", labels=["host"])
            for host in session.execute(select(Host)).scalars():
                hosts.add_metric([host.name, host.state.value], 1)
                silent.add_metric([host.name], time - host.seen)
            yield hosts
            yield silent
            mails = GaugeMetricFamily("bisectbot_mails", "Mails in the outbox", labels=["state"])
            for mail_state, count in session.execute(select(Outbox.state, func.count()).group_by(Outbox.state)):
                mails.add_metric([mail_state.value], count)
            yield mails
            running = select(func.count()).where(Bisection.state == BisectionState.RUNNING)
            yield GaugeMetricFamily(
                "bisectbot_running_bisections", "Bisections in progress", value=session.execute(running).scalar_one()
            )
