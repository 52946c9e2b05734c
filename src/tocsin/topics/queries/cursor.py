"""Where a search stopped, as text that whoever asked brings back and cannot read.

It is encrypted, because places in the catalog count advertisements that he may not see, and bound
to the query and to what he may see, so that it is of no use for another.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from tocsin.errors import BadTopicQuery
from tocsin.topics.queries.access_paths import Key
from tocsin.topics.queries.query import Query

KEY_BYTES: Final = 64


class Position(msgspec.Struct, frozen=True, array_like=True):
    """The last candidate that was looked at. Without a key nothing of the path was."""

    label: int
    choice: int = 0
    path: int = 0
    key: Key | None = None
    advert: int = 0


_encode: Final = msgspec.msgpack.Encoder().encode
_read: Final = msgspec.msgpack.Decoder(Position).decode


def write_cursor(key: bytes, query: Query, labels: frozenset[str], position: Position) -> str:
    sealed = AESSIV(key).encrypt(_encode(position), [_context(query, labels)])
    return base64.urlsafe_b64encode(sealed).decode("ascii")


def read_cursor(key: bytes, query: Query, labels: frozenset[str]) -> Position | None:
    """Where to go on; None at the beginning. BadTopicQuery if the cursor is not of this query."""
    if not query.cursor:
        return None
    try:
        sealed = base64.b64decode(query.cursor, altchars=b"-_", validate=True)
        return _read(AESSIV(key).decrypt(sealed, [_context(query, labels)]))
    except (InvalidTag, ValueError, binascii.Error, msgspec.DecodeError):
        raise BadTopicQuery(
            "the cursor does not belong to this query, or the node has been restarted",
            remedy="Begin again without a cursor.",
        ) from None


def _context(query: Query, labels: frozenset[str]) -> bytes:
    plain = msgspec.structs.replace(query, cursor="", limit=1)
    return hashlib.sha256(msgspec.json.encode((plain, sorted(labels)))).digest()
