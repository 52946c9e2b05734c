-- A straight line over the bytes of input, and how far it misses each value when it is left out.
CREATE TEMP TABLE kinds AS
SELECT row_number() OVER () AS kind, * FROM (SELECT DISTINCT workflow, activity, version FROM attempts);

CREATE TEMP TABLE good AS
SELECT
    kind, input_bytes::DOUBLE AS x, measured(duration_s) AS duration_s,
    measured(use_CpuSeconds) AS cpu_s, measured(use_MemoryPeak) AS memory_bytes,
    measured(use_IoReadBytes) AS read_bytes, measured(use_IoWriteBytes) AS written_bytes
FROM attempts JOIN kinds USING (workflow, activity, version)
WHERE state = 'succeeded';

CREATE TEMP TABLE cost_models AS
WITH $models
SELECT workflow, activity, version, told.* EXCLUDE (kind)
FROM ($all_models) AS told JOIN kinds USING (kind)
