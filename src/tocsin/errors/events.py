"""T1: events, topics and filters."""

from __future__ import annotations

from tocsin.errors.root import TocsinError


class BadEvent(TocsinError):
    """An event breaks the CloudEvents rules or a limit of this broker.

    Nothing of the request was kept: not the events before it in a batch either.
    """

    code = "T101"


class BadTopic(TocsinError):
    """A topic is levels separated by single slashes: weather/ohio/radar, without wildcards."""

    code = "T102"


class BadTopicPattern(TocsinError):
    """A pattern is a topic in which a level may be * (exactly one) or ** (any number, or none)."""

    code = "T103"


class BadFilter(TocsinError):
    """A filter could not be read. The message shows the text with a mark under the character."""

    code = "T104"

    def __init__(self, problem: str, *, remedy: str, text: str = "", position: int = 0) -> None:
        super().__init__(problem, remedy=remedy)
        self.text = text
        self.position = position

    def pointed(self) -> str:
        """The text, and a caret under the character that is wrong."""
        line_start = self.text.rfind("\n", 0, self.position) + 1
        line = self.text[line_start:].split("\n", 1)[0]
        return f"{line}\n{' ' * (self.position - line_start)}^"


class BadXml(TocsinError):
    """XML is malformed, over a limit, or has a document type, which is never read."""

    code = "T105"


class ReservedTopic(TocsinError):
    """Topics below `Services/Discovery` and `Entity` are for control messages, and have no events.

    Topics are discovered by these messages. They are sent by `POST /topics/messages` and come by
    `GET /topics/messages/stream`; no subscription gets them, and they are not stored.
    """

    code = "T106"
