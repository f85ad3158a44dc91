"""The demo: an example history is pushed to a watched repository, and the service does the rest."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import yaml
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session
from rich.console import Console
from rich.text import Text

from bisectbot.config import Config, load
from bisectbot.demo.calibrate import Noise, calibrate
from bisectbot.demo.history import BRANCH, Made, make
from bisectbot.serve import Tree
from bisectbot.service.context import Context, open_context
from bisectbot.service.people import status as state
from bisectbot.service.send import readable
from bisectbot.source.git import Git

HOSTS = {"lkp-icl-2sp2-1": "lkp-icl-2sp2", "lkp-ivb-2ep1-1": "lkp-ivb-2ep1"}
LIMIT_S = 175.0
"""The demo ends after this, found or not."""
QUIET_S = 10.0
"""With nothing left to do for so long, nothing more will be found."""
SETTLED = {"sent", "awaiting_approval"}
"""What the mail of a report can come to."""
EXCLUSIVE = "demo"


@dataclass(frozen=True)
class Ending:
    """How the demo ended; ids are 40 hex digits, ``mail`` is a path, "" if there was none."""

    planted: str
    found: str
    state: str
    probability: float | None
    runs: int
    mail: str

    @property
    def right(self) -> bool:
        return self.found == self.planted


class Sink:
    """A mail server on loopback that keeps what it is given."""

    def __init__(self) -> None:
        self.mails: list[bytes] = []
        self._controller = Controller(self, hostname="127.0.0.1", port=free_port())

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802, ARG002
        """Take a mail (aiosmtpd calls this)."""
        content = envelope.content
        self.mails.append(content if isinstance(content, bytes) else (content or "").encode())
        return "250 kept"

    @property
    def port(self) -> int:
        return int(self._controller.port)

    def start(self) -> None:
        self._controller.start()

    def stop(self) -> None:
        self._controller.stop()


class Display:
    """What is happening: one line for each event, and in a terminal a live line below."""

    def __init__(self, *, quiet: bool) -> None:
        self.console = Console(stderr=quiet, highlight=False, markup=False, emoji=False)
        self._started = time.monotonic()
        self._status = self.console.status("") if self.console.is_terminal else None
        if self._status is not None:
            self._status.start()

    def say(self, text: str) -> None:
        since = f"{time.monotonic() - self._started:5.1f} s"
        self.console.print(Text.assemble((since, "dim"), "  ", text), soft_wrap=True)

    def now(self, text: str) -> None:
        if self._status is not None:
            self._status.update(Text(text))

    def end(self) -> None:
        if self._status is not None:
            self._status.stop()


def demo(folder: Path, seed: int, *, serve: bool, as_json: bool) -> Ending:
    """Run the demo in ``folder`` (empty or new); returns how it ended."""
    display = Display(quiet=as_json)
    upstream = folder / "upstream.git"
    folder.mkdir(parents=True, exist_ok=True)
    made = make(upstream, seed)
    display.say(f"{made.commits} commits made in {upstream} (seed {seed})")
    service_cpus, run_cpus = split_cpus()
    noise = calibrate(upstream, made.heads[0], made.effect, run_cpus)
    _tell_noise(display, made, noise)
    sink = Sink()
    path = write_config(folder, upstream, noise.lookups, sink.port, run_cpus)
    config = load(path)
    return perform(display, config, path, made, sink, service_cpus, serve=serve, as_json=as_json)


def perform(
    display: Display,
    config: Config,
    path: Path,
    made: Made,
    sink: Sink,
    cpus: list[int],
    limit_s: float = LIMIT_S,
    *,
    serve: bool,
    as_json: bool,
) -> Ending:
    """Let the service that ``config`` (at ``path``) describes find what was planted; ``cpus`` are what it runs on."""
    sink.start()
    context = open_context(config)
    context.database.upgrade()
    tree = Tree(config, path, affinity=set(cpus))
    try:
        tree.start()
        ending = Play(context, made, sink, display, tree, limit_s).until_the_mail()
        conclude(display, config, made, ending, sink, as_json=as_json)
        if serve:
            display.say(f"the service stays up at {config.server.url} (status: /api/status); Ctrl-C ends it")
            tree.watch()
    except KeyboardInterrupt:
        display.say("stopped")
        raise SystemExit(130) from None
    finally:
        display.end()
        tree.end()
        sink.stop()
    return ending


def split_cpus() -> tuple[list[int], list[int]]:
    """CPUs for the service and for measuring: apart where there are two."""
    cpus = sorted(os.sched_getaffinity(0))
    return (cpus[:-1], cpus[-1:]) if len(cpus) > 1 else (cpus, cpus)


def _tell_noise(display: Display, made: Made, noise: Noise) -> None:
    effect = 100 * made.effect
    cost = 100 * (1 - 1 / (1 + made.effect))
    display.say(
        f"A/A runs: one run of {noise.lookups} lookups varies by {noise.robust:.2f} % (plain {noise.plain:.2f} %)"
    )
    display.say(
        f"planted: a lookup costs {effect:.1f} % more, so {cost:.1f} % fewer per second: "
        f"{cost / noise.robust:.1f} sigma of one run"
    )


def write_config(folder: Path, upstream: Path, lookups: int, smtp_port: int, cpus: list[int]) -> Path:
    """The demo's configuration: an ordinary one."""
    port = free_port()
    config = {
        "state": "state",
        "tick": "0.2s",
        "server": {"listen": f"127.0.0.1:{port}", "url": f"http://127.0.0.1:{port}"},
        "mail": {
            "sender": "bisectbot <bisectbot@demo.example.org>",
            "operators": ["operator@demo.example.org"],
            "policy": "author",
            "smtp": {"host": "127.0.0.1", "port": smtp_port},
        },
        "trees": {
            "demo": {
                "url": str(upstream.absolute()),
                "interval": "0.3s",
                "branches": {BRANCH: {"build": "bench", "jobs": ["store"]}},
            }
        },
        "builds": {"bench": {"command": "make -s bench", "outputs": ["bench"], "timeout": "60s"}},
        "jobs": {
            "store": {
                "command": f"./bench {lookups}",
                "groups": sorted(set(HOSTS.values())),
                "runs": 3,
                "timeout": "30s",
                "kpis": {"store.lookups_per_sec": {"unit": "lookups/s", "better": "more"}},
            }
        },
        "costs": {"build": "1s", "boot": 0, "run": "0.3s", "boot_failure": "1s", "builders": 1},
        "worker": {"state": "workers", "exclusive": EXCLUSIVE},
    }
    (folder / "hosts").mkdir(exist_ok=True)
    for host, group in HOSTS.items():
        driver = {"group": group, "driver": "local", "local": {"cpus": cpus, "exclusive": EXCLUSIVE}}
        (folder / "hosts" / f"{host}.yaml").write_text(yaml.safe_dump(driver, sort_keys=False))
    path = folder / "bisectbot.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return path


