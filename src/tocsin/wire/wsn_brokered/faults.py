"""Faults of WS-BrokeredNotification; those of WS-BaseNotification are in `wire/wsn`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tocsin.errors import TocsinError
from tocsin.wire.soap.fault import SoapFault, fault_of
from tocsin.wire.soap.names import LIFETIME12
from tocsin.wire.wsn.faults import FAULT_ACTION, Faults
from tocsin.wire.wsn.operations import Operation
from tocsin.wire.wsn_brokered.messages import NAMESPACES

REJECTED: Final = "PublisherRegistrationRejectedFault"
FAILED: Final = "PublisherRegistrationFailedFault"
NOT_DESTROYED: Final = "ResourceNotDestroyedFault"

_OWN: Final = frozenset({REJECTED, FAILED, NOT_DESTROYED})
# 1.2 has a name of its own for fewer conditions.
_OLDER: Final[Mapping[str, str]] = {"UnacceptableInitialTerminationTimeFault": FAILED}


class BrokeredFaults(Faults):
    """The faults of one version, with one timestamp."""

    __slots__ = ()

    def fault(
        self,
        name: str,
        reason: str,
        *,
        facts: bytes = b"",
        error: TocsinError | None = None,
        operation: Operation | None = None,
    ) -> SoapFault:
        if self.spec != "wsn13" and name in _OLDER:
            name, facts = _OLDER[name], b""
        if name not in _OWN:
            return super().fault(name, reason, facts=facts, error=error, operation=operation)
        code = "Sender" if error is None else fault_of(error).code
        return SoapFault(
            code,
            reason,
            detail=self._detail(self._own_namespace(name), name, reason, facts, error),
            action=FAULT_ACTION if self.spec == "wsn13" else None,
        )

    def _own_namespace(self, name: str) -> str:
        is_about_lifetime = name == NOT_DESTROYED and self.spec == "wsn12"
        return LIFETIME12 if is_about_lifetime else NAMESPACES[self.spec]

    def rejected(self, error: TocsinError) -> SoapFault:
        """The registration is none that the broker may have."""
        return self.fault(REJECTED, f"{error.problem}. {error.remedy}", error=error)

    def failed(self, error: TocsinError) -> SoapFault:
        """The broker could not register, though it would."""
        return self.fault(FAILED, f"{error.problem}. {error.remedy}", error=error)

    def not_destroyed(self, error: TocsinError) -> SoapFault:
        """The registration could not be ended, and goes on."""
        return self.fault(NOT_DESTROYED, f"{error.problem}. {error.remedy}", error=error)
