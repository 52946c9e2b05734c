"""What a refusal says: which right is missing, as one would grant it, and who grants rights.

The words depend on what was asked, and on nothing that there is: they are the same for what exists
and for what does not.
"""

from __future__ import annotations

from typing import Final

OPERATOR: Final = "the operator of this broker"
RIGHT_ENDED: Final = "the right or the credential that it was opened with has ended"
CHARS_MAX: Final = 200  # of what somebody sent

# Whoever makes one of these needs a right of this kind, to some event.
MADE_BY: Final = {
    "box": "subscribe",
    "deadletter": "subscribe",
    "discovery": "subscribe",
    "subscription": "subscribe",
    "directory": "publish",
    "registration": "publish",
    "resource": "publish",
}
# Of one's own, or all that there are: how people call them.
PLURAL: Final = {
    "box": "message boxes",
    "deadletter": "dead letters",
    "directory": "entries of the directory",
    "discovery": "requests for resources",
    "link": "links to other brokers",
    "registration": "registered publishers",
    "resource": "resources",
    "run": "runs",
    "subscription": "subscriptions",
    "tdn": "topic discovery nodes",
}
SINGULAR: Final = {
    "activity": "the activity",
    "box": "the message box",
    "deadletter": "the dead letter",
    "directory": "the entry of the directory",
    "discovery": "the request for resources",
    "link": "the link",
    "registration": "the registered publisher",
    "resource": "the resource",
    "run": "the run",
    "subscription": "the subscription",
    "tdn": "the topic discovery node",
    "workflow": "the workflow",
}
WHOLE: Final = {
    "access": "tokens, rules and the audit log",
    "archive": "the archive",
    "blackboard": "the blackboard",
    "broker": "the broker itself",
    "clock": "the clock of the broker",
    "device": "the description of the device",
    "estimates": "estimates",
    "events": "the log",
    "files": "which files runs use",
    "gma": "where performance events are taken",
    "ingest": "what other systems have sent",
    "overlay": "the overlay",
    "service": "what services of the broker keep",
    "soap": "descriptions of the SOAP services",
    "status": "the figures of the broker",
    "topics": "the topics that there are",
    "types": "the types of events that there are",
}
ON_EVENTS: Final = frozenset({"events", "topics", "types"})


def missing(action: str, resource: str) -> tuple[str, str]:
    """What was asked for, and the right that is missing: `publish to lead/ohio`, and `publish
    lead/ohio`."""
    return _publishing(resource) if action == "publish" else _other(action, resource)


def refusal(name: str, action: str, resource: str) -> str:
    """The problem, in the words of who asked."""
    return f"{name} may not {missing(action, resource)[0]}"


def who_grants(action: str, resource: str, contact: str) -> str:
    """The remedy: the right to be granted, and by whom."""
    return f"It needs the right {missing(action, resource)[1]}, which {contact} can grant."


def _publishing(resource: str) -> tuple[str, str]:
    kind, _, name = resource.partition("/")
    if kind == "filter":
        what = "any event" if name == "everything" else f"events that pass {_quoted(name)}"
        return f"announce {what}", "`publish TOPIC`, for some topic of these"
    if resource == "*" or kind == "endpoint":
        return "publish on any topic", "`publish TOPIC`, for some topic"
    if not resource:
        return "publish without a topic", "`publish **`"
    return f"publish to {_quoted(resource)}", f"`publish {_quoted(resource)}`"


def _other(action: str, resource: str) -> tuple[str, str]:
    kind, slash, name = resource.partition("/")
    if kind == "filter":
        what = "any event" if name == "everything" else f"events that pass {_quoted(name)}"
        return f"{action} to {what}", f"`{action} TOPIC`, for some topic of these"
    if kind == "topic":
        return f"{action} the last event on {_quoted(name)}", f"`{action} {_quoted(name)}`"
    if kind in ON_EVENTS:
        return f"{action} {WHOLE[kind]}", f"`{action} TOPIC`, for some topic"
    if name == "own" and action == "read" and MADE_BY.get(kind) == "publish":
        # Whoever only looks for them should not be told to be given a right to make some.
        return f"read {PLURAL[kind]}", f"`read {kind}/*`"
    if name == "own" and kind in MADE_BY:
        return f"have {PLURAL[kind]}", f"`{MADE_BY[kind]} TOPIC`, for some topic"
    verb = "use" if action == "subscribe" else action
    if name == "*" and kind in PLURAL:
        return f"{verb} the {PLURAL[kind]} of others", f"`{action} {kind}/*`"
    if kind in SINGULAR and slash:
        return f"{verb} {SINGULAR[kind]} {_quoted(name)}", f"`{action} {kind}/{_quoted(name)}`"
    if kind in WHOLE:
        return f"{verb} {WHOLE[kind]}", f"`{action} {kind}{'/*' if slash else ''}`"
    return f"{verb} {_quoted(resource)}", f"`{action} {_quoted(resource)}`"


def _quoted(text: str) -> str:
    """As it was sent, on one line and not endless."""
    shown = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
    return shown if len(shown) <= CHARS_MAX else f"{shown[:CHARS_MAX]}..."
