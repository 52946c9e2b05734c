-- By their hash those that may be repetitions are found; which are, source and id say.
CREATE TEMP TABLE repeated_events AS
WITH twice AS (
    SELECT hash(source, id) AS key FROM clean GROUP BY key HAVING count(*) > 1
)
SELECT seq
FROM (
    SELECT seq, row_number() OVER (PARTITION BY source, id ORDER BY seq) AS place
    FROM clean
    WHERE hash(source, id) IN (SELECT key FROM twice)
)
WHERE place > 1;

CREATE TEMP VIEW events AS
SELECT
    * EXCLUDE (facts, plan), facts.WorkflowName AS workflow,
    CASE WHEN is_clock_off(seconds_between("at", received)) THEN 0
        ELSE greatest(seconds_between("at", received), 0) END AS late_s
FROM clean ANTI JOIN repeated_events USING (seq);

-- What is under way is seen as it was when the last event was received.
SET VARIABLE now = (SELECT max(received) FROM events);
