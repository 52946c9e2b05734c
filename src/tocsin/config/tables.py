"""The tables of the settings: each class is a table of `tocsin.toml`, each member a key."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path, PurePath

from tocsin.broker.delivery.retry import RetryOptions
from tocsin.broker.options import DAY_S, BrokerOptions
from tocsin.config.auth_tables import (
    AccessRules,
    AuditSettings,
    AuthSettings,
    WsSecuritySettings,
)
from tocsin.config.certificates import CertificateSettings
from tocsin.config.entries import OFF, is_loopback
from tocsin.config.openid import OpenIdSettings
from tocsin.config.overlay_tables import OverlaySettings
from tocsin.config.topic_tables import TopicSettings
from tocsin.wire.cloudevents.limits import Limits


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """[http]: where the listener is, and how much and how slowly one may come in."""

    address: str = "127.0.0.1:8400"
    open: bool = False  # listen beyond this machine, without protection of our own
    names: tuple[str, ...] = ()  # further Host names under which this broker may be called
    tls_certificate: str = ""  # PEM file, the chain behind it; with tls_key all listeners speak TLS
    tls_key: str = ""  # PEM file, without a password
    public_url: str = ""  # how clients reach us, if not as they say: behind a proxy or NAT
    header_bytes_max: int = 32 << 10
    headers_max: int = 100
    body_bytes_max: int = 16 << 20
    header_deadline_s: float = 10.0
    body_deadline_s: float = 30.0
    body_bytes_per_s_min: int = 1024  # a body may take longer than the deadline if it flows
    idle_s: float = 75.0
    stalled_reader_s: float = 60.0  # a stream that takes nothing for so long is closed
    connections_max: int = 10_000
    pipelined_max: int = 64

    @property
    def scheme(self) -> str:
        """How addresses of this listener begin."""
        return "https" if self.tls_certificate else "http"


@dataclass(frozen=True, slots=True)
class FramesSettings:
    """[frames]: where producers and consumers of performance events come in, and how they may."""

    address: str = "127.0.0.1:8401"  # or off, for no such listener
    udp: bool = True  # also take datagrams there; never with TLS, as they would be in clear
    archive: str = OFF  # another such address, where everybody who subscribes is a producer
    message_bytes_max: int = 4 << 20
    message_deadline_s: float = 30.0
    bytes_per_s_min: int = 1024  # a message may take longer than the deadline if it flows
    idle_s: float = 600.0  # without a subscription; with one, dead peers are found by TCP itself
    stalled_reader_s: float = 60.0  # who takes nothing for so long is cut off
    connections_max: int = 10_000
    subscriptions_max: int = 1_000  # of one connection
    datagram_lease_s: float = 600.0  # a subscription by UDP ends if it is not asked for again
    datagram_subscriptions_max: int = 1_000

    @property
    def is_off(self) -> bool:
        return self.address == OFF


@dataclass(frozen=True, slots=True)
class SoapTcpSettings:
    """[soap_tcp]: where SOAP in DIME messages comes in, and how much and how slowly it may."""

    address: str = "127.0.0.1:8402"  # or off, for no such listener
    message_bytes_max: int = 16 << 20
    records_max: int = 10_000  # of one message
    message_deadline_s: float = 30.0
    bytes_per_s_min: int = 1024  # a message may take longer than the deadline if it flows
    idle_s: float = 600.0  # WSE keeps a connection for as long as its sender lives
    stalled_reader_s: float = 60.0  # who takes no answer for so long is cut off
    connections_max: int = 1_000

    @property
    def is_off(self) -> bool:
        return self.address == OFF


@dataclass(frozen=True, slots=True)
class LogSettings:
    """[log]: where events are kept, how safely and for how long."""

    store: str = "sqlite"  # by name or URL; memory is gone with the process, others are plugins
    directory: str = "tocsin-data"
    synchronous: str = "FULL"  # NORMAL may lose the last acknowledged events in a power cut
    retain_age_s: float = 7.0 * DAY_S
    retain_bytes: int = 10 << 30
    free_bytes_min: int = 64 << 20  # with less on the disk no events are taken
    duplicates_window: int = 100_000
    clock_jump_s: float = 1.0 * DAY_S  # a clock so far from the last time in the log is in doubt


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """[archive]: the log's events in Parquet files, how soon, and for how long."""

    enabled: bool = True
    directory: str = ""  # the directory `archive` beside the log, if empty
    roll_s: float = 10.0  # events are in the archive after about so long
    roll_events: int = 50_000  # or as soon as so many wait
    seal_bytes: int = 128 << 20  # when fresh files have so much they become one that stays,
    seal_age_s: float = 3_600.0  # or when the first of them is so old, or with the date
    retain_age_s: float = 365.0 * DAY_S
    retain_bytes: int = 100 << 30
    free_bytes_min: int = 1 << 30  # that the archive leaves on its disk, for the log
    sample_s: float = 60.0  # how often it notes how subscriptions fare


