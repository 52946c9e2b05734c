"""T6: clients reaching a broker."""

from __future__ import annotations

from tocsin.errors.root import TocsinError


class CannotReachBroker(TocsinError):
    """No broker answered at that address.

    Start one with `tocsin serve`, or give the address of the one you mean: --broker URL or
    TOCSIN_BROKER on the command line, broker=URL in Python.
    """

    code = "T601"
    http_status = 502
    exit_code = 3


class BrokerRefused(TocsinError):
    """The broker answered with an error. Its own code and remedy are in the message."""

    code = "T602"

    def __init__(
        self,
        problem: str,
        *,
        remedy: str,
        status: int = 0,
        broker_code: str | None = None,
        pointed: str = "",
    ) -> None:
        super().__init__(problem, remedy=remedy)
        self.status = status
        self.broker_code = broker_code or self.code
        self.pointed = pointed

    def __str__(self) -> str:
        return f"{self.problem} [{self.broker_code}]. {self.remedy}"


class NothingArrived(TocsinError):
    """The time given ran out before enough events arrived."""

    code = "T603"
    exit_code = 6


class SomeFailed(TocsinError):
    """Some of many things done at once failed; each is named above this line."""

    code = "T604"
    exit_code = 7


class SoapRefused(BrokerRefused):
    """A Web service answered with a SOAP fault: the words are its own.

    In Python the error has `fault_code` (Sender, Receiver, ...), `subcode` (namespace and name, or
    None), `reason` and `detail` (XML). Where the service is a Tocsin broker, the code shown is that
    of the error behind the fault.
    """

    code = "T605"

    def __init__(
        self,
        problem: str,
        *,
        remedy: str,
        status: int = 0,
        broker_code: str | None = None,
        fault_code: str = "",
        subcode: tuple[str, str] | None = None,
        reason: str = "",
        detail: bytes = b"",
    ) -> None:
        super().__init__(problem, remedy=remedy, status=status, broker_code=broker_code)
        self.reason = reason or problem
        self.fault_code = fault_code
        self.subcode = subcode
        self.detail = detail


class NotInSpecification(TocsinError):
    """The Web-services specification that was chosen has no operation for what was asked.

    WS-Eventing cannot pause a subscription, for instance, and WS-Notification 1.0 cannot renew one.
    Choose another specification or version, or do without.
    """

    code = "T606"
    exit_code = 2


class CannotMeasure(TocsinError):
    """This machine does not provide that measurement, or not to this user.

    `tocsin agent --list` says what can be measured here, and why the rest cannot.
    """

    code = "T607"
    http_status = 503


class TlsFailed(CannotReachBroker):
    """The connection was made, but the TLS handshake failed.

    The certificate is signed by an authority that this machine does not know, is for another host
    name or has expired; or one side uses TLS and the other does not. The message says which.
    """

    code = "T608"
