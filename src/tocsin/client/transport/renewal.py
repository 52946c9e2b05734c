"""An access token of an OpenID issuer is exchanged before it expires."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tocsin.client.transport.address import Address

if TYPE_CHECKING:
    from tocsin.client.transport.runtime import Runtime

EARLY_S = 30.0  # so that a token holds still when it arrives


async def renew_if_due(runtime: Runtime, address: Address) -> None:
    """Have the stored login for this broker renewed, if it ends now and can be."""
    credentials = address.credentials
    login = None if credentials is None else credentials.login()
    if login is None or login.renewal is None or login.expires_at_s is None:
        return
    if time.time() >= login.expires_at_s - EARLY_S:
        from tocsin.client.transport.openid import renew

        assert credentials is not None
        await runtime.call(renew, credentials)