@dataclass(frozen=True, slots=True)
class EventSettings:
    """[events]: what one event may be."""

    event_bytes_max: int = 1 << 20
    batch_events_max: int = 10_000
    attributes_max: int = 64


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    """[delivery]: how patiently events are pushed, and where they may go."""

    attempts: int = 10
    first_delay_s: float = 1.0
    delay_s_max: float = 300.0
    timeout_s: float = 30.0
    unreachable_s_max: float = 3.0 * DAY_S
    backlog_age_s: float = 7.0 * DAY_S
    dead_letters_max: int = 100_000
    trusted: tuple[str, ...] = ()  # hosts and networks that need no handshake; loopback never does
    private: str = "auto"  # yes, no, or auto: private addresses only while listening on loopback
    sinks_open_max: int = 1_000
    origin: str = ""  # what the handshake calls us; the address we listen on if empty
    ca_file: str = ""  # PEM file of authorities that https sinks may have besides the system's
    client_certificate: str = ""  # PEM file, shown to sinks that ask for one
    client_key: str = ""  # PEM file, without a password


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """[limits]: how many there may be."""

    subscriptions_max: int = 1_000_000
    streams_max: int = 10_000
    connections_per_peer_max: int = 1_000  # of one address at one listener, but for this machine
    receiving_bytes_max: int = 256 << 20  # of messages not yet whole, or not yet handled


@dataclass(frozen=True, slots=True)
class BoxSettings:
    """[boxes]: message boxes of SOAP clients, how long they live and how much they hold."""

    lease_s: float = 2.0 * DAY_S  # a box that nobody takes from for so long is gone
    backlog: int = 10_000  # messages that wait in one box; past it the oldest are dropped
    redeliver_s: float = 30.0  # an answer on a connection that stands so long is taken as read
    boxes_max: int = 1_000  # message boxes, and as many pull points of ONVIF; each may hold 8 MB


@dataclass(frozen=True, slots=True)
class BlackboardSettings:
    """[blackboard]: concepts beside the built-in ones, and how patient we are with subscribers."""

    ontology: tuple[str, ...] = ()  # Turtle files of a site, added to the built-in concepts
    missing_after_s: float = 30.0  # unreachable for so long, a subscriber is off the list


@dataclass(frozen=True, slots=True)
class MonitorSettings:
    """[monitor]: the monitor of workflow runs, what it asks publishers for and how long it stays.

    What it does not ask for, and nobody else does, publishers do not measure."""

    enabled: bool = True
    concepts: tuple[str, ...] = (
        "Event",
        "Property",
        "CpuCores",
        "CpuPercent",
        "CpuSeconds",
        "MemoryRequested",
        "MemoryRss",
        "IoReadBytes",
        "IoWriteBytes",
        "EnergyUsed",
    )
    silence_s: float = 6 * 3600.0  # a run without heartbeats and so long without news is lost
    retain_age_s: float = 365.0 * DAY_S  # of runs, since their last message
    runs_max: int = 100_000  # past it those go that ended, or were lost, first
    events_per_run: int = 10_000  # the last ones, for what was before a failure
    alerts: bool = True  # publish ActivityStraggling and WorkflowStraggling: slower than usual


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """[pipeline]: the tables that `tocsin pipeline` makes of the archive, and the monitor reads."""

    tables: str = ""  # the directory `tables` beside the log, if empty
    old_s: float = 7.0 * DAY_S  # tables that were made longer ago are used, and said to be old


