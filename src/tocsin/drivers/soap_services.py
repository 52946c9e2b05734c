"""The SOAP services of a process: what they are given, and the second log, for their boxes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from tocsin.access.decision import Access
from tocsin.broker.port import BrokerPort
from tocsin.config import Settings
from tocsin.drivers.application import Application
from tocsin.drivers.logger import Logger
from tocsin.drivers.storage.stores import BOXES_DIRECTORY, open_store
from tocsin.errors import TocsinError
from tocsin.event.instant import NS_PER_S
from tocsin.services.mailbox.local_delivery import OwnBoxes
from tocsin.services.mailbox.mailboxes import Mailboxes, MailboxOptions
from tocsin.services.soap.consumers import ConsumerRules
from tocsin.services.soap.context import SoapContext, SoapOptions
from tocsin.services.soap.dispatcher import Dispatcher
from tocsin.services.soap.message_sign_in import (
    CertificateCheck,
    MessageSignIn,
    MessageSignInOptions,
)
from tocsin.services.soap_services import broker_dispatcher

TAKEN_KEPT_S: Final = 60.0  # what was taken is gone from the disk so much later, at the latest


def soap_context(app: Application, certificates: CertificateCheck | None = None) -> SoapContext:
    """What the services are given of the process. Without `certificates`, nobody signs in by one
    that a message carries."""
    settings, node = app.settings, app.node
    options = SoapOptions(
        event_limits=settings.event_limits(),
        pull_points_max=settings.boxes.boxes_max,
        pull_point_backlog=settings.boxes.backlog,
        pull_wait_s_max=settings.broker_options().pull_wait_s_max,
        redeliver_s=settings.boxes.redeliver_s,
    )
    return SoapContext(
        port=app.port,
        options=options,
        consumers=ConsumerRules(node.sinks, node.rules, app.addresses.check_not_own),
        topics=app.topics,
        latest=app.latest.on,
        on_ended=node.observers.ended.append,
        security=_message_sign_in(app, certificates),
    )


def _message_sign_in(
    app: Application, certificates: CertificateCheck | None
) -> MessageSignIn | None:
    sign_in, settings = app.access_control.sign_in, app.settings.ws_security
    if sign_in is None:
        return None
    options = MessageSignInOptions(
        sha1=settings.sha1,
        age_ns=int(settings.age_s * NS_PER_S),
        skew_ns=int(settings.skew_s * NS_PER_S),
        seen_max=settings.seen_max,
        tls_in_front=settings.tls_in_front,
    )
    signatures = None
    if certificates is not None:
        # Imported only here: the libraries for it take a tenth of a second to load.
        from tocsin.services.soap.signature_check import SiteSignatures

        signatures = SiteSignatures(certificates, options.signatures, options.digests)
    refused = app.access_control.sign_in_failed
    return MessageSignIn(app.port.runtime, sign_in, signatures, options, refused)


class MailboxNode:
    """The node that holds the message boxes, opened when the first box is asked for."""

    def __init__(
        self,
        settings: Settings,
        logger: Logger,
        on_failure: Callable[[TocsinError], None] | None = None,
        beside: Application | None = None,
        access: Access | None = None,
    ) -> None:
        """`on_failure` is called if the disk fails: after that no box answers any more. `beside`
        is the broker of this process, if there is one."""
        self._settings = _own_settings(settings)
        self._logger = logger
        self._on_failure = on_failure
        self._beside = beside
        self._access = access
        self._watch: asyncio.Task[None] | None = None
        self._app: Application | None = None
        self._is_closed = False
        boxes = settings.boxes
        options = MailboxOptions(
            boxes_max=boxes.boxes_max,
            backlog=boxes.backlog,
            lease_s=boxes.lease_s,
            redeliver_s=boxes.redeliver_s,
            message_bytes_max=settings.events.event_bytes_max,
        )
        self.mailboxes = Mailboxes(self._open_port, options)
        if Path(self._settings.log.directory).is_dir():
            self.mailboxes.open()

    def open(self) -> Application:
        """The broker of the boxes, now."""
        self.mailboxes.open()
        assert self._app is not None
        return self._app

    def _open_port(self) -> BrokerPort:
        store = open_store(self._settings.log, self._logger)
        app = Application(
            self._settings, store, self._logger, self._beside, self._access, are_boxes=True
        )
        self._app = app
        self._watch = app.node.loop.create_task(self._report_failure(app))
        return app.port

    async def _report_failure(self, app: Application) -> None:
        await app.node.failed.wait()
        if self._on_failure is not None and app.node.failure is not None:
            self._on_failure(app.node.failure)

    async def close(self) -> None:
        """Let go of the log; once, however often it is asked."""
        if self._app is not None and not self._is_closed:
            self._is_closed = True
            if self._watch is not None:
                self._watch.cancel()
            await self._app.close()


class SoapServices:
    """All SOAP services of a broker, from their start to their end."""

    def __init__(self, app: Application, certificates: CertificateCheck | None = None) -> None:
        node = app.node
        # A broker whose boxes are on a failing disk stops, as with its own log.
        self.boxes = MailboxNode(app.settings, app.logger, node.fail, app, app.port.access)
        self.dispatcher: Dispatcher = broker_dispatcher(
            soap_context(app, certificates), self.boxes.mailboxes
        )
        self.answer = self.dispatcher.answer
        self._own_boxes = OwnBoxes(app.port.runtime, self.answer)
        node.pusher.soap.into_boxes = self._own_boxes.send

    async def close(self) -> None:
        self._own_boxes.close()
        self.dispatcher.close()
        await self.boxes.close()


def _own_settings(settings: Settings) -> Settings:
    """The broker's, where they are not the boxes' own."""
    boxes = settings.boxes
    directory = str(Path(settings.log.directory) / BOXES_DIRECTORY)
    return replace(
        settings,
        log=replace(settings.log, directory=directory, retain_age_s=TAKEN_KEPT_S),
        delivery=replace(settings.delivery, backlog_age_s=boxes.lease_s),
        limits=replace(settings.limits, subscriptions_max=boxes.boxes_max),
    )
