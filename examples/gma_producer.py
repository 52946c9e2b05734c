# /// script
# requires-python = ">=3.11"
# dependencies = ["tocsin"]
# ///
"""A producer of performance events: `python examples/gma_producer.py 127.0.0.1:8405`."""

import os
import sys

from tocsin.client.gma import Producer

with Producer(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:8405") as producer:

    @producer.event("UptimeCPULoad", period_s=10)
    def load(parameters):
        return dict(zip(("Load1", "Load5", "Load15"), os.getloadavg(), strict=True))

    print("consumers find it at", producer.address, flush=True)
    producer.serve_forever()
