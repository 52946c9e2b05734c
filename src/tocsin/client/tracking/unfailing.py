"""never_raises: what goes wrong in telling about a workflow is not the workflow's concern."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from tocsin.client.tracking.telling import Teller

P = ParamSpec("P")

_teller = Teller()


def never_raises(function: Callable[P, None]) -> Callable[P, None]:
    """The function, whose exceptions are told of in the log, once for each kind."""

    @wraps(function)
    def guarded(*arguments: P.args, **named: P.kwargs) -> None:
        try:
            function(*arguments, **named)
        except Exception as error:
            where = function.__qualname__
            _teller.once(f"{where} {type(error)}", f"Nothing was sent by {where}: {error!r}.")

    return guarded
