"""Kept: what services beside the broker want to find again after a crash, under names of theirs."""

from __future__ import annotations

from tocsin.broker.effects import Token
from tocsin.broker.state import State
from tocsin.broker.wish import Wish
from tocsin.errors import TooMuchKept
from tocsin.event.stored import Batch

KEY_BYTES_MAX = 1_024


class Kept:
    """Bytes by name: on disk with the next commit, and then in memory too."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._values: dict[str, bytes] = {}
        self._bytes = 0
        # How it will be when the commit that is being put together is on disk.
        self._noted = Batch()
        self._noted_values = 0
        self._noted_bytes = 0

    def restore(self, values: dict[str, bytes]) -> None:
        self._values = dict(values)
        self._bytes = sum(map(_size, values, values.values()))

    def under(self, prefix: str) -> dict[str, bytes]:
        """Those whose name begins so."""
        return {key: value for key, value in self._values.items() if key.startswith(prefix)}

    def keep(self, key: str, value: bytes | None, token: Token) -> None:
        """Keep the value, or nothing any more if it is None."""
        if not 0 < len(key.encode()) <= KEY_BYTES_MAX:
            raise TooMuchKept(
                f"a key has {len(key.encode())} bytes",
                remedy=f"Use 1 to {KEY_BYTES_MAX} bytes.",
            )
        refusal: TooMuchKept | None = None

        def note(_: int) -> None:
            nonlocal refusal
            refusal = self._note(key, value)

        def do(_: int) -> object:
            if refusal is None:
                self._do(key, value)
            return refusal

        self._state.wishes.append(Wish(token, note, do))

    def _note(self, key: str, value: bytes | None) -> TooMuchKept | None:
        """Put it into the next commit, unless that would be too much."""
        batch, options = self._state.unsaved, self._state.options
        if self._noted is not batch:
            self._noted = batch
            self._noted_values, self._noted_bytes = len(self._values), self._bytes
        former = batch.kept[key] if key in batch.kept else self._values.get(key)
        values = self._noted_values + (value is not None) - (former is not None)
        size = self._noted_bytes + _size(key, value) - _size(key, former)
        if value is not None and (values > options.kept_max or size > options.kept_bytes_max):
            return TooMuchKept(
                f"{self._noted_values} things with {self._noted_bytes} bytes are kept already",
                remedy="End some registrations, sequences or boxes, or let them expire.",
            )
        batch.kept[key] = value
        self._noted_values, self._noted_bytes = values, size
        return None

    def _do(self, key: str, value: bytes | None) -> None:
        self._bytes += _size(key, value) - _size(key, self._values.get(key))
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value


def _size(key: str, value: bytes | None) -> int:
    return 0 if value is None else len(key) + len(value)
