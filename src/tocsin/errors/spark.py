"""T7: the archive in Spark."""

from __future__ import annotations

from tocsin.errors.root import TocsinError


class JavaMissing(TocsinError):
    """Spark runs on Java, and none that it can use was found.

    `pip install 'tocsin[spark]'` brings one along on Linux and Mac (x86-64 and ARM, glibc).
    Elsewhere install a Java 17 or newer (on Debian and Ubuntu `apt install
    openjdk-17-jre-headless`, with conda `conda install openjdk`, on a Mac `brew install openjdk`),
    or set JAVA_HOME to the directory of one that is there. A Java that is older is passed over.
    """

    code = "T751"


class SparkMissing(TocsinError):
    """The Python package of Spark is not installed: `pip install 'tocsin[spark]'`."""

    code = "T752"


class BadSourceOption(TocsinError):
    """An option of the Spark source `tocsin` is unknown, or its value is invalid."""

    code = "T753"
    exit_code = 2


class EventsGone(TocsinError):
    """Events that were asked for are no longer there: trimmed, or removed by hand.

    Nothing was skipped in silence: the read was stopped. To go on with what there is, say so:
    begin later with `after`, or set the option `holes` to `skip`, which passes over them and says
    in the log which they are.
    """

    code = "T754"
    http_status = 410


class NotArrow(TocsinError):
    """What answered is not a Tocsin broker, or is too old to answer in Arrow, or is a proxy."""

    code = "T755"
    http_status = 502
    exit_code = 3
