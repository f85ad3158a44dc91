"""Leaving with one click (RFC 8058): mail programs POST to a person's own link, people see a page that asks.

A GET changes nothing: programs that look at links must not unsubscribe anybody. No cookie, no login, no redirect: the
link itself is the proof.
"""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, PackageLoader

from bisectbot.service.context import Context
from bisectbot.service.post import optouts, rules
from bisectbot.web.given import Ctx

router = APIRouter(prefix="/unsubscribe", include_in_schema=False)
_pages = Environment(loader=PackageLoader("bisectbot.web"), autoescape=True)
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",  # the link must not leak to another page
    "X-Robots-Tag": "noindex",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'"
    ),
}


@router.get("")
@router.get("/")
def whose(context: Ctx) -> Response:
    """The address that stands in mail to lists: it is nobody's, so the page tells how to leave."""
    return _page("", context)


@router.get("/{token}")
def ask(context: Ctx, token: str) -> Response:
    """Ask the person who followed their link."""
    address = optouts.owner(context, token)
    return _page("ask", context, address=address) if address is not None else _page("", context, 404)


@router.post("/{token}")
def leave(context: Ctx, token: str) -> Response:
    """Unsubscribe, whether a mail program or the page's button says so; as often as it likes."""
    address = optouts.leave(context, token)
    return _page("done", context, address=address) if address is not None else _page("", context, 404)


def _page(what: str, context: Context, status: int = 200, address: str | None = None) -> Response:
    html = _pages.get_template("unsubscribe.html").render(
        what=what, address=address, sender=rules.identity(context).address
    )
    return HTMLResponse(html, status, headers=_HEADERS)
