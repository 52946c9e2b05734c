"""Publishers inside workflow engines: what Snakemake, Parsl and Dask do, on the blackboard."""