class Play:
    """Pushes head after head, as a developer would, and tells what the service makes of it."""

    def __init__(self, context: Context, made: Made, sink: Sink, display: Display, tree: Tree, limit_s: float) -> None:
        self.context = context
        self.made = made
        self.sink = sink
        self.display = display
        self.tree = tree
        self.limit_s = limit_s
        self.upstream = Git(Path(context.config.trees["demo"].url))
        self.pushed = 0
        self.told: set[str] = set()
        self.searches: dict[str, state.BisectionLine] = {}
        self.runs_done = 0

    def until_the_mail(self) -> Ending:
        """Push while the service keeps up; end with the report, when nothing is left to do, or at the limit."""
        now = time.monotonic()
        deadline, quiet_since = now + self.limit_s, now
        seen = state.overview(self.context)
        while time.monotonic() < deadline:
            self.tree.look()
            seen = state.overview(self.context)
            self._tell(seen)
            searches = self._follow(seen)
            if not any(line.culprit for line in searches):
                self._push(seen)
            if any(report.mail in SETTLED for report in seen.reports):
                break
            if _busy(seen) or self.pushed < len(self.made.heads):
                quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since > QUIET_S:
                break
            time.sleep(0.25)
        return self._ending(self._follow(seen))

    def _push(self, seen: state.Overview) -> None:
        known = sum(tree.heads for tree in seen.trees)
        if _busy(seen) or known < self.pushed or self.pushed == len(self.made.heads):
            return
        self.upstream.run("update-ref", f"refs/heads/{BRANCH}", self.made.heads[self.pushed])
        self.pushed += 1
        self.display.say(f"push {self.pushed} of {len(self.made.heads)}: {self.made.heads[self.pushed - 1][:12]}")

    def _tell(self, seen: state.Overview) -> None:
        for step in seen.steps:
            percent = f"{step.percent:+.1f} %" if step.percent is not None else "?"
            self._once(
                f"step {step.id} {step.state}: {percent} at {step.commit[:12]}, {step.series}"
                + (f" ({step.reason})" if step.reason else "")
            )
        for row in seen.bisections:
            self._once(f"bisection {row.id}: {row.kpi} on {row.group}, {row.good[:12]}..{row.bad[:12]}")
        for report in seen.reports:
            self._once(f"report {report.id}: {report.subject} [{report.state}, mail {report.mail or 'none'}]")
        work = ", ".join(f"{count} runs {name}" for name, count in seen.runs.items()) or "waiting"
        self.display.now(f"{self.pushed} heads pushed, {work}")

    def _follow(self, seen: state.Overview) -> list[state.BisectionLine]:
        """Tell what the searches have measured; returns how each stands, oldest first.

        A search is recomputed from its records when it is looked at, which would disturb what is being measured: that
        happens only when there is something new.
        """
        before, self.runs_done = self.runs_done, state.runs_done(self.context)
        for seen_line in reversed(seen.bisections):
            known = self.searches.get(seen_line.id)
            if known and known.verdict == seen_line.verdict and (known.verdict or before == self.runs_done):
                continue
            search = state.bisection_status(self.context, seen_line.id)
            line = self.searches[seen_line.id] = search.line
            for row in search.experiments:
                if row.state != "pending" and (row.values or row.reason):
                    result = " ".join(f"{value:.5g}" for value in row.values) or row.reason.splitlines()[0][:60]
                    self._once(f"  {line.id} #{row.number} {row.commit[:12]} {row.subject}: {result}")
            for check in search.checks:
                self._once(f"  {line.id} {check}")
            if line.verdict and not line.culprit:
                self._once(f"bisection {line.id}: {line.verdict.replace('_', ' ')}: {line.reason}")
        return list(self.searches.values())

    def _once(self, text: str) -> None:
        if text not in self.told:
            self.told.add(text)
            self.display.say(text)

    def _ending(self, searches: list[state.BisectionLine]) -> Ending:
        mails = sorted((self.context.config.state / "mails").glob("*.eml"))
        runs = state.runs_done(self.context)
        line = next((line for line in searches if line.culprit), next(iter(searches), None))
        if line is None:
            return Ending(self.made.culprit, "", "no step found", None, runs, "")
        return Ending(
            planted=self.made.culprit,
            found=line.culprit,
            state=line.verdict or line.state,
            probability=line.probability,
            runs=runs,
            mail=str(mails[0].absolute()) if mails else "",
        )


