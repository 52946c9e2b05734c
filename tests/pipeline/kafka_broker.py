"""A real Kafka on loopback, one process without ZooKeeper; and Spark's connector to it."""

from __future__ import annotations

import base64
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pyspark
from kafka.admin import KafkaAdminClient, NewTopic

from pipeline.jars import fetched, needed
from tocsin.pipeline.spark.java import find_java

HERE = Path(__file__).parent / "poms"
START_S = 120.0
# The connector of this very Spark; where the repository lacks it, near ones that work with it.
CONNECTORS = (
    (pyspark.__version__, pyspark.__version__),
    ("4.2.0", "4.2.0"),
    ("4.2.0", "4.1.0-preview1"),
)
SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={directory}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
log.retention.ms=-1
"""


def connector(directory: Path) -> str:
    """The jars with which Spark reads and writes Kafka, as spark.jars takes them."""
    found: Path | str = ""
    for version, token in CONNECTORS:
        place = directory / f"connector-{version}-{token}"
        found = fetched(
            HERE / "connector.xml", place, connector_version=version, token_version=token
        )
        if isinstance(found, Path):
            break
    return ",".join(str(each) for each in sorted(needed(found).glob("*.jar")))


@contextmanager
def kafka(directory: Path) -> Iterator[str]:
    """The address of a broker that ends with the block."""
    lib = needed(fetched(HERE / "broker.xml", directory / "broker"))
    port, controller = _free_ports()
    settings = directory / "server.properties"
    settings.write_text(SETTINGS.format(port=port, controller=controller, directory=directory))
    java = [str(find_java().home / "bin" / "java"), "-Xmx384m", "-cp", f"{lib}/*"]
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    log = directory / "kafka.log"
    with log.open("wb") as out:
        subprocess.run(
            [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings)],
            check=True,
            stdout=out,
            stderr=out,
        )
        process = subprocess.Popen([*java, "kafka.Kafka", str(settings)], stdout=out, stderr=out)
    try:
        _wait_for(port, process, log)
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def new_topic(address: str, name: str, partitions: int) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=address)) as admin:
        admin.create_topics([NewTopic(name, partitions, 1)])


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Until it takes connections. Its clients wait longer each time that it does not."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), 1.0):
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"Kafka did not start: {log.read_text(errors='replace')[-2000:]}")