@dataclass(frozen=True, slots=True)
class PegasusSettings:
    """[pegasus]: where Pegasus' monitord may send its JSON lines by TCP."""

    address: str = OFF
    line_bytes_max: int = 1 << 20
    idle_s: float = 86_400.0  # between two jobs nothing may happen for long
    connections_max: int = 100

    @property
    def is_off(self) -> bool:
        return self.address == OFF


@dataclass(frozen=True, slots=True)
class DialectSettings:
    """[dialects]: protocols that other packages add, and where they listen."""

    listen: tuple[str, ...] = ()  # each as name=host:port

    def by_name(self) -> dict[str, str]:
        """Where each shall listen."""
        pairs = (entry.partition("=") for entry in self.listen)
        return {name.strip(): address.strip() for name, _, address in pairs}


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set."""

    http: HttpSettings = field(default_factory=HttpSettings)
    frames: FramesSettings = field(default_factory=FramesSettings)
    soap_tcp: SoapTcpSettings = field(default_factory=SoapTcpSettings)
    log: LogSettings = field(default_factory=LogSettings)
    archive: ArchiveSettings = field(default_factory=ArchiveSettings)
    events: EventSettings = field(default_factory=EventSettings)
    delivery: DeliverySettings = field(default_factory=DeliverySettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    boxes: BoxSettings = field(default_factory=BoxSettings)
    blackboard: BlackboardSettings = field(default_factory=BlackboardSettings)
    monitor: MonitorSettings = field(default_factory=MonitorSettings)
    pipeline: PipelineSettings = field(default_factory=PipelineSettings)
    pegasus: PegasusSettings = field(default_factory=PegasusSettings)
    overlay: OverlaySettings = field(default_factory=OverlaySettings)
    dialects: DialectSettings = field(default_factory=DialectSettings)
    auth: AuthSettings = field(default_factory=AuthSettings)
    certificates: CertificateSettings = field(default_factory=CertificateSettings)
    audit: AuditSettings = field(default_factory=AuditSettings)
    access: AccessRules = field(default_factory=AccessRules)
    openid: OpenIdSettings = field(default_factory=OpenIdSettings)
    ws_security: WsSecuritySettings = field(default_factory=WsSecuritySettings)
    topics: TopicSettings = field(default_factory=TopicSettings)

    def broker_options(self) -> BrokerOptions:
        """The core's own options type."""
        delivery = self.delivery
        return BrokerOptions(
            duplicates_window=self.log.duplicates_window,
            subscriptions_max=self.limits.subscriptions_max,
            streams_max=self.limits.streams_max,
            dead_letters_max=delivery.dead_letters_max,
            retain_age_s=self.log.retain_age_s,
            retain_bytes=self.log.retain_bytes,
            clock_jump_s=self.log.clock_jump_s,
            backlog_age_s=delivery.backlog_age_s,
            missing_after_s=self.blackboard.missing_after_s,
            retry=RetryOptions(
                attempts=delivery.attempts,
                first_delay_s=delivery.first_delay_s,
                delay_s_max=delivery.delay_s_max,
                timeout_s=delivery.timeout_s,
                unreachable_s_max=delivery.unreachable_s_max,
            ),
        )

    def addresses(self) -> dict[str, str]:
        """Where the listeners are, by the setting that says so."""
        wanted = {
            "http.address": self.http.address,
            "frames.address": self.frames.address,
            "frames.archive": self.frames.archive,
            "soap_tcp.address": self.soap_tcp.address,
            "pegasus.address": self.pegasus.address,
            "overlay.address": self.overlay.address,
        }
        wanted |= {f"dialects.listen, {k}": each for k, each in self.dialects.by_name().items()}
        return {setting: address for setting, address in wanted.items() if address != OFF}

    @property
    def sign_in_required(self) -> bool:
        """Whether who shows no credential is a stranger: `auth.mode`, or what follows from where
        the listeners are."""
        if self.auth.mode != "auto":
            return self.auth.mode == "required"
        return not self.http.open and not all(map(is_loopback, self.addresses().values()))

    def event_limits(self) -> Limits:
        events = self.events
        return Limits(events.event_bytes_max, events.batch_events_max, events.attributes_max)


def tables_directory(data: str | PurePath, named: str) -> Path:
    """Where the tables of a broker are."""
    return Path(named) if named else Path(data) / "tables"
