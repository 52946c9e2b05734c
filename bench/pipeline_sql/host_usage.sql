-- By host and hour: what attempts that ended told, and what agents saw.
CREATE TEMP TABLE host_usage AS
WITH told AS (
    SELECT
        host, date_trunc('hour', ended) AS hour,
        count(*) AS attempts, sum(duration_s) AS busy_s,
        sum(measured(use_CpuSeconds)) AS cpu_s,
        sum(measured(use_IoReadBytes)) AS read_bytes,
        sum(measured(use_IoWriteBytes)) AS written_bytes,
        avg(measured(use_CpuPercent)) AS mean_cpu, max(measured(use_CpuPercent)) AS max_cpu,
        avg(measured(use_MemoryPeak)) AS mean_memory, max(measured(use_MemoryPeak)) AS max_memory
    FROM attempts
    WHERE state IN ('succeeded', 'failed', 'retrying', 'cancelled') AND ended IS NOT NULL
        AND host IS NOT NULL
    GROUP BY ALL
), watched AS (
    SELECT
        type, date_trunc('hour', "at") AS hour, attributes AS a,
        coalesce(a ->> '$$.HostName.value', a ->> '$$.HostName') AS host
    FROM events
    WHERE type IN ($load_type, $cpu_type, $memory_type, $disk_type)
), samples AS (
    SELECT
        host, hour,
        CASE WHEN type = $load_type THEN told_number(a, 'Load1') END AS load,
        CASE WHEN type = $cpu_type THEN told_number(a, 'Usage') END AS cpu,
        CASE WHEN type = $memory_type THEN coalesce(
            told_number(a, 'Total') - told_number(a, 'Available'), told_number(a, 'Used'))
            END AS memory,
        CASE WHEN type = $disk_type
            THEN told_number(a, 'ReadRate') * told_number(a, 'Interval') END AS read,
        CASE WHEN type = $disk_type
            THEN told_number(a, 'WriteRate') * told_number(a, 'Interval') END AS written
    FROM watched
    WHERE host IS NOT NULL
), seen AS (
    SELECT
        host, hour, count(*) AS samples, avg(load) AS mean_load,
        avg(cpu) AS mean_cpu, max(cpu) AS max_cpu,
        avg(memory) AS mean_memory, max(memory) AS max_memory,
        sum(read) AS read, sum(written) AS written
    FROM samples
    GROUP BY ALL
)
SELECT
    host, hour, coalesce(samples, 0) AS samples, coalesce(attempts, 0) AS attempts,
    coalesce(busy_s, 0) AS busy_s,
    coalesce(seen.mean_cpu, told.mean_cpu) AS mean_cpu_percent,
    coalesce(seen.max_cpu, told.max_cpu) AS max_cpu_percent,
    coalesce(seen.mean_memory, told.mean_memory) AS mean_memory_bytes,
    coalesce(seen.max_memory, told.max_memory) AS max_memory_bytes,
    cpu_s, coalesce(read, read_bytes) AS read_bytes, coalesce(written, written_bytes)
        AS written_bytes,
    mean_load
FROM told FULL JOIN seen USING (host, hour)
