"""The box service alone: message boxes outside the firewall, and no broker (paper 000, IV.D).

Consumers behind the firewall make boxes here and fetch from them; brokers anywhere send to them.
What lies in the boxes is nobody's but their owners', so of the other ways to look at a node there
are none but whether it lives, and the description of its services.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import uvloop

from tocsin.access.decision import Access
from tocsin.access.session import Session
from tocsin.broker.engine import Replier
from tocsin.config import OFF, Settings
from tocsin.drivers.access.access_control import check_exposure, ensure_administrator
from tocsin.drivers.broker_tls import BrokerTls, broker_tls, watch_certificates
from tocsin.drivers.http.connection import Connection
from tocsin.drivers.http.exchange import Exchange
from tocsin.drivers.http.listener import HttpListener
from tocsin.drivers.http.request import Request
from tocsin.drivers.listeners.bind_address import host_and_port
from tocsin.drivers.logger import Logger
from tocsin.drivers.serve import Ready, prepare_process, stop_signals, until_stopped
from tocsin.drivers.soap_services import MailboxNode, soap_context
from tocsin.errors import NoSuchPath
from tocsin.event.event import Event
from tocsin.services.directory.directory import Directory
from tocsin.services.soap.call import Answer
from tocsin.services.soap.paths import is_soap_path
from tocsin.services.soap_services import mailbox_dispatcher

_OTHER_PATHS: Final = frozenset({"/livez", "/readyz", "/soap"})  # the last for its WSDL


class MailboxListener(HttpListener):
    """An HTTP server that leads to the boxes and nowhere else."""

    def __init__(self, boxes: MailboxNode, soap: Answer) -> None:
        app = boxes.open()
        super().__init__(app.rest_context(Directory(app.port), app.performance_service()), soap)
        self.server.publish = _publish_nothing

    def _exchange(self, connection: Connection, request: Request) -> Exchange:
        if request.target == b"/soap?wsdl":
            # Of all that a broker describes, this is what is here (and ?wsdl=wsn13.PullPoint).
            request = replace(request, target=b"/soap?wsdl=msgbox")
        if request.path in _OTHER_PATHS or (
            request.method == b"POST" and is_soap_path(request.path)
        ):
            return super()._exchange(connection, request)
        raise _no_such_path(request.path)


def _publish_nothing(session: Session, events: list[Event], replier: Replier) -> None:
    replier.answer(_no_such_path("/events"))


def _no_such_path(path: str) -> NoSuchPath:
    return NoSuchPath(
        f"there is no {path[:100]} at a message box service",
        remedy="Create and read boxes by SOAP, at /soap or /axis2/services/MsgBoxService.",
    )


def run(
    settings: Settings,
    ready: Ready,
    logger: Logger | None = None,
    *,
    accept_loss: bool = False,
    accept_clock: bool = False,
    access: Access | None = None,
) -> int:
    """Serve boxes until SIGTERM or SIGINT. Returns the exit code; raises what stops the start."""
    address = settings.http.address
    host_and_port(address)
    tls = broker_tls(settings)
    # No other server: so its address is not asked whether it is open to the world.
    settings = replace(
        settings,
        soap_tcp=replace(settings.soap_tcp, address=OFF),
        overlay=replace(settings.overlay, address=OFF),
    )
    logger = logger or Logger()
    check_exposure(settings, logger)
    settings = prepare_process(settings, logger, accept_loss=accept_loss, accept_clock=accept_clock)
    return uvloop.run(_serve(settings, ready, logger, tls, access))


async def _serve(
    settings: Settings,
    ready: Ready,
    logger: Logger,
    tls: BrokerTls,
    access: Access | None,
) -> int:
    stop_requested = stop_signals()
    boxes = MailboxNode(settings, logger, access=access)
    app = boxes.open()
    node = app.node
    dispatcher = mailbox_dispatcher(soap_context(app, tls.peers), boxes.mailboxes)
    server = MailboxListener(boxes, dispatcher.answer)
    reload = watch_certificates(tls, app)
    try:
        await app.access_control.start()
        await server.open(settings.http.address, tls.listeners)
        app.addresses.http = server.address
        app.addresses.listeners = {"http": server.address}
        said: dict[str, object] = {"ready": True, "http": server.address}
        if tls.listeners is not None:
            said["tls"] = True
        if app.access_control.sign_in is not None:
            token = await ensure_administrator(
                app.access_control, app.settings.log.directory, logger
            )
            said["admin_token"] = str(token)
        ready(said)
        await until_stopped(stop_requested, node)
    finally:
        node.stopping = True
        reload.close()
        await server.close()
        dispatcher.close()
        await boxes.close()
    return 0 if node.failure is None else node.failure.exit_code
