"""A query for topics and its answer, as a topic discovery node and everybody else exchange them."""

from __future__ import annotations

from typing import Final, Literal, get_args

import msgspec

from tocsin.errors import BadTopicQuery

Language = Literal["", "text", "regex", "sql", "xpath", "xquery", "prefix", "uuid"]

LIMIT_DEFAULT: Final = 100
LIMIT_MAX: Final = 1_000
CURSOR_CHARS_MAX: Final = 1_024
NAME_CHARS_MAX: Final = 256
EXPRESSION_BYTES_MAX: Final = 8 << 10  # of XQuery
SHORT_BYTES_MAX: Final = 4 << 10  # of the other languages, which mostly allow less


class Query(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Advertisements that are valid now and for which all of this holds.

    `expression` is in the language, which is left out to list all. `created_from_ns` and the like
    are inclusive.
    """

    language: Language = ""
    expression: str = ""
    namespaces: tuple[tuple[str, str], ...] = ()  # prefixes of an XPath
    creator: str = ""  # the entity's id
    institution: str = ""
    created_from_ns: int | None = None
    created_until_ns: int | None = None
    expires_from_ns: int | None = None
    expires_until_ns: int | None = None
    duration_min_ns: int | None = None  # of the validity
    duration_max_ns: int | None = None
    valid_at_ns: int | None = None  # created by then, and not yet expired
    limit: int = LIMIT_DEFAULT
    cursor: str = ""  # `next` of the page before, for the same query


class Found(msgspec.Struct, frozen=True):
    """An advertisement: what it is of, and the document that the catalog was given."""

    uuid: str
    version: int
    document: bytes


class Page(msgspec.Struct, frozen=True):
    """Advertisements in no particular order, each at most once in all pages of a query.

    With `next` there may be more: ask again, with that as the cursor. `partial` says that the page
    has fewer than the limit because time ran out; what comes is not known to match yet.
    """

    advertisements: tuple[Found, ...]
    next: str = ""
    partial: bool = False


def check_query(query: Query) -> None:
    """BadTopicQuery if a part of it, apart from the expression, makes no sense."""
    if not 1 <= query.limit <= LIMIT_MAX:
        raise BadTopicQuery(
            f"the query asks for {query.limit} advertisements at once",
            remedy=f"Ask for 1 to {LIMIT_MAX}, and go on from the cursor.",
        )
    if query.language not in get_args(Language) or bool(query.language) != bool(query.expression):
        raise BadTopicQuery(
            "a query has an expression in one of the languages, or neither",
            remedy="The languages are text, regex, sql, xpath, xquery, prefix and uuid.",
        )
    expression_max = EXPRESSION_BYTES_MAX if query.language == "xquery" else SHORT_BYTES_MAX
    for what, text, chars_max in (
        ("expression", query.expression, expression_max),
        ("creator", query.creator, NAME_CHARS_MAX),
        ("institution", query.institution, NAME_CHARS_MAX),
        ("cursor", query.cursor, CURSOR_CHARS_MAX),
    ):
        _check_text(what, text, chars_max)
    if query.namespaces and query.language != "xpath":
        raise BadTopicQuery(
            "only an XPath has prefixes beside it",
            remedy="In XQuery write declare namespace p = 'URI'; before the query.",
        )
    for first, last in (
        (query.created_from_ns, query.created_until_ns),
        (query.expires_from_ns, query.expires_until_ns),
        (query.duration_min_ns, query.duration_max_ns),
    ):
        _check_times(first, last)
    _check_times(query.valid_at_ns, None)


def _check_text(what: str, text: str, chars_max: int) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise BadTopicQuery(
            f"the {what} of the query is not Unicode text", remedy="Send it in UTF-8."
        ) from None
    if size > chars_max:
        raise BadTopicQuery(
            f"the {what} of the query has {size} bytes", remedy=f"Send at most {chars_max}."
        )


def _check_times(first: int | None, last: int | None) -> None:
    for each in (first, last):
        if each is not None and not -(1 << 63) <= each < 1 << 63:
            raise BadTopicQuery(
                "a time of the query is out of range", remedy="Times are nanoseconds since 1970."
            )
    if first is not None and last is not None and first > last:
        raise BadTopicQuery(
            "a range of times ends before it begins", remedy="Give the earlier time first."
        )
