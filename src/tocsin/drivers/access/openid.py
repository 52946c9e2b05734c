"""The way from settings to tokens that sign in. Imported where an issuer is configured: the library
for keys takes a tenth of a second to load."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin.access.sign_in.issuer import Issuer
from tocsin.access.sign_in.openid import OpenId
from tocsin.drivers.access.openid_keys import OpenIdKeys, RefreshOptions
from tocsin.drivers.logger import WriteLog


class OpenIdSignIn(OpenId):
    """What signs in by tokens of these issuers, with the task that keeps their keys fresh."""

    def __init__(
        self, issuers: Sequence[Issuer], note: WriteLog, options: RefreshOptions | None = None
    ) -> None:
        """Raises BadSetting if a file of authorities cannot be used."""
        self._source = OpenIdKeys(issuers, note, options)
        super().__init__(issuers, self._source)

    async def start(self) -> None:
        """To be called before the listeners open: waits a few seconds for the keys at most."""
        await self._source.start()

    async def close(self) -> None:
        await self._source.close()
