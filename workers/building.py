"""One build, from the claim to the delivery."""

from __future__ import annotations

import os
from pathlib import Path

from bisectbot.errors import InfraError, Untestable, UserError
from bisectbot.jobs.assignment import BuildAssignment, BuildClaim, Heartbeat
from bisectbot.results.delivery import BuildDelivery, Outcome
from bisectbot.source.git import Checkout
from workers import builders
from workers.builders import Built, Workshop
from workers.client import token
from workers.lease import Lease
from workers.process import Stop
from workers.station import Station


def take_build(station: Station) -> str:
    """Claim a build, make it and deliver it; what happened, in a word or two for the log.

    Raises InfraError when the server cannot be asked.
    """
    client = station.client()
    station.spool.deliver(client)
    with station.measuring() as hold, station.desk() as desk, station.slot() as slot:
        assignment = client.claim_build(BuildClaim(f"{station.name}@{os.uname().nodename}", station.instance))
        if assignment is None:
            return "nothing to build"
        beat = Heartbeat("build", assignment.build, assignment.token)
        with Lease(station.client(), beat, assignment.lease_s, station.clock) as lease:
            delivery, files = _build(station, assignment, slot, desk, lease.stop, hold)
            if lease.stop:
                return f"build {assignment.build} stopped: {lease.stop.reason}"
            station.spool.put(delivery, files)
    station.spool.deliver(client)
    return f"build {assignment.build} {delivery.outcome}"


def _build(
    station: Station, assignment: BuildAssignment, slot: str, desk: Path, stop: Stop, hold: tuple[int, ...]
) -> tuple[BuildDelivery, dict[str, Path]]:
    began = station.clock.monotonic()
    build_log = desk / "build.log"
    outcome, message, built = Outcome.DONE, "", None
    try:
        tree = _checked_out(station, assignment, slot)
        keep, cache = station.folder / "out" / slot, station.folder
        jobs = max(1, len(os.sched_getaffinity(0)) // station.config.worker.slots)
        shop = Workshop(tree, desk, keep, cache, station.owner, station.clock, stop, hold, jobs)
        built = builders.find(assignment.recipe.builder).build(assignment.recipe, shop, build_log)
    except Untestable as error:
        outcome, message = Outcome.UNTESTABLE, str(error)
    except (InfraError, UserError, OSError) as error:
        outcome, message = Outcome.INFRA, str(error)
    files = {"build.log": build_log} if build_log.exists() else {}
    if built:
        files["archive"] = built.archive
    built = built or Built(desk, "")
    delivery = BuildDelivery(
        build=assignment.build,
        token=assignment.token,
        outcome=outcome,
        message=message,
        signature=built.signature,
        compiled=built.compiled,
        seconds=round(station.clock.monotonic() - began, 3),
    )
    return delivery, files


def _checked_out(station: Station, assignment: BuildAssignment, slot: str) -> Path:
    """The work tree at the assignment's commit. Raises InfraError, UserError for an address git must not be given."""
    secret = token(station.config)
    header = {f"http.{station.config.server.url}.extraHeader": f"Authorization: Bearer {secret}"}
    checkout = Checkout(station.folder / "git", config=header)
    checkout.fetch(assignment.fetch_url, assignment.commit)
    return checkout.tree(assignment.commit, slot)
