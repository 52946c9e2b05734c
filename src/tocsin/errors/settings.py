"""T0: settings."""

from __future__ import annotations

from tocsin.errors.root import TocsinError


class BadSetting(TocsinError):
    """A setting in a file, the environment or a flag is unknown, or has an invalid value.

    The message names the key, where it was found and the nearest key that exists. `tocsin config
    show` lists every setting with its value and where that value came from.
    """

    code = "T001"
    exit_code = 2


class NotOpenToTheWorld(TocsinError):
    """The broker was asked to listen beyond this machine with `auth.mode = open`.

    Everybody who can reach the address could then publish, subscribe, read and manage. Leave the
    mode out, so that clients must sign in, or say `--open` to accept it.
    """

    code = "T002"
    exit_code = 2
