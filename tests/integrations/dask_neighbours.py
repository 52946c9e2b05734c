"""Two clients of one scheduler, each with a plugin of its own.

python dask_neighbours.py BROKER
"""

from __future__ import annotations

import sys
import time

from distributed import Client, LocalCluster

from tocsin.integrations.dask import TocsinPlugin


def main(broker: str) -> None:
    cluster = LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    )
    with cluster:
        with Client(cluster) as ana, Client(cluster) as ben:
            for client, name in ((ana, "of-ana"), (ben, "of-ben")):
                plugin = TocsinPlugin(name, broker=broker, client=client.id, spool="spool")
                client.register_plugin(plugin)
            print(
                sum(ana.gather(ana.map(abs, [-1, -2], key="a"))),
                ben.submit(abs, -4, key="b").result(),
            )
            print(len([name for name in cluster.scheduler.plugins if "tocsin" in name]))
        while any("tocsin" in name for name in cluster.scheduler.plugins):
            time.sleep(0.01)


if __name__ == "__main__":
    main(*sys.argv[1:])
