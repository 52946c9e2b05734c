"""Whose turn it is on a lane: the subscriber whose next event is oldest."""

from __future__ import annotations

from heapq import heappop, heappush, heapreplace

from tocsin.broker.delivery.lane import Lane
from tocsin.broker.state.subscriber import Subscriber
from tocsin.event.subscription import State

LINE_SPARE = 64  # outdated places in a lane's line that are not worth the sweeping


def line_up(lane: Lane[Subscriber], subscriber: Subscriber) -> None:
    """Let the lane find it by the age of its next event, among the others of the sink."""
    waiting = subscriber.follower.waiting
    if waiting and subscriber.lined_up is not lane:
        subscriber.lined_up = lane
        heappush(lane.line, (waiting[0].seq, subscriber.follower.key))


def tidy(lane: Lane[Subscriber]) -> None:
    """Somebody left, whose place in the line stays behind. Too many of those are cleared away."""
    lane.only = next(iter(lane.members.values())) if len(lane.members) == 1 else None
    if len(lane.line) > 2 * len(lane.members) + LINE_SPARE:
        lane.line = []
        for member in lane.members.values():
            member.lined_up = None
            line_up(lane, member)


def next_member(lane: Lane[Subscriber]) -> Subscriber | None:
    """Of the lane's active subscribers the one whose next event is oldest."""
    only = lane.only
    if only is not None:
        ready = only.follower.waiting and only.subscription.state is State.ACTIVE
        return only if ready else None
    line = lane.line
    while line:
        seq, key = line[0]
        if (member := lane.members.get(key)) is None:
            heappop(line)
            continue
        waiting = member.follower.waiting
        if not waiting or not member.is_active:
            heappop(line)
            member.lined_up = None
        elif waiting[0].seq != seq:
            heapreplace(line, (waiting[0].seq, key))
        else:
            return member
    return None
