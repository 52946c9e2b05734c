"""Faults of WS-BaseNotification: a SOAP fault whose detail is a WS-BaseFault with its name.

Conditions are named as 1.3 names them. The versions before have fewer names, and 1.2 keeps the end
of subscriptions in WS-ResourceLifetime; `Faults` finds what a version calls a condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from tocsin.errors import (
    BadFilter,
    BadSubscription,
    BadTopic,
    BadTopicPattern,
    NoSuchBox,
    NoSuchSubscription,
    SinkRefused,
    TocsinError,
    TooManySubscriptions,
)
from tocsin.event.instant import LATEST_NS, rfc3339
from tocsin.wire.soap.fault import Code, SoapFault, detail_of, escaped, fault_of, quoted
from tocsin.wire.soap.names import (
    BASE_FAULTS12,
    BASE_FAULTS13,
    LIFETIME12,
    NAMESPACE_OF,
    RESOURCE13,
)
from tocsin.wire.wsn.messages import Name
from tocsin.wire.wsn.operations import Operation

FAULT_ACTION: Final = "http://docs.oasis-open.org/wsn/fault"
RESOURCE_FAULT_ACTION: Final = "http://docs.oasis-open.org/wsrf/fault"
BASE_FAULTS10: Final = "http://www.ibm.com/xmlns/stdwip/web-services/WS-BaseFaults"

_BASE: Final = {"wsn13": BASE_FAULTS13, "wsn12": BASE_FAULTS12, "wsn10": BASE_FAULTS10}

NAMES13: Final = frozenset(
    {
        "SubscribeCreationFailedFault",
        "InvalidFilterFault",
        "TopicExpressionDialectUnknownFault",
        "InvalidTopicExpressionFault",
        "TopicNotSupportedFault",
        "MultipleTopicsSpecifiedFault",
        "InvalidProducerPropertiesExpressionFault",
        "InvalidMessageContentExpressionFault",
        "UnrecognizedPolicyRequestFault",
        "UnsupportedPolicyRequestFault",
        "NotifyMessageNotSupportedFault",
        "UnacceptableInitialTerminationTimeFault",
        "UnacceptableTerminationTimeFault",
        "NoCurrentMessageOnTopicFault",
        "UnableToGetMessagesFault",
        "UnableToCreatePullPointFault",
        "UnableToDestroyPullPointFault",
        "UnableToDestroySubscriptionFault",
        "PauseFailedFault",
        "ResumeFailedFault",
        "ResourceUnknownFault",
    }
)

# What 1.2 and 1.0 call it, where they have another name for it.
_OLDER: Final[Mapping[str, str]] = {
    "InvalidFilterFault": "SubscribeCreationFailedFault",
    "TopicExpressionDialectUnknownFault": "TopicPathDialectUnknownFault",
    "MultipleTopicsSpecifiedFault": "InvalidTopicExpressionFault",
    "InvalidProducerPropertiesExpressionFault": "SubscribeCreationFailedFault",
    "InvalidMessageContentExpressionFault": "SubscribeCreationFailedFault",
    "UnrecognizedPolicyRequestFault": "SubscribeCreationFailedFault",
    "UnsupportedPolicyRequestFault": "SubscribeCreationFailedFault",
    "NotifyMessageNotSupportedFault": "SubscribeCreationFailedFault",
    "UnacceptableInitialTerminationTimeFault": "SubscribeCreationFailedFault",
    "UnacceptableTerminationTimeFault": "TerminationTimeChangeRejectedFault",
    "UnableToDestroySubscriptionFault": "ResourceNotDestroyedFault",
}
NAMES_LISTED_MAX: Final = 16  # of what a request holds that is unknown here
_LIFETIME: Final = frozenset({"TerminationTimeChangeRejectedFault", "ResourceNotDestroyedFault"})
_LIFETIME_OPERATIONS: Final = frozenset({Operation.RENEW, Operation.UNSUBSCRIBE})


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults of one version, with one timestamp."""

    spec: str
    now_ns: int

    def fault(
        self,
        name: str,
        reason: str,
        *,
        facts: bytes = b"",
        error: TocsinError | None = None,
        operation: Operation | None = None,
    ) -> SoapFault:
        """The condition that 1.3 calls `name`, as this version names it.

        `facts` are the elements that 1.3 adds to the detail, with the prefix `n`.
        """
        assert name in NAMES13, name
        if self.spec != "wsn13":
            name, facts = _OLDER.get(name, name), b""
        return SoapFault(
            _code(error),
            reason,
            detail=self._detail(self._namespace(name, operation), name, reason, facts, error),
            action=self._action(name),
        )

    def _namespace(self, name: str, operation: Operation | None) -> str:
        if self.spec == "wsn13":
            return RESOURCE13 if name == "ResourceUnknownFault" else NAMESPACE_OF["wsn13"]
        if self.spec == "wsn12" and (
            name in _LIFETIME
            or (name == "ResourceUnknownFault" and operation in _LIFETIME_OPERATIONS)
        ):
            return LIFETIME12
        return NAMESPACE_OF[self.spec]

    def _action(self, name: str) -> str | None:
        if self.spec != "wsn13":
            return None  # that of the addressing version
        return RESOURCE_FAULT_ACTION if name == "ResourceUnknownFault" else FAULT_ACTION

    def _detail(
        self, namespace: str, name: str, reason: str, facts: bytes, error: TocsinError | None
    ) -> bytes:
        ours = b"" if error is None else detail_of(error)
        # Only 1.3 lets others' elements into the fault, and there before everything else.
        inside, beside = (ours, b"") if self.spec == "wsn13" else (b"", ours)
        return b"".join(
            (
                b'<n:%b xmlns:n="%b" xmlns:bf="%b">'
                % (name.encode(), namespace.encode(), _BASE[self.spec].encode()),
                inside,
                b"<bf:Timestamp>%b</bf:Timestamp>" % rfc3339(self.now_ns).encode(),
                b"<bf:Description>%b</bf:Description>" % escaped(reason),
                facts,
                b"</n:%b>" % name.encode(),
                beside,
            )
        )

    # Conditions with facts of their own

    def unknown_filters(self, unknown: Iterable[Name]) -> SoapFault:
        unknown = list(unknown)[:NAMES_LISTED_MAX]
        return self.fault(
            "InvalidFilterFault",
            f"these filters are not supported: {_listed(unknown)}",
            facts=_names("UnknownFilter", unknown),
        )

    def unknown_policies(self, unknown: Iterable[Name]) -> SoapFault:
        unknown = list(unknown)[:NAMES_LISTED_MAX]
        return self.fault(
            "UnrecognizedPolicyRequestFault",
            f"these policies are not supported: {_listed(unknown)}",
            facts=_names("UnrecognizedPolicy", unknown),
        )

    def unacceptable_time(self, reason: str, operation: Operation) -> SoapFault:
        """An end that is no time, in the past, or past the last that we can keep."""
        initial = "Initial" if operation is Operation.SUBSCRIBE else ""
        return self.fault(
            f"Unacceptable{initial}TerminationTimeFault",
            reason,
            facts=b"<n:MinimumTime>%b</n:MinimumTime><n:MaximumTime>%b</n:MaximumTime>"
            % (rfc3339(self.now_ns).encode(), rfc3339(LATEST_NS).encode()),
        )

    def of(self, error: TocsinError, operation: Operation | None = None) -> SoapFault:
        """The fault for an error of ours; one without a name of its own for most."""
        name = _NAME_OF.get(type(error))
        if name is None and operation is Operation.SUBSCRIBE and isinstance(error, _NOT_CREATED):
            name = "SubscribeCreationFailedFault"
        if name is None:
            return fault_of(error)
        reason = f"{error.problem}. {error.remedy}"
        return self.fault(name, reason, error=error, operation=operation)


_NAME_OF: Final[Mapping[type[TocsinError], str]] = {
    NoSuchSubscription: "ResourceUnknownFault",
    NoSuchBox: "ResourceUnknownFault",
    BadTopic: "InvalidTopicExpressionFault",
    BadTopicPattern: "InvalidTopicExpressionFault",
}
_NOT_CREATED: Final = (BadFilter, BadSubscription, SinkRefused, TooManySubscriptions)


def _code(error: TocsinError | None) -> Code:
    is_ours = error is not None and (error.http_status >= 500 or error.http_status == 429)
    return "Receiver" if is_ours else "Sender"


def _listed(names: list[Name]) -> str:
    return ", ".join(name for _, name in names)


def _names(tag: str, names: list[Name]) -> bytes:
    return b"".join(
        b'<n:%b xmlns:q="%b">q:%b</n:%b>'
        % (tag.encode(), quoted(namespace), escaped(name), tag.encode())
        if namespace
        else b"<n:%b>%b</n:%b>" % (tag.encode(), escaped(name), tag.encode())
        for namespace, name in names
    )
