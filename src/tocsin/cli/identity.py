"""The identity that a command signs with: one of its own is made on first use."""

from __future__ import annotations

import getpass
import os
from argparse import Namespace

from tocsin.cli.render import say
from tocsin.store.identity_directory import identity_path, open_or_make_identity
from tocsin.topics.identity import NAME_CHARS_MAX, Identity


def identity_of(arguments: Namespace) -> Identity:
    """Of `--identity`, TOCSIN_IDENTITY, or the one of whoever runs this. Raises BadCredential."""
    path = identity_path(arguments.identity)
    is_new = not os.path.lexists(path)
    found = open_or_make_identity(path, name=_user()[:NAME_CHARS_MAX])
    if is_new:
        say(f"made an identity for {found.entity.name} in {path}: {found.eid}")
    return found


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may have no name for its user
        return f"user {os.getuid()}"
