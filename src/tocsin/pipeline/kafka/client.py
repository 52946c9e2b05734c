"""Kafka's own client, in Spark's JVM: is it there, and how far do the partitions go."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from tocsin.errors.archive import NoArchive
from tocsin.errors.pipeline import ConnectorMissing, PipelineFailed
from tocsin.pipeline.locations import KafkaLocation

SETTINGS: Final = "spark.tocsin.kafka."
"""Before a setting of Kafka's clients, as in spark.tocsin.kafka.security.protocol."""
CONNECTOR: Final = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
BYTES: Final = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
ANSWER_MS: Final = "20000"


def require_connector(spark: SparkSession) -> None:
    """Raises ConnectorMissing, with what to say so that it is there."""
    java: Any = spark._jvm
    loader = java.java.lang.Thread.currentThread().getContextClassLoader()
    try:
        java.java.lang.Class.forName(CONNECTOR, False, loader)
    except Py4JJavaError as error:
        scala = ".".join(java.scala.util.Properties.versionNumberString().split(".")[:2])
        package = f"org.apache.spark:spark-sql-kafka-0-10_{scala}:{spark.version}"
        raise ConnectorMissing(
            "Spark's connector to Kafka is not on the class path",
            remedy=f"Add: --conf spark.jars.packages={package}",
        ) from error


def client_settings(spark: SparkSession, location: KafkaLocation) -> dict[str, str]:
    """The options of Kafka's clients: where it is, and what was set for them."""
    given = {
        name.removeprefix(SETTINGS): value
        for name, value in spark.sparkContext.getConf().getAll()
        if name.startswith(SETTINGS)
    }
    # What was written in a transaction that was given up was never said.
    return {"isolation.level": "read_committed", **given, "bootstrap.servers": location.servers}


def extent(spark: SparkSession, location: KafkaLocation) -> tuple[dict[int, int], dict[int, int]]:
    """By partition, the first offset there is and the one after the last. Raises NoArchive."""
    java: Any = spark._jvm
    with _kafka_errors(location), _consumer(spark, location) as consumer:
        partitions = java.java.util.ArrayList()
        for each in consumer.partitionsFor(location.topic) or ():
            partitions.add(
                java.org.apache.kafka.common.TopicPartition(location.topic, each.partition())
            )
        if partitions.isEmpty():
            raise NoArchive(
                f"Kafka at {location.servers} has no topic {location.topic}",
                remedy="Check its name, and that you may read it.",
            )
        return (
            _by_partition(consumer.beginningOffsets(partitions)),
            _by_partition(consumer.endOffsets(partitions)),
        )


@contextmanager
def _consumer(spark: SparkSession, location: KafkaLocation) -> Iterator[Any]:
    java: Any = spark._jvm
    settings = java.java.util.HashMap()
    own = {"default.api.timeout.ms": ANSWER_MS, "allow.auto.create.topics": "false"}
    read = {"key.deserializer": BYTES, "value.deserializer": BYTES}
    for name, value in {**own, **client_settings(spark, location), **read}.items():
        settings.put(name, value)
    consumer = java.org.apache.kafka.clients.consumer.KafkaConsumer(settings)
    try:
        yield consumer
    finally:
        consumer.close()


def _by_partition(offsets: Any) -> dict[int, int]:
    return {each.getKey().partition(): each.getValue() for each in offsets.entrySet()}


@contextmanager
def _kafka_errors(location: KafkaLocation) -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        raise PipelineFailed(
            f"Kafka at {location.servers} did not describe topic {location.topic}: {_words(error)}",
            remedy="See that it runs and can be reached from here; what its clients need to be "
            f"let in is set with --conf {SETTINGS}security.protocol=SSL and the like.",
        ) from error
    except Py4JError as error:
        raise ConnectorMissing(
            f"Kafka's client is not on the class path: {error}",
            remedy="Name all jars of the connector, or let Spark find them by "
            "--conf spark.jars.packages=.",
        ) from error


def _words(error: Py4JJavaError) -> str:
    """What Java said, down to the cause."""
    said: list[str] = []
    thrown = error.java_exception
    while thrown is not None and len(said) < 3:
        said.append(str(thrown.getMessage() or thrown.getClass().getSimpleName()))
        thrown = thrown.getCause()
    return " ".join("; ".join(said).split())[:300]
