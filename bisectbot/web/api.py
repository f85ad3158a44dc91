"""The JSON API for people's programs: what `bisectbot status --json` says, over HTTP."""

from __future__ import annotations

from fastapi import APIRouter

from bisectbot.service.people import status as state
from bisectbot.web.given import Ctx

router = APIRouter(prefix="/api", tags=["status"])


@router.get("/status")
def status(context: Ctx) -> state.Overview:
    """Trees, hosts, what is open, the newest bisections and reports."""
    return state.overview(context)


@router.get("/bisections/{bisection}")
def bisection(bisection: str, context: Ctx) -> state.BisectionStatus:
    """One bisection: its experiments as they came, the likeliest candidates, what is still to come."""
    return state.bisection_status(context, bisection)


@router.get("/hosts")
def hosts(context: Ctx) -> list[state.HostStatus]:
    """Every host: its state, what it does."""
    return state.hosts(context)
