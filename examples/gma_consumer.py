# /// script
# requires-python = ">=3.11"
# dependencies = ["tocsin"]
# ///
"""Consume from a producer: `python examples/gma_consumer.py 127.0.0.1:8405 UptimeCPULoad 2s 5`."""

import sys

from tocsin.client.gma import Consumer

defaults = ["127.0.0.1:8405", "UptimeCPULoad", "2s", "5"]
address, name, period, count = sys.argv[1:] + defaults[len(sys.argv) - 1 :]

with Consumer(address) as consumer:
    print("it has", *consumer.event_names())
    print("now:", consumer.query(name)["Load5"])

    # Every consumer has its own Period, and may have a filter: filter="Load5 >= 5.0".
    with consumer.subscribe(name, period=period) as events:
        for number, event in enumerate(events, 1):
            print(event.time, event["HostName"], event["Load5"])
            if number == int(count):
                break
