"""The directory's part of the description of the API."""

from __future__ import annotations

from tocsin.wire.api.directory_views import DirectoryPage, EntryShown
from tocsin.wire.api.openapi_parts import (
    ID,
    Json,
    object_of,
    operation,
    plain,
    query,
    refer,
    text,
    whole,
)

DIRECTORY_SHOWN = (EntryShown, DirectoryPage)

_NAMES: Json = {"type": "array", "items": {"type": "string"}}

DIRECTORY_ASKED: Json = {
    "RegistrationAsked": object_of(
        {
            "id": {"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{0,63}$"},
            "kind": {"enum": ["producer", "consumer"]},
            "name": text(),
            "address": {"type": ["string", "null"], "description": "host:port, or a URL"},
            "host": {
                "type": "string",
                "description": "where it runs; default: the host in the address",
            },
            "events": {
                "type": "array",
                "items": {
                    "anyOf": [
                        text(),
                        object_of(
                            {"name": text(), "namespace": text(), "parameters": _NAMES},
                            required=("name",),
                        ),
                    ]
                },
            },
            "attributes": {"type": "object"},
            "lease": {
                "type": ["string", "number"],
                "description": "an ISO 8601 duration, or seconds: from 10 s to 7 days",
            },
            "registered": {**text(), "description": "shown, and ignored when it is sent back"},
            "expires": {"type": ["string", "null"], "description": "as registered"},
        },
        required=("kind", "name"),
    )
}


def directory_paths() -> Json:
    wanted = [
        query("kind", "producer or consumer", {"enum": ["producer", "consumer"]}),
        query(
            "event", "only those that offer this event: UptimeCPULoad, {urn:lab}Temperature", text()
        ),
        query("host", "where it runs", text()),
        query("filter", "on attributes, name, host, kind and address", text()),
    ]
    pages = [
        query("limit", "how many at most", whole(1, 1000)),
        query("after", "`next` of the last response", text()),
    ]
    names = [
        query("suffix", "the name that entries are under", text()),
        query("schema", "in standard classes, or with ours", {"enum": ["standard", "tocsin"]}),
    ]
    entry = {"application/json": refer("RegistrationAsked")}
    shown: dict[int, str | None] = {200: "EntryShown", 201: "EntryShown"}
    renewing = {"application/json": {"anyOf": [refer("RegistrationAsked"), object_of({})]}}
    return {
        "/directory": {
            "get": operation(
                "Look up producers and consumers", {200: "DirectoryPage"}, parameters=wanted + pages
            ),
            "post": operation("Register, or register again", shown, body=entry),
        },
        "/directory/{id}": {
            "get": operation("Show an entry", {200: "EntryShown"}, parameters=[ID]),
            "put": operation(
                "Renew the lease with {}, or replace the entry",
                shown,
                parameters=[ID],
                body=renewing,
            ),
            "delete": operation("Delete an entry", {204: None}, parameters=[ID]),
        },
        "/directory.ldif": {
            "get": plain("The same look-up, as LDIF", "text/ldif", parameters=wanted + names)
        },
        "/directory-schema.ldif": {"get": plain("Our LDAP schema", "text/ldif")},
    }
