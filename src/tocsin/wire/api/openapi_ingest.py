"""The description of the addresses that take engines' own messages."""

from __future__ import annotations

from tocsin.wire.api.ingest_views import BatchShown, IngestShown, ReceiversShown
from tocsin.wire.api.openapi_parts import Json, operation

INGEST_SHOWN = (IngestShown, BatchShown, ReceiversShown)

_ANY_OBJECT: Json = {"type": "object"}


def ingest_paths() -> Json:
    one = {"application/json": _ANY_OBJECT}
    many = {"application/json": {"type": "array", "items": _ANY_OBJECT}}
    return {
        "/ingest": {
            "get": operation("Counts of what engines sent so far", {200: "ReceiversShown"}),
        },
        "/ingest/nextflow": {
            "post": operation("Receive Nextflow's weblog messages", {202: "IngestShown"}, body=one),
        },
        "/api/v1/lineage": {
            "post": operation("Receive an OpenLineage event", {201: "IngestShown"}, body=one),
        },
        "/api/v1/lineage/batch": {
            "post": operation(
                "Receive a batch of OpenLineage events", {200: "BatchShown"}, body=many
            ),
        },
    }
