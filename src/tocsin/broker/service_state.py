"""ServiceState: what services beside the broker find again after a crash, by names of theirs."""

from __future__ import annotations

from tocsin.broker.effects import Token
from tocsin.broker.numbering import Applied
from tocsin.broker.pending_change import PendingChange
from tocsin.broker.state import State
from tocsin.errors import TooMuchKept
from tocsin.event.stored import StateChange

KEY_BYTES_MAX = 1_024


class ServiceState:
    """Bytes by name: on disk with the next commit, and then in memory too."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._values: dict[str, bytes] = {}
        self._bytes = 0
        # How it will be when the commit that is being put together is on disk.
        self._staged = StateChange()
        self._staged_values = 0
        self._staged_bytes = 0

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

        def stage() -> None:
            nonlocal refusal
            refusal = self._stage(key, value)

        def apply(_applied: Applied, _now_ns: int) -> object:
            if refusal is None:
                self._apply(key, value)
            return refusal

        self._state.pending.append(PendingChange(token, stage, apply))

    def _stage(self, key: str, value: bytes | None) -> TooMuchKept | None:
        """Put it into the next commit, unless that would be too much."""
        change, options = self._state.unsaved, self._state.options
        if self._staged is not change:
            self._staged = change
            self._staged_values, self._staged_bytes = len(self._values), self._bytes
        states = change.service_state
        former = states[key] if key in states else self._values.get(key)
        values = self._staged_values + (value is not None) - (former is not None)
        size = self._staged_bytes + _size(key, value) - _size(key, former)
        if value is not None and (values > options.kept_max or size > options.kept_bytes_max):
            return TooMuchKept(
                f"{self._staged_values} things with {self._staged_bytes} bytes are kept already",
                remedy="End some registrations, sequences or boxes, or let them expire.",
            )
        states[key] = value
        self._staged_values, self._staged_bytes = values, size
        return None

    def _apply(self, key: str, value: bytes | None) -> None:
        self._bytes += _size(key, value) - _size(key, self._values.get(key))
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value


def _size(key: str, value: bytes | None) -> int:
    return 0 if value is None else len(key) + len(value)
