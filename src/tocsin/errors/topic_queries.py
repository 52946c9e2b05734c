"""T37: the catalog of topic advertisements, and queries to it."""

from __future__ import annotations

from tocsin.errors.root import TocsinError


class BadTopicQuery(TocsinError):
    """A query for topics is invalid, too long, or of a kind that could take too long. The message
    says where. Nothing was searched.

    The languages are text, regex, sql, xpath, xquery, prefix and uuid.
    """

    code = "T370"

    def __init__(self, problem: str, *, remedy: str, text: str = "", position: int = 0) -> None:
        super().__init__(problem, remedy=remedy)
        self.text = text
        self.position = position

    def pointed(self) -> str:
        """The query, with a caret under the place where it stops making sense."""
        return f"{self.text}\n{' ' * self.position}^"


class TopicQueryTooCostly(TocsinError):
    """A query for topics took too much time or memory, or ended the process that evaluated it. It
    was stopped, and other queries were not affected.

    Ask for less: name a value that must occur (as in `//instrument[@band = 'S']`), a creator or
    times, or write a simpler expression.
    """

    code = "T371"
    http_status = 422


class TopicCatalogFull(TocsinError):
    """The catalog of topics keeps as many advertisements as it may, or as many as it may of one
    creator. Withdraw some, wait until some expire, or raise the limit.
    """

    code = "T372"
    http_status = 507


class XQueryMissing(TocsinError):
    """This broker cannot evaluate XQuery: the package for it, an extra, is not installed."""

    code = "T373"
    http_status = 501
