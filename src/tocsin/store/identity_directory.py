"""The directory of an identity: two keys and a certificate, which its owner alone may read."""

from __future__ import annotations

import os
import secrets
import stat
import time
from pathlib import Path
from typing import Final

from tocsin.credentials.files import read_private, write_private
from tocsin.credentials.lookup import stored_path
from tocsin.errors import BadCredential
from tocsin.topics.identity import ENTROPY_BYTES, Identity, new_identity, read_identity

SIGNING_KEY: Final = "identity.key"
CERTIFICATE: Final = "identity.pem"
SEALING_KEY: Final = "sealing.key"
FILES: Final = (SIGNING_KEY, CERTIFICATE, SEALING_KEY)

_OTHERS: Final = 0o077


def identity_path(given: str | None = None) -> str:
    """What is given, else TOCSIN_IDENTITY, else `identity` beside the credentials of `login`."""
    named = given or os.environ.get("TOCSIN_IDENTITY")
    return named or os.path.join(os.path.dirname(stored_path()), "identity")


def open_identity(directory: str) -> Identity:
    """The identity that is there. Raises BadCredential."""
    _check(directory)
    signing, certificate, sealing = (_read(directory, name) for name in FILES)
    return read_identity(signing, certificate, sealing, directory)


def open_or_make_identity(
    directory: str, *, name: str, institution: str = "", is_tdn: bool = False
) -> Identity:
    """The same; a new one, which has signed its own certificate, where there is none."""
    if _has_any(directory):  # of which one is missing: that is damage, and it says so
        return open_identity(directory)
    made = new_identity(
        secrets.token_bytes(ENTROPY_BYTES),
        time.time_ns(),
        name=name,
        institution=institution,
        is_tdn=is_tdn,
    )
    keep_identity(directory, made)
    return made


def keep_identity(directory: str, identity: Identity) -> None:
    """Write its files. Raises BadCredential if there is an identity already."""
    path = Path(directory)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BadCredential(
            f"the directory {directory} cannot be made: {error.strerror}",
            remedy="Name another one with --identity.",
        ) from None
    _check(directory)
    if _has_any(directory):
        raise BadCredential(
            f"there is an identity in {directory} already",
            remedy="Name another directory, or use the identity that is there.",
        )
    write_private(str(path / SEALING_KEY), identity.sealing_pem.decode())
    write_private(str(path / CERTIFICATE), identity.certificate_pem.decode())
    write_private(str(path / SIGNING_KEY), identity.signing_pem.decode())


def _has_any(directory: str) -> bool:
    return any(os.path.lexists(os.path.join(directory, name)) for name in FILES)


def _read(directory: str, name: str) -> bytes:
    return read_private(os.path.join(directory, name), "the file of an identity")[0].encode()


def _check(directory: str) -> None:
    try:
        found = os.stat(directory)
    except OSError as error:
        raise BadCredential(
            f"the identity {directory} cannot be read: {error.strerror}",
            remedy="Name the directory that has it with --identity or TOCSIN_IDENTITY.",
        ) from None
    if not stat.S_ISDIR(found.st_mode):
        raise BadCredential(
            f"the identity {directory} is not a directory",
            remedy="Name the directory with the three files of an identity.",
        )
    if found.st_mode & _OTHERS:
        raise BadCredential(
            f"the directory {directory} of an identity can be used by others (its mode is "
            f"{stat.S_IMODE(found.st_mode):04o})",
            remedy=f"chmod 700 {directory}",
        )
