"""Git over HTTP, read-only, for builders on other machines: they fetch what they build from the server's mirror.

This is git's "smart" protocol (gitprotocol-http): one question for the refs, then requests that ``git upload-pack``
answers, each in a process of its own. Only refs under refs/bisectbot/build/ are offered.
"""

from __future__ import annotations

import re
import zlib
from typing import Annotated

from fastapi import APIRouter, Depends, Header, HTTPException, Response
from fastapi.responses import StreamingResponse

from bisectbot.source.git import PUBLISHED, Git
from bisectbot.web.given import Ctx
from bisectbot.web.workers import BODY_LIMIT, Body, authorised

SERVICE = "git-upload-pack"
_HEADERS = {"Cache-Control": "no-cache"}
_OFFERED = {"transfer.hideRefs": "refs/", "uploadpack.hideRefs": f"!{PUBLISHED}"}  # the later one is stronger

router = APIRouter(prefix="/git", dependencies=[Depends(authorised)], include_in_schema=False)
Protocol = Annotated[str, Header(alias="Git-Protocol")]


@router.get("/info/refs")
def refs(context: Ctx, service: str = "", protocol: Protocol = "") -> Response:
    """What the mirror offers (or, in version 2, what it is able to)."""
    if service != SERVICE:
        raise HTTPException(403, f"this is read-only git: the only service is {SERVICE}")
    told = _mirror(context, protocol).run_bytes("upload-pack", "--stateless-rpc", "--advertise-refs", ".")
    if not _version_2(protocol):
        line = f"# service={SERVICE}\n"
        told = f"{len(line) + 4:04x}{line}0000".encode() + told
    return Response(told, media_type=f"application/x-{SERVICE}-advertisement", headers=_HEADERS)


@router.post(f"/{SERVICE}")
def upload_pack(
    context: Ctx,
    body: Body,
    protocol: Protocol = "",
    encoding: Annotated[str, Header(alias="Content-Encoding")] = "",
) -> Response:
    """One request of a fetch; the pack is sent as git makes it."""
    answer = _mirror(context, protocol).stream("upload-pack", "--stateless-rpc", ".", input=_plain(body, encoding))
    return StreamingResponse(answer, media_type=f"application/x-{SERVICE}-result", headers=_HEADERS)


def _mirror(context: Ctx, protocol: str) -> Git:
    env = {"GIT_PROTOCOL": "version=2"} if _version_2(protocol) else {}
    return Git(context.mirror.path, config=_OFFERED, env=env)


def _version_2(protocol: str) -> bool:
    return re.search(r"(^|:)version=2(:|$)", protocol) is not None


def _plain(body: bytes, encoding: str) -> bytes:
    """The body unpacked: git compresses long requests."""
    if encoding in {"", "identity"}:
        return body
    if encoding not in {"gzip", "x-gzip"}:
        raise HTTPException(415, f"content encoding {encoding!r} is not understood; send gzip or none")
    unpacker = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)  # gzip's header and trailer
    try:
        plain = unpacker.decompress(body, BODY_LIMIT)
    except zlib.error as error:
        raise HTTPException(400, f"not gzip: {error}") from None
    if not unpacker.eof:
        raise HTTPException(400, f"gzip that is cut off, or more than {BODY_LIMIT} bytes")
    return plain
