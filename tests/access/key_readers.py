"""What reads the keys of issuers, and what it notes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvloop

from access.issuer import OpenIdIssuer
from tocsin.access.sign_in.issuer import Issuer
from tocsin.drivers.access.openid_keys import OpenIdKeys, RefreshOptions

KEYS = "/keys"
# As short as a test needs: asked by itself once in a while, and never twice within `pause_s`.
QUICK = RefreshOptions(every_s=30.0, pause_s=0.05, timeout_s=1.0, start_s=3.0)


class Notes(list[tuple[str, str, dict[str, Any]]]):
    """What was written to the log."""

    def __call__(self, level: str, message: str, **fields: Any) -> None:
        self.append((level, message, fields))

    def reasons(self) -> list[str]:
        return [fields["reason"] for level, _, fields in self if level == "warning"]


@asynccontextmanager
async def reading(
    *issuers: Issuer, notes: Notes | None = None, options: RefreshOptions = QUICK
) -> AsyncIterator[OpenIdKeys]:
    keys = OpenIdKeys(issuers, notes if notes is not None else Notes(), options)
    await keys.start()
    try:
        yield keys
    finally:
        await keys.close()


def named(issuer: OpenIdIssuer, **more: Any) -> Issuer:
    return Issuer(issuer=issuer.url, audience="tocsin", **more)


def why_none(issuer: OpenIdIssuer, **options: Any) -> str:
    """Why an issuer's keys are not taken."""
    notes = Notes()
    told = {"pause_s": 5.0, "timeout_s": 1.0, "start_s": 3.0} | options

    async def start() -> None:
        async with reading(named(issuer), notes=notes, options=RefreshOptions(**told)) as keys:
            assert keys.of(issuer.url) is None

    uvloop.run(start())
    [reason] = notes.reasons()
    return str(reason)
