"""Rights of a token on the command line: each `--right`, and what belongs to it behind it."""

from __future__ import annotations

from argparse import Action, ArgumentError, ArgumentParser, Namespace
from typing import Any

Right = dict[str, Any]


class AddRight(Action):
    """`--right ACTION[:TOPIC]` begins another."""

    def __call__(self, parser: ArgumentParser, namespace: Namespace, text: Any, *_: Any) -> None:
        actions, _, topic = text.partition(":")
        right: Right = {"action": actions.split(",")}
        if topic:
            right["topic"] = topic
        setattr(namespace, self.dest, [*(getattr(namespace, self.dest) or ()), right])


class OfRight(Action):
    """An option of the right before it: its member is the option's `dest`."""

    def __call__(self, parser: ArgumentParser, namespace: Namespace, value: Any, *_: Any) -> None:
        rights: list[Right] | None = namespace.right
        name = self.option_strings[0]
        if not rights:
            raise ArgumentError(None, f"{name} belongs to the --right before it; there is not any")
        member = self.dest.removeprefix("right_")
        if member in rights[-1]:
            raise ArgumentError(None, f"{name} is given twice for one --right")
        rights[-1][member] = True if self.nargs == 0 else value


def right_words(right: Right) -> str:
    """As people read it."""
    action = right["action"]
    names = action if isinstance(action, str) else ",".join(action)
    what = right.get("resource") or right.get("topic", "")
    passing = f" where {right['filter']}" if "filter" in right else ""
    until = f" until {right['expires']}" if "expires" in right else ""
    return f"{names} {what}".strip() + passing + until
