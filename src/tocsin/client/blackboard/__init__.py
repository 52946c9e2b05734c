"""The blackboard for programs (paper 004): publish concept-value pairs, and get those asked for.

    board = InProcessBlackboard()
    with board.subscribe(["ActivityProblem"]) as problems:
        board.publish([Message({"ActivityFailed": "2026-11-16T06:40:00Z"})])
        print(problems.take(wait_s=1))

The link is whatever fits: `InProcessBlackboard` needs no broker, `HttpLink` and `WebSocketLink`
speak to one, and anything with the methods of `Link` may stand in their place.
"""

from tocsin.client.blackboard.http_link import HttpLink
from tocsin.client.blackboard.in_process import InProcessBlackboard
from tocsin.client.blackboard.link import Delivered, Link, Subscription
from tocsin.client.blackboard.open_link import open_link
from tocsin.client.blackboard.websocket_link import WebSocketLink
from tocsin.wire.blackboard.messages import Message, Profile

__all__ = [
    "Delivered",
    "HttpLink",
    "InProcessBlackboard",
    "Link",
    "Message",
    "Profile",
    "Subscription",
    "WebSocketLink",
    "open_link",
]
