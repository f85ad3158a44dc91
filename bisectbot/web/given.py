"""What every request is given: the service's context."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from bisectbot.service.context import Context


def context_of(request: Request) -> Context:
    """The context of the application that the request came to."""
    context: Context = request.app.state.context
    return context


Ctx = Annotated[Context, Depends(context_of)]
