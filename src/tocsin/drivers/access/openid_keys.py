"""OpenIdKeys: the keys of OpenID Connect issuers, read before they are needed and kept fresh.

Each issuer has a task of its own. Whoever has a token asks for the keys that are here, and never
waits for an issuer. While an issuer is away, or says what cannot be read, its last keys stay.
"""

from __future__ import annotations

import asyncio
import ssl
import traceback
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from tocsin.access.sign_in.issuer import Issuer
from tocsin.access.sign_in.jws import BadKeySet, BadToken, KeySet, json_object, read_key_set
from tocsin.config.openid import is_allowed_url, is_loopback_http
from tocsin.drivers.access.fetch import FetchFailed, fetch
from tocsin.drivers.logger import WriteLog
from tocsin.drivers.tls.contexts import authorities_context

DISCOVERY: Final = "/.well-known/openid-configuration"


@dataclass(frozen=True, slots=True)
class RefreshOptions:
    """How often issuers are asked, how long they may take, and how much they may say."""

    every_s: float = 3_600.0  # by itself
    pause_s: float = 30.0  # between two times at least, whatever tokens come
    timeout_s: float = 5.0  # for one document
    start_s: float = 5.0  # for which the start of the broker waits
    bytes_max: int = 512 << 10  # of one document


class OpenIdKeys:
    """The keys of all configured issuers."""

    def __init__(
        self, issuers: Iterable[Issuer], note: WriteLog, options: RefreshOptions | None = None
    ) -> None:
        """Raises BadSetting if a file of authorities cannot be used."""
        self._options = options or RefreshOptions()
        self._sources = {each.issuer: _Source(each, note, self._options) for each in issuers}
        self._tasks: list[asyncio.Task[None]] = []

    def of(self, issuer: str) -> KeySet | None:
        source = self._sources.get(issuer)
        return None if source is None else source.keys

    def wanted(self, issuer: str) -> None:
        self._sources[issuer].wanted.set()

    async def start(self) -> None:
        """Read the keys of all issuers, and wait a little for that. An issuer that is away keeps
        no broker from starting."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(source.run()) for source in self._sources.values()]
        with suppress(TimeoutError):
            async with asyncio.timeout(self._options.start_s):
                for source in self._sources.values():
                    await source.tried.wait()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class _Source:
    """One issuer, and its keys as they were read last."""

    def __init__(self, issuer: Issuer, note: WriteLog, options: RefreshOptions) -> None:
        self._issuer, self._note, self._options = issuer, note, options
        self._tls = _tls_of(issuer)
        self._document: bytes | None = None  # that the keys were read from
        self._is_failing = False
        self.keys: KeySet | None = None
        self.tried = asyncio.Event()
        self.wanted = asyncio.Event()

    async def run(self) -> None:
        """Read the keys now, and again whenever it is time or somebody wants them."""
        options = self._options
        while True:
            self.wanted.clear()
            await self._refresh()
            self.tried.set()
            await asyncio.sleep(options.pause_s)
            if self._is_failing:
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, options.every_s - options.pause_s)):
                    await self.wanted.wait()

    async def _refresh(self) -> None:
        try:
            document = await self._read()
            if document != self._document:
                self._take(document)
            elif self._is_failing:
                self._say("info", "the keys of the OpenID Connect issuer can be read again")
            self._is_failing = False
        except (FetchFailed, BadKeySet, BadToken) as error:
            self._failed(str(error))
        except Exception as error:  # a bug here must not keep old keys in use for ever
            self._failed("".join(traceback.format_exception(error)))

    def _take(self, document: bytes) -> None:
        keys = read_key_set(document)
        self._document, self.keys = document, keys
        self._say("info", "the keys of the OpenID Connect issuer were read", keys=len(keys.keys))
        if keys.skipped:
            self._say(
                "info",
                "keys of the OpenID Connect issuer that are not used",
                skipped="; ".join(keys.skipped),
            )

    def _failed(self, reason: str) -> None:
        """Said once, and not every half minute."""
        if self._is_failing:
            return
        self._is_failing = True
        what = (
            "nobody can sign in with its tokens until they can be"
            if self.keys is None
            else "those that were read before stay in use"
        )
        message = f"the keys of the OpenID Connect issuer cannot be read; {what}"
        self._say("warning", message, reason=reason)

    def _say(self, level: str, message: str, **fields: object) -> None:
        self._note(level, message, issuer=self._issuer.issuer, **fields)

    async def _read(self) -> bytes:
        """The issuer's key set, from where its discovery document says that it is."""
        own = self._issuer.issuer
        found = json_object(await self._get(own.rstrip("/") + DISCOVERY), "discovery document")
        if found.get("issuer") != own:
            raise FetchFailed(
                f"its discovery document is of the issuer {str(found.get('issuer'))[:200]!r}"
            )
        address = found.get("jwks_uri")
        loopback = is_loopback_http(urlsplit(own))
        if not isinstance(address, str) or not is_allowed_url(address, loopback=loopback):
            raise FetchFailed(
                f"its discovery document has the jwks_uri {str(address)[:200]!r}, "
                "which is not an https address"
            )
        return await self._get(address)

    async def _get(self, url: str) -> bytes:
        options = self._options
        return await fetch(url, self._tls, bytes_max=options.bytes_max, timeout_s=options.timeout_s)


def _tls_of(issuer: Issuer) -> ssl.SSLContext | None:
    if is_loopback_http(urlsplit(issuer.issuer)) and not issuer.ca_file:
        return None
    return authorities_context("openid.ca_file", issuer.ca_file)
