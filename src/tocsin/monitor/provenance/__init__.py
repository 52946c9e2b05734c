"""A run's provenance as W3C PROV and as a Workflow Run RO-Crate. Pure: records in, bytes out."""

from tocsin.monitor.provenance.crate.archive import crate_zip
from tocsin.monitor.provenance.view import RunView, WorkflowVersion
from tocsin.monitor.provenance.write_json import prov_json, prov_json_chunks
from tocsin.monitor.provenance.write_n import prov_n, prov_n_chunks
from tocsin.monitor.provenance.write_turtle import turtle, turtle_chunks

__all__ = [
    "RunView",
    "WorkflowVersion",
    "crate_zip",
    "prov_json",
    "prov_json_chunks",
    "prov_n",
    "prov_n_chunks",
    "turtle",
    "turtle_chunks",
]
