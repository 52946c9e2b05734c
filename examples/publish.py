# /// script
# requires-python = ">=3.11"
# dependencies = ["tocsin"]
# ///
"""Publish a few events: `python examples/publish.py`, with a broker running (`tocsin serve`)."""

from tocsin.client import Publisher

with Publisher(source="/examples/publish") as publisher:
    # One event. It is on the broker's disk when the call returns.
    sequence = publisher.publish("lead/ohio/radar", {"load5": 7, "system": "Linux"})
    print("stored as", sequence)

    # With everything that can be said about it.
    publisher.publish(
        "lead/ohio/radar",
        b"\x00\x01\x02",
        type="org.example.sweep",
        subject="sweep 42",
        content_type="application/octet-stream",
        run="42",
    )

    # Many, in large batches.
    many = publisher.publish_many((f"lead/ohio/station{n % 3}", {"n": n}) for n in range(1000))
    print("and", many, "more")
