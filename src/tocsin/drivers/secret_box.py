"""SecretBox: seals what must be sent as it is one day, and must not lie on the disk as it is.

AES-256-GCM with a key in the data directory, made at first use. Each text is sealed for somebody,
and opens for nobody else: one that was moved to the subscription of another sink stays shut.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from tocsin.access.session import internal
from tocsin.broker.port import BrokerPort
from tocsin.credentials.files import read_private, write_private
from tocsin.drivers.logger import WriteLog
from tocsin.errors import BadCredential, NoSuchSubscription
from tocsin.event.subscription import Change
from tocsin.wire.cloudevents.webhook import SIGNING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_NAME: Final = "secrets.key"
KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12  # NIST SP 800-38D, 8.2.2: at random, for at most 2^32 texts of one key
PREFIX: Final = "sealed.1."
SERVICE: Final = "secrets"  # who seals what former versions kept in clear


class SecretBox:
    """The secrets of one data directory. The key is read when it is needed."""

    def __init__(self, directory: str | Path) -> None:
        self._path = Path(directory) / KEY_NAME
        self._cipher: AESGCM | None = None

    def seal(self, text: str, about: str) -> str:
        """What may be kept of a text that is for `about`."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = self._opened(is_new=True).encrypt(nonce, text.encode(), about.encode())
        return PREFIX + base64.urlsafe_b64encode(nonce + sealed).decode("ascii")

    def unseal(self, sealed: str, about: str) -> str:
        """The text; one that was kept in clear, before there was a key, is given as it is.

        Raises BadCredential if it was sealed with another key, or for somebody else.
        """
        if not is_sealed(sealed):
            return sealed
        cipher = self._opened(is_new=False)
        from cryptography.exceptions import InvalidTag

        try:
            data = base64.urlsafe_b64decode(sealed.removeprefix(PREFIX))
            return cipher.decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], about.encode()).decode()
        except (InvalidTag, binascii.Error, ValueError):
            raise BadCredential(
                f"a secret cannot be opened with {self._path}: it was sealed with another key, or "
                "for another sink",
                remedy="Put the key back that was there when it was set, or set it again.",
            ) from None

    def _opened(self, *, is_new: bool) -> AESGCM:
        if self._cipher is None:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            if is_new and not self._path.exists():
                fresh = secrets.token_bytes(KEY_BYTES)
                write_private(str(self._path), base64.b64encode(fresh).decode("ascii") + "\n")
            self._cipher = AESGCM(self._key())
        return self._cipher

    def _key(self) -> bytes:
        text, _ = read_private(str(self._path), "the key of the secrets")
        try:
            key = base64.b64decode(text.strip(), validate=True)
        except binascii.Error:
            key = b""
        if len(key) != KEY_BYTES:
            raise BadCredential(
                f"{self._path} holds no key", remedy="Put back the one that was there."
            )
        return key


def is_sealed(text: str) -> bool:
    return text.startswith(PREFIX)


async def seal_former_secrets(port: BrokerPort, box: SecretBox, note: WriteLog) -> None:
    """Seal what former versions kept in clear; a subscription that ends meanwhile is left alone."""
    session, count = internal(SERVICE), 0
    for view in port.views(session):
        subscription = view.subscription
        secret = subscription.config.secret
        if secret is None or is_sealed(secret):
            continue
        sealed = box.seal(secret, SIGNING)
        config = msgspec.structs.replace(subscription.config, secret=sealed)
        with suppress(NoSuchSubscription):
            await port.change(session, subscription.id, Change(config=config), subscription.kind)
            count += 1
    if count:
        note("info", "signing secrets that were kept in clear are sealed", subscriptions=count)
