"""One error tree: a stable code, what happened, and what to do about it.

The code is part of the public contract; the words are not. `tocsin explain CODE` prints the class's
docstring, so a docstring here is written for the person who met the error. A bug is an `assert`,
never one of these.

Ranges: T0 settings, T1 events, topics and filters, T2 requests, T3 subscriptions, boxes, dead
letters, the directory, concepts and runs, T4 the log and its disk, T5 delivery, T6 clients reaching
a broker.
"""

from __future__ import annotations

from tocsin.errors.clients import (
    BrokerRefused,
    CannotMeasure,
    CannotReachBroker,
    NothingArrived,
    NotInSpecification,
    SoapRefused,
    SomeFailed,
)
from tocsin.errors.concepts import (
    BadOntology,
    MonitorOff,
    NoSuchPublisher,
    NoSuchRun,
    NothingToEstimate,
    UnknownConcept,
)
from tocsin.errors.delivery import (
    PeerFailed,
)
from tocsin.errors.directory import (
    BadRegistration,
    DirectoryFull,
    NoSuchEntry,
)
from tocsin.errors.disk import (
    CorruptLog,
    DataDirectoryInUse,
    DataDirectoryUnusable,
    DiskFailed,
    DiskFull,
)
from tocsin.errors.estimates import (
    BadRunsFile,
)
from tocsin.errors.events import (
    BadEvent,
    BadFilter,
    BadTopic,
    BadTopicPattern,
    BadXml,
)
from tocsin.errors.evolution import BadWorkflowFile
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
from tocsin.errors.settings import (
    BadSetting,
    NotOpenToTheWorld,
)
from tocsin.errors.subscriptions import (
    BadSubscription,
    BadToken,
    NoSuchBox,
    NoSuchDeadLetter,
    NoSuchSubscription,
    RedriveFailed,
    SinkRefused,
    TooManySubscriptions,
    TooMuchKept,
)

__all__ = [
    "BadEvent",
    "BadFilter",
    "BadFrame",
    "BadMediaType",
    "BadMessage",
    "BadMethod",
    "BadOntology",
    "BadRegistration",
    "BadRequest",
    "BadRunsFile",
    "BadSetting",
    "BadSubscription",
    "BadToken",
    "BadTopic",
    "BadTopicPattern",
    "BadWorkflowFile",
    "BadXml",
    "BrokenConversation",
    "BrokerRefused",
    "Busy",
    "CannotMeasure",
    "CannotReachBroker",
    "CorruptLog",
    "DataDirectoryInUse",
    "DataDirectoryUnusable",
    "DirectoryFull",
    "DiskFailed",
    "DiskFull",
    "ForeignOrigin",
    "HeadTooLarge",
    "InternalError",
    "MonitorOff",
    "NoSuchBox",
    "NoSuchDeadLetter",
    "NoSuchEntry",
    "NoSuchPath",
    "NoSuchPublisher",
    "NoSuchRun",
    "NoSuchSubscription",
    "NotInSpecification",
    "NotOpenToTheWorld",
    "NothingArrived",
    "NothingToEstimate",
    "PeerFailed",
    "RedriveFailed",
    "ShuttingDown",
    "SinkRefused",
    "SoapRefused",
    "SomeFailed",
    "TocsinError",
    "TooLarge",
    "TooManySubscriptions",
    "TooMuchKept",
    "TooSlow",
    "UnknownConcept",
    "catalogue",
]
