"""The job that we are part of, as batch systems give it in the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

AD_BYTES_MAX: Final = 1 << 20
# The first that is there counts. With it, the variable of the task in an array of jobs.
_SYSTEMS: Final = (
    ("slurm", "SLURM_JOB_ID", "SLURM_ARRAY_TASK_ID"),
    ("pbs", "PBS_JOBID", "PBS_ARRAY_INDEX"),
    ("lsf", "LSB_JOBID", "LSB_JOBINDEX"),
    ("flux", "FLUX_JOB_ID", ""),
    ("cobalt", "COBALT_JOBID", ""),
    ("oar", "OAR_JOB_ID", "OAR_ARRAY_INDEX"),
    ("aws batch", "AWS_BATCH_JOB_ID", "AWS_BATCH_JOB_ARRAY_INDEX"),
)


def job_of(environment: Mapping[str, str]) -> str:
    """What the batch system calls the job, as `slurm 4711_3`; empty if there is none."""
    for system, variable, task_variable in _SYSTEMS:
        job = environment.get(variable, "")
        if job:
            task = environment.get(task_variable, "") if task_variable else ""
            array = environment.get("SLURM_ARRAY_JOB_ID", job) if system == "slurm" else job
            is_task = task not in ("", "0", "undefined") or (system == "slurm" and task == "0")
            return f"{system} {array}_{task}" if is_task else f"{system} {job}"
    if environment.get("JOB_ID") and environment.get("SGE_ROOT"):
        return f"sge {environment['JOB_ID']}"
    return _condor(environment.get("_CONDOR_JOB_AD", ""))


def _condor(path: str) -> str:
    """HTCondor gives it in a file."""
    if not path:
        return ""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(AD_BYTES_MAX)
    except OSError:
        return ""
    found = dict(re.findall(r"(?m)^(ClusterId|ProcId)\s*=\s*(\d+)\s*$", text))
    return (
        f"htcondor {found['ClusterId']}.{found.get('ProcId', '0')}" if "ClusterId" in found else ""
    )
