"""BrokerTls: the TLS contexts of a broker, made at its start, and kept up to date while it runs."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tocsin.access.session import Session
from tocsin.config import CertificateSettings, Settings, read_rules
from tocsin.drivers.access.access_control import check_applied
from tocsin.drivers.application import Application
from tocsin.drivers.tls.contexts import (
    DELIVERY,
    LISTENER,
    OVERLAY,
    link_context,
    link_pair,
    listener_context,
    load_pair,
    sink_context,
    trust_peers,
)
from tocsin.drivers.tls.file_reload import FileReload
from tocsin.drivers.tls.site_context import SiteContext
from tocsin.errors import BadSetting
from tocsin.services.limited_log import LimitedLog

if TYPE_CHECKING:
    from tocsin.drivers.tls.certificates import PeerCertificates


@dataclass(frozen=True, slots=True)
class BrokerTls:
    """What listeners and links use; None where they speak no TLS."""

    listeners: SiteContext | None
    links: SiteContext | None
    peers: PeerCertificates | None  # what others are known by, if certificates sign anybody in


def broker_tls(settings: Settings) -> BrokerTls:
    """Raises BadSetting and BadCredential for what is wrong with any of the files."""
    http = settings.http
    has_tls = bool(http.tls_certificate or http.tls_key)
    peers = open_peer_certificates(settings.certificates, has_tls=has_tls)
    sink_context(settings.delivery)  # for what may be wrong with it; the node makes its own
    return BrokerTls(
        listener_context(http, peers), link_context(settings.overlay, http, peers), peers
    )


def open_peer_certificates(
    settings: CertificateSettings, *, has_tls: bool
) -> PeerCertificates | None:
    """What clients are known by; None if they are not. Raises BadCredential and BadSetting."""
    if not settings.client_ca:
        if settings.crl_file or settings.client_certificates == "required":
            raise BadSetting(
                "certificates of clients are asked for, and certificates.client_ca is not set",
                remedy="Name the PEM file of the authorities that sign them.",
            )
        return None
    if not has_tls:
        raise BadSetting(
            "certificates.client_ca is set, and the listeners do not speak TLS",
            remedy="Give the broker's own certificate: --tls-cert FILE --tls-key FILE.",
        )
    # Imported only here: the library for certificates takes a tenth of a second to load.
    from tocsin.drivers.tls.certificates import PeerCertificates

    return PeerCertificates(settings)


def watch_certificates(tls: BrokerTls, app: Application) -> FileReload:
    """Look at the files from now on. To be closed with the broker."""
    settings, note = app.settings, app.node.note
    reload = FileReload(note, settings.certificates.reload_s)
    _watch_own(reload, tls, app)
    if tls.peers is not None:
        _watch_peers(reload, tls.peers, tls, app)
    _watch_rules(reload, app)
    app.complaints.append(reload.complaints)
    reload.start()
    if reload.has_files:  # else a terminal that is closed ends its broker, as ever
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload.look)
    return reload


def _watch_rules(reload: FileReload, app: Application) -> None:
    """The rules, groups and quotas of the settings file. Other settings hold until a restart."""
    settings, control = app.settings, app.access_control
    file = settings.access.file
    if not file or (control.sign_in is None and not settings.access.quotas):
        return

    def load() -> None:
        access = read_rules(Path(file))
        check_applied(settings, access)
        control.reload(access)

    reload.add("[[access]], [groups] and [[quotas]]", [file], load, when_asked=True)


def _watch_own(reload: FileReload, tls: BrokerTls, app: Application) -> None:
    http, delivery, overlay = app.settings.http, app.settings.delivery, app.settings.overlay
    if (listeners := tls.listeners) is not None:
        pair = http.tls_certificate, http.tls_key
        reload.add(LISTENER.certificate, pair, lambda: load_pair(listeners, LISTENER, *pair))
    if delivery.client_certificate:
        shown = delivery.client_certificate, delivery.client_key
        sinks = app.node.pusher.tls
        reload.add(DELIVERY.certificate, shown, lambda: load_pair(sinks(), DELIVERY, *shown))
    if (links := tls.links) is not None:
        linked = link_pair(overlay, http)
        if linked[0]:
            reload.add(OVERLAY.certificate, linked, lambda: load_pair(links, OVERLAY, *linked))


def _watch_peers(
    reload: FileReload, peers: PeerCertificates, tls: BrokerTls, app: Application
) -> None:
    policy = app.access_control.service.policy
    warn = LimitedLog(app.port.runtime).warn

    def refused(session: Session, why: str) -> None:
        warn("a certificate was refused", why=why, peer=session.peer, endpoint=session.endpoint)
        app.access_control.sign_in_failed(session, "certificate", why)

    def load() -> None:
        peers.load()
        if tls.listeners is not None:
            trust_peers(tls.listeners, peers)
        policy.set_revoked(peers.revoked)  # whoever is connected with one of these

    peers.note_refused = refused
    policy.set_revoked(peers.revoked)
    app.complaints.append(peers.complaints)
    files = app.settings.certificates.client_ca, app.settings.certificates.crl_file
    reload.add("certificates.client_ca and crl_file", files, load)
    for complaint in peers.complaints():
        app.node.note("error", "certificates of an authority are not accepted", why=complaint)
