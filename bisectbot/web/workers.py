"""The workers' endpoint: claims, heartbeats, artifacts, deliveries. Workers never open the database."""

from __future__ import annotations

import hmac
import tempfile
from collections.abc import Iterator
from typing import IO, Annotated

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import FileResponse
from starlette.concurrency import run_in_threadpool

from bisectbot.errors import InfraError
from bisectbot.jobs import wire
from bisectbot.jobs.assignment import BuildClaim, Heartbeat, RunClaim
from bisectbot.results.delivery import BuildDelivery, RunDelivery
from bisectbot.service import claims, deliveries
from bisectbot.service.context import Context
from bisectbot.web.given import Ctx

CHUNK = 1 << 20
BODY_LIMIT = 64 << 20
"""Bytes of a claim or a delivery; what is larger belongs into an artifact."""


def authorised(request: Request) -> None:
    """Only holders of the workers' secret come in."""
    context: Context = request.app.state.context
    try:
        secret = context.config.token_path.read_text(encoding="utf-8").strip()
    except OSError:
        raise HTTPException(503, "the server has no worker token; see deploy/README.md") from None
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not secret or not hmac.compare_digest(given.encode(), secret.encode()):
        raise HTTPException(401, "the worker's token is missing or wrong")


async def _body(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_LIMIT:
            raise HTTPException(413, f"more than {BODY_LIMIT} bytes; upload it as an artifact")
    return body


Body = Annotated[bytes, Depends(_body)]
router = APIRouter(prefix="/worker", dependencies=[Depends(authorised)], include_in_schema=False)


def _json(value: object | None) -> Response:
    if value is None:
        return Response(status_code=204)
    return Response(wire.encode(value), media_type="application/json")


@router.post("/claim/run")
def claim_run(context: Ctx, body: Body) -> Response:
    return _json(claims.claim_run(context, wire.decode(RunClaim, body)))


@router.post("/claim/build")
def claim_build(context: Ctx, body: Body) -> Response:
    return _json(claims.claim_build(context, wire.decode(BuildClaim, body)))


@router.post("/heartbeat")
def heartbeat(context: Ctx, body: Body) -> Response:
    return _json(claims.heartbeat(context, wire.decode(Heartbeat, body)))


@router.post("/deliver/run")
def deliver_run(context: Ctx, body: Body) -> Response:
    return _receipt(deliveries.deliver_run(context, wire.decode(RunDelivery, body)))


@router.post("/deliver/build")
def deliver_build(context: Ctx, body: Body) -> Response:
    return _receipt(deliveries.deliver_build(context, wire.decode(BuildDelivery, body)))


def _receipt(receipt: deliveries.Receipt) -> Response:
    return Response(status_code=204 if receipt is deliveries.Receipt.ACCEPTED else 410)


@router.put("/artifact/{sha256}")
async def put_artifact(sha256: str, request: Request, context: Ctx) -> Response:
    if not context.artifacts.has(sha256):
        try:
            with tempfile.TemporaryFile() as file:
                async for chunk in request.stream():
                    await run_in_threadpool(file.write, chunk)
                file.seek(0)
                await run_in_threadpool(context.artifacts.put, _chunks(file), sha256)
        except OSError as error:
            raise InfraError(f"an upload does not fit into {tempfile.gettempdir()}: {error.strerror}") from error
    return Response(status_code=204)


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(CHUNK):
        yield chunk


@router.api_route("/artifact/{sha256}", methods=["GET", "HEAD"])
def get_artifact(sha256: str, context: Ctx) -> Response:
    path = context.artifacts.path(sha256)
    if not path.is_file():
        raise HTTPException(404, "no such artifact")
    return FileResponse(path, media_type="application/octet-stream")
