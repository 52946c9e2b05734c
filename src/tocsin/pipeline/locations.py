"""Where an archive may be and where tables may go, by what their addresses say."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from tocsin.errors.pipeline import BadPipelineOption

KAFKA: Final = "kafka://"
KAFKA_PORT: Final = 9092
# Of Kafka's own: longer names, and other characters, it refuses.
_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_SERVER: Final = re.compile(r"(?:[^\s:,/\[\]@]+|\[[0-9a-fA-F:.]+\])(?::\d{1,5})?")


def is_kafka(place: str) -> bool:
    return place.startswith(KAFKA)


def is_broker(archive: str) -> bool:
    return archive.startswith(("http://", "https://"))


def is_directory(archive: str) -> bool:
    """True if the archive is on a disk of this machine."""
    return "://" not in archive or archive.startswith("file://")


def has_files(archive: str) -> bool:
    """True if the archive is files, wherever; else it is read, once, from something that runs."""
    return not (is_broker(archive) or is_kafka(archive))


def directory_of(archive: str) -> Path:
    return Path(archive.removeprefix("file://"))


def on_this_disk(path: Path | str) -> str:
    """A path as Spark is to take it: without its scheme it may mean another file system, as it does
    wherever there is a Hadoop. An address is left as it is."""
    text = str(path)
    return text if "://" in text else f"file://{os.path.abspath(text)}"


def shown(place: str) -> str:
    """An address as it may be shown: who says it, and by which password, is left out."""
    scheme, separator, rest = place.partition("://")
    authority, slash, path = rest.partition("/")
    if not separator or scheme in ("abfs", "abfss"):  # there, a container stands before the @
        return place
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"


def has_password(place: str) -> bool:
    """True if an address says by which password, or if it is a broker's and says who."""
    rest = place.partition("://")[2]
    if is_broker(place):
        # Nothing else of a broker's address has an @, and a password may have a slash.
        return "@" in rest
    # A user alone may be a container, as in abfs://container@account, and is no secret.
    return ":" in rest.partition("/")[0].rpartition("@")[0]


@dataclass(frozen=True, slots=True)
class KafkaLocation:
    """Where Kafka is, and a topic of it, or how the names of several begin."""

    servers: str
    """As Kafka's clients take it: host:port, several by comma."""
    topic: str

    @classmethod
    def parse(cls, url: str) -> Self:
        """Read `kafka://host:9092,host2:9092/topic`. Raises BadPipelineOption."""
        hosts, _, topic = url.removeprefix(KAFKA).partition("/")
        servers = hosts.split(",")
        if not all(_SERVER.fullmatch(each) for each in servers):
            raise _unreadable(url, "names no host")
        if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
            raise _unreadable(url, "names no topic that Kafka could have")
        return cls(",".join(map(_with_port, servers)), topic)


def _with_port(server: str) -> str:
    return server if re.search(r":\d+$", server.rpartition("]")[2]) else f"{server}:{KAFKA_PORT}"


def _unreadable(url: str, why: str) -> BadPipelineOption:
    return BadPipelineOption(
        f"{shown(url)} {why}", remedy="Write it as kafka://host:9092/topic, several hosts by comma."
    )