def _busy(seen: state.Overview) -> bool:
    """Whether the service still has something to do."""
    searching = any(row.state in {"waiting", "running"} for row in seen.bisections)
    suspected = any(step.state in {"suspected", "real"} for step in seen.steps)
    return bool(seen.heads_waiting or seen.builds or any(seen.runs.values()) or searching or suspected)


def conclude(display: Display, config: Config, made: Made, ending: Ending, sink: Sink, *, as_json: bool) -> None:
    display.end()
    out = display.console
    for mail in sink.mails[:1]:
        out.print("\nThe mail\n", style="bold")
        out.print(readable(mail), soft_wrap=True)
    verdict = "right" if ending.right else "WRONG" if ending.found else f"none ({ending.state})"
    probability = f", probability {ending.probability:.3f}" if ending.probability is not None else ""
    out.print(f"planted  {made.culprit}")
    out.print(f"found    {ending.found or '-'}  {verdict}{probability}, after {ending.runs} runs")
    out.print(f"database {config.database_url.removeprefix('sqlite:///')}")
    out.print(f"logs     {config.state / 'logs'}")
    out.print(f"mail     {ending.mail or '-'}")
    if as_json:
        sys.stdout.write(json.dumps(ending.__dict__) + "\n")
        sys.stdout.flush()


def free_port() -> int:
    """A TCP port on loopback that nobody listens on now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
