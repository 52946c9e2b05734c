"""Whether an answer arrived, where the protocol has no word for it: by what its connection does.

An answer that took messages out of a box has a receipt. It arrived when its connection brings the
next request, when the peer closes the connection in an orderly way after its TCP acknowledged every
byte, or when the connection has stood for `redeliver_s` with every byte acknowledged. It is lost
when the connection ends in any other way; then what it took is back in the box.
"""

from __future__ import annotations

import fcntl
import socket
import struct
import termios
from typing import Final, Protocol

from tocsin.services.soap.delivery_receipt import DeliveryReceipt

# States of TCP in which the end of our own sending is sent and may not be acknowledged yet.
_FIN_SENT: Final = frozenset({4, 9, 11})  # FIN_WAIT1, LAST_ACK, CLOSING


class Transport(Protocol):
    """What is asked of a connection."""

    def get_write_buffer_size(self) -> int: ...

    def get_extra_info(self, name: str) -> object: ...


class PendingReceipts:
    """The open receipts of one connection."""

    def __init__(self) -> None:
        self._open: list[DeliveryReceipt] = []
        self._transport: Transport | None = None
        self._peer_closed = self._both_close = False

    def __bool__(self) -> bool:
        return bool(self._open)

    def add(self, receipt: DeliveryReceipt, transport: Transport) -> None:
        """An answer was written to the connection, whose transport is this."""
        self._transport = transport
        receipt.is_acknowledged = self.is_acknowledged
        self._open.append(receipt)

    def is_acknowledged(self) -> bool:
        return self._transport is not None and is_acknowledged(self._transport)

    def next_request(self) -> None:
        """The client asks something else: it has read what it was answered."""
        if self._open:
            for receipt in self._take():
                receipt.arrived()

    def peer_closed(self) -> None:
        """The client sends no more. If it had closed with something unread, TCP would say so."""
        self._peer_closed = True
        if self._open and self._peer_has_it():
            self.next_request()

    def _peer_has_it(self) -> bool:
        return self._peer_closed and self.is_acknowledged()

    def closing(self) -> None:
        """We close by TLS, whose end is an exchange: without an error, the peer has read it all."""
        self._both_close = True

    def ended(self, error: BaseException | None) -> None:
        """The connection is gone."""
        if error is None and self._open and (self._both_close or self._peer_has_it()):
            self.next_request()
        for receipt in self._take():
            receipt.lost()
        self._transport = None

    def _take(self) -> list[DeliveryReceipt]:
        receipts, self._open = self._open, []
        return receipts


def is_acknowledged(transport: Transport) -> bool:
    """Whether the peer's TCP has every byte that was written."""
    if transport.get_write_buffer_size():
        return False
    end = transport.get_extra_info("socket")
    try:
        number = end.fileno()  # type: ignore[attr-defined]
        with socket.socket(fileno=socket.dup(number)) as own:
            return _is_through(own)
    except OSError:
        return False


def _is_through(end: socket.socket) -> bool:
    if end.family not in (socket.AF_INET, socket.AF_INET6) or not hasattr(socket, "TCP_INFO"):
        return True
    if end.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
        return False
    (unsent,) = struct.unpack("i", fcntl.ioctl(end.fileno(), termios.TIOCOUTQ, bytes(4)))
    state = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    return int(unsent) <= (1 if state in _FIN_SENT else 0)
