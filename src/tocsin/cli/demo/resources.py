"""Part: machines register what they have; they are found by it, and watched, past a crash."""

from __future__ import annotations

from tocsin.cli.demo.context import DemoContext
from tocsin.client import Resources
from tocsin.errors import SomeFailed

ADVERTISED = "[system,=,Linux],[memory,<=,64],[disk,<=,320]"
MACHINES = {
    "node7": {"memory": 12, "disk": 200},
    "node8": {"memory": 48, "disk": 150},
    "node9": {"memory": 30, "disk": 20},
}
REQUEST = "system = Linux and disk > 120"


def run(demo: DemoContext) -> None:
    with Resources(demo.url) as resources:
        for name, values in MACHINES.items():
            resources.register(name, ADVERTISED, model="dynamic", attributes=values, kind="machine")
        found = resources.find(REQUEST, model="dynamic", order_by="memory desc")
        demo.print(f"Of {len(MACHINES)} machines, those with {REQUEST}, most memory first:")
        demo.table(
            ["id", "memory", "disk"],
            [
                [each.id, each.attributes["memory"], each.attributes["disk"]]
                for each in found.resources
            ],
        )
        with resources.watch(REQUEST, model="dynamic", timeout_s=10) as watch:
            seen = [next(watch), next(watch)]
            demo.print("Somebody watches. The disk of node8 fills up, that of node9 is emptied:")
            resources.update("node8", {"disk": 5})
            resources.update("node9", {"disk": 300})
            changes = [next(watch), next(watch)]
            for change in changes:
                demo.print(f"  {change.change} {change.resource.id}")
        demo.kill()
        demo.start()
        again = resources.find(REQUEST, model="dynamic", order_by="memory desc")
        demo.print("The broker was killed and started; found again, with the last values:")
        demo.print(f"  {', '.join(each.id for each in again.resources)}")
        for name in MACHINES:
            resources.withdraw(name)
    result = {
        "found": [each.id for each in found.resources],
        "watched": len(seen),
        "changes": [[each.change, each.resource.id] for each in changes],
        "after_the_crash": [each.id for each in again.resources],
    }
    demo.results["resources"] = result
    if result != EXPECTED:
        raise SomeFailed("other resources were found than there are", remedy="Please report this.")


EXPECTED = {
    "found": ["node8", "node7"],
    "watched": 2,
    "changes": [["removed", "node8"], ["added", "node9"]],
    "after_the_crash": ["node9", "node7"],
}
