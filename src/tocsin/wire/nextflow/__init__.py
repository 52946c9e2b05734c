"""Nextflow's weblog: what `-with-weblog URL` (the plugin nf-weblog) posts, as messages."""

from tocsin.wire.nextflow.names import Names
from tocsin.wire.nextflow.weblog import read_weblog

__all__ = ["Names", "read_weblog"]
