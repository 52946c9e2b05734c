"""ServiceState: what services beside the broker find again after a crash, by names of theirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tocsin.broker.commit.numbering import Applied
from tocsin.broker.commit.pending_change import PendingChange
from tocsin.broker.effects import Token
from tocsin.broker.state.state import State
from tocsin.errors import TooMuchKept
from tocsin.event.stored import StateChange

KEY_BYTES_MAX = 1_024
# What a service keeps, and how there are fewer of them.
_ENTRIES = {
    "blackboard": ("publishers", "Unregister some: DELETE /blackboard/publishers/ID"),
    "directory": ("directory entries", "Withdraw some: DELETE /directory/ID"),
    "discovery": ("resources", "Withdraw some: DELETE /resources/ID"),
    "registration": ("registered publishers", "Destroy some registrations"),
    "upstream": ("subscriptions to publishers", "Destroy some registrations"),
    "wsrm": ("reliable sequences", "Terminate some of them"),
}


class _Used(NamedTuple):
    """What one service keeps."""

    values: int = 0
    size: int = 0  # in bytes

    def plus(self, key: str, value: bytes | None, former: bytes | None) -> _Used:
        """With this value in place of the former one; None is no value."""
        values = self.values + (value is not None) - (former is not None)
        return _Used(values, self.size + _size(key, value) - _size(key, former))


class ServiceState:
    """Bytes by name: on disk with the next commit, and then in memory too.

    What is before the first slash of a name is the service. Each has limits of its own, so that
    none can take the room of another.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._values: dict[str, bytes] = {}
        self._used: dict[str, _Used] = {}
        # How it will be when the commit that is being put together is on disk.
        self._staged = StateChange()
        self._staged_used: dict[str, _Used] = {}

    def restore(self, values: dict[str, bytes]) -> None:
        for key, value in values.items():
            self._apply(key, value)

    def under(self, prefix: str) -> dict[str, bytes]:
        """Those whose name begins so."""
        return {key: value for key, value in self._values.items() if key.startswith(prefix)}

    def has(self, key: str) -> bool:
        return key in self._values

    def keep(
        self, values: Mapping[str, bytes | None], token: Token, *, is_limited: bool = True
    ) -> None:
        """Keep these values, or nothing any more under a name whose value is None: all of them, or
        none. `is_limited`: not of a service that limits by itself how much it keeps."""
        longest = max((len(key.encode()) for key in values), default=1)
        if "" in values or longest > KEY_BYTES_MAX:
            raise TooMuchKept(
                f"a key has {0 if '' in values else longest} bytes",
                remedy=f"Use 1 to {KEY_BYTES_MAX} bytes.",
            )
        refusal: TooMuchKept | None = None

        def stage() -> None:
            nonlocal refusal
            refusal = self._stage(values, is_limited=is_limited)

        def apply(_applied: Applied, _now_ns: int) -> object:
            for key, value in values.items() if refusal is None else ():
                self._apply(key, value)
            return refusal

        self._state.pending.append(PendingChange(token, stage, apply))

    def _stage(self, values: Mapping[str, bytes | None], *, is_limited: bool) -> TooMuchKept | None:
        """Put them into the next commit, unless that would be too much."""
        change, options = self._state.unsaved, self._state.options
        if self._staged is not change:
            self._staged = change
            self._staged_used = dict(self._used)
        states = change.service_state
        used: dict[str, _Used] = {}
        for key, value in values.items():
            service = service_of(key)
            former = states[key] if key in states else self._values.get(key)
            before = used.get(service) or self._staged_used.get(service, _Used())
            used[service] = before.plus(key, value, former)
        for service, after in used.items() if is_limited else ():
            before = self._staged_used.get(service, _Used())
            grows = after.values > before.values or after.size > before.size
            if grows and (after.values > options.kept_max or after.size > options.kept_bytes_max):
                return _too_much(service, before)
        states.update(values)
        self._staged_used |= used
        return None

    def _apply(self, key: str, value: bytes | None) -> None:
        service = service_of(key)
        used = self._used.get(service, _Used())
        self._used[service] = used.plus(key, value, self._values.get(key))
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value


def service_of(key: str) -> str:
    """Whose value this is; those without a slash are of one service together."""
    return key.partition("/")[0] if "/" in key else ""


def _too_much(service: str, used: _Used) -> TooMuchKept:
    words, remedy = _ENTRIES.get(service, ("entries", "End some of them"))
    return TooMuchKept(
        f"service state is full: {used.values:,} {words} with {used.size:,} bytes",
        remedy=f"{remedy}, or let them expire.",
    )


def _size(key: str, value: bytes | None) -> int:
    return 0 if value is None else len(key) + len(value)
