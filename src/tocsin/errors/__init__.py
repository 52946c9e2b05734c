"""One error tree: a stable code, what happened, and what to do about it.

The code is part of the public contract; the words are not. `tocsin explain CODE` prints the class's
docstring, so a docstring here is written for the person who met the error. A bug is an `assert`,
never one of these.

Ranges: T0 settings, T1 events, topics and filters, T2 requests, T3 subscriptions, boxes, dead
letters, the directory, concepts, runs, resources and topics, T4 the log and its disk, T5 delivery,
T6 clients reaching a broker, T7 the pipeline on Spark, T80 links between brokers,
T82 control messages.
"""

from __future__ import annotations

from tocsin.errors.access import (
    BadCredential,
    BadRight,
    NoAuditLog,
    NoSuchCredential,
    NotAllowed,
    NotSignedIn,
    QuotaReached,
)
from tocsin.errors.archive import (
    ArchiveFileGone,
    ArchiveFileNotRead,
    ArchiveInUse,
    ArchiveOfAnotherLog,
    BadArchiveFile,
    NoArchive,
)
from tocsin.errors.clients import (
    BrokerRefused,
    CannotMeasure,
    CannotReachBroker,
    NothingArrived,
    NotInSpecification,
    SoapRefused,
    SomeFailed,
    TlsFailed,
)
from tocsin.errors.control import (
    BadControlMessage,
    ControlFull,
    ControlRateReached,
    NoEntity,
)
from tocsin.errors.discovery import (
    BadDiscovery,
    DiscoveryFull,
    DiscoveryOff,
    NoSuchDiscovery,
    NoSuchResource,
)
from tocsin.errors.disk import (
    BackupFailed,
    BadBackup,
    CorruptLog,
    DataDirectoryInUse,
    DataDirectoryUnusable,
    DiskFailed,
    DiskFull,
    LogIncomplete,
)
from tocsin.errors.events import (
    BadEvent,
    BadFilter,
    BadTopic,
    BadTopicPattern,
    BadXml,
    ReservedTopic,
)
from tocsin.errors.links import (
    BadLinkMessage,
    BrokerStillThere,
    LinkCycle,
    LinkRefused,
    LinkToItself,
    LinkTwice,
    LinkVersion,
    NeighbourNotProved,
    NoSuchBroker,
    NotAcknowledged,
    RoutingTableFull,
)
from tocsin.errors.pipeline import (
    BadPipelineOption,
    ConnectorMissing,
    NoTables,
    PipelineBusy,
    PipelineFailed,
    PublicationFailed,
    QualityFailed,
)
from tocsin.errors.requests import (
    BadFrame,
    BadMediaType,
    BadMessage,
    BadMethod,
    BadRequest,
    BrokenConversation,
    Busy,
    ForeignOrigin,
    HeadTooLarge,
    InternalError,
    NoSuchPath,
    ShuttingDown,
    TooLarge,
    TooSlow,
)
from tocsin.errors.root import TocsinError, catalogue
from tocsin.errors.services import (
    BadOntology,
    BadRegistration,
    BadRunsFile,
    BadWorkflowFile,
    DirectoryFull,
    MonitorOff,
    NoSuchEntry,
    NoSuchPublisher,
    NoSuchRun,
    NothingToEstimate,
    UnknownConcept,
)
from tocsin.errors.settings import (
    BadSetting,
    NotOpenToTheWorld,
)
from tocsin.errors.spark import (
    BadSourceOption,
    EventsGone,
    JavaMissing,
    NotArrow,
    SparkMissing,
)
from tocsin.errors.subscriptions import (
    BadSubscription,
    BadToken,
    NoSuchBox,
    NoSuchDeadLetter,
    NoSuchSubscription,
    PeerFailed,
    RedriveFailed,
    SinkRefused,
    TooManySubscriptions,
    TooMuchKept,
)
from tocsin.errors.topic_queries import (
    BadTopicQuery,
    TopicCatalogFull,
    TopicQueryTooCostly,
    XQueryMissing,
)
from tocsin.errors.topics import (
    AdvertisementEnded,
    BadAdvertisement,
    BadDescriptors,
    BadEventSignature,
    BadSignedStatement,
    BadSynopsis,
    CannotOpen,
    CreationRefused,
    GrantRefused,
    ProofRefused,
)
