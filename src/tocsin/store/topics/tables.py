"""The tables of the catalog.

Every index begins with the number of the label that the policy gave an advertisement, the indexes
of words and grams in each of their entries. So a search goes through the advertisements that
whoever asks may see and no others, and neither what it finds nor how long it takes depends on
those that are hidden from him.
"""

from __future__ import annotations

from typing import Final

import apsw

from tocsin.errors import CorruptLog, DataDirectoryUnusable

FILE_NAME: Final = "topics.sqlite"
APPLICATION_ID: Final = 0x546F6374  # "Toct"
SCHEMA_VERSION: Final = 1

# Both indexes of full text hold no copy of the text. Their tokens are made by us: letters and
# digits, whatever the text has (`rows.py`).
_FULL_TEXT: Final = "content='', contentless_delete=1, tokenize='ascii'"

TABLES: Final = {
    "labels": ("CREATE TABLE labels (no INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT"),
    # What is known of a topic for as long as any version of it could come again.
    "heads": (
        "CREATE TABLE heads (uuid TEXT PRIMARY KEY NOT NULL, version INTEGER NOT NULL, "
        "creator TEXT NOT NULL, until_ns INTEGER NOT NULL, bytes INTEGER NOT NULL, "
        "advert INTEGER, withdrawal BLOB) STRICT, WITHOUT ROWID"
    ),
    # Heads, and the bytes of what they have, of each creator; under '' of all.
    "usage": (
        "CREATE TABLE usage (creator TEXT PRIMARY KEY NOT NULL, heads INTEGER NOT NULL, "
        "bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID"
    ),
    "adverts": (
        "CREATE TABLE adverts (id INTEGER PRIMARY KEY, label INTEGER NOT NULL, "
        "uuid TEXT NOT NULL, version INTEGER NOT NULL, encrypted INTEGER NOT NULL, "
        "created INTEGER NOT NULL, expires INTEGER NOT NULL, duration INTEGER NOT NULL, "
        "creator TEXT NOT NULL, institution TEXT NOT NULL, topic TEXT NOT NULL) STRICT"
    ),
    "documents": (
        "CREATE TABLE documents (id INTEGER PRIMARY KEY, crc INTEGER NOT NULL, "
        "document BLOB NOT NULL) STRICT"
    ),
    "forms": (
        "CREATE TABLE forms (id INTEGER PRIMARY KEY, hashes BLOB NOT NULL, xml BLOB NOT NULL, "
        "lines BLOB NOT NULL) STRICT"
    ),
    "properties": (
        "CREATE TABLE properties (advert INTEGER NOT NULL, name TEXT NOT NULL, "
        "label INTEGER NOT NULL, number REAL, text TEXT, flag INTEGER, "
        "PRIMARY KEY (advert, name)) STRICT, WITHOUT ROWID"
    ),
    "xml_values": (
        "CREATE TABLE xml_values (label INTEGER NOT NULL, hash INTEGER NOT NULL, "
        "advert INTEGER NOT NULL, PRIMARY KEY (label, hash, advert)) STRICT, WITHOUT ROWID"
    ),
    "words": f"CREATE VIRTUAL TABLE words USING fts5 (tokens, {_FULL_TEXT})",
    "grams": f"CREATE VIRTUAL TABLE grams USING fts5 (tokens, {_FULL_TEXT}, detail='none')",
}
COLUMNS: Final = ("uuid", "topic", "creator", "institution", "created", "expires", "duration")
KINDS: Final = ("number", "text", "flag")
INDEXES: Final = (
    *(f"CREATE INDEX adverts_{column} ON adverts (label, {column})" for column in COLUMNS),
    "CREATE INDEX adverts_label ON adverts (label)",
    *(
        f"CREATE INDEX properties_{kind} ON properties (label, name, {kind}, advert) "
        f"WHERE {kind} IS NOT NULL"
        for kind in KINDS
    ),
    "CREATE INDEX heads_until ON heads (until_ns)",
)
# What a query may read: these, and what SQLite keeps the two indexes of full text in.
SEARCHED: Final = frozenset(
    {"labels", "adverts", "documents", "forms", "properties", "xml_values", "words", "grams"}
    | {
        f"{table}_{part}"
        for table in ("words", "grams")
        for part in ("data", "idx", "docsize", "config")
    }
)


def create_tables(connection: apsw.Connection) -> None:
    """Make the tables if the database is new; whole or not at all."""
    run = connection.execute
    run("BEGIN IMMEDIATE")
    if not connection.pragma("user_version") and not _names(connection):
        for statement in (*TABLES.values(), *INDEXES):
            run(statement)
        run(f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={SCHEMA_VERSION}")
    run("COMMIT")


def check_tables(connection: apsw.Connection, path: str) -> None:
    """Raise unless these are our tables, in the version that we know."""
    version = connection.pragma("user_version")
    if connection.pragma("application_id") != APPLICATION_ID or version > SCHEMA_VERSION:
        raise DataDirectoryUnusable(
            f"{path} is not a catalog of topics that this version of Tocsin made",
            remedy="Start the version that made it, or move the file away to begin a new catalog.",
        )
    if version != SCHEMA_VERSION or not _names(connection).issuperset(TABLES):
        raise damaged(path, "its tables are not as Tocsin made them")


def damaged(path: str, problem: str) -> CorruptLog:
    return CorruptLog(
        f"{path}: {problem}",
        remedy="Check the disk. Restore a copy, or move the file away: creators advertise again.",
    )


def _names(connection: apsw.Connection) -> frozenset[object]:
    rows = connection.execute("SELECT name FROM sqlite_schema").fetchall()
    return frozenset(name for (name,) in rows)
