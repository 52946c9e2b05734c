"""Resource monitors: what an activity uses, measured only while somebody asks for it."""

from tocsin.client.tracking.monitors.kinds import (
    BeforeAfter,
    Monitor,
    Periodic,
    register_monitor,
    unregister_monitor,
)

__all__ = ["BeforeAfter", "Monitor", "Periodic", "register_monitor", "unregister_monitor"]
