"""OpenLineage run events, as Airflow, Spark, dbt and others post them, as messages."""

from tocsin.wire.openlineage.events import read_batch, read_event

__all__ = ["read_batch", "read_event"]
