-- What the messages and plans say of each attempt.
CREATE TEMP TABLE attempt_cells AS
WITH cells AS (
    SELECT run, activity AS id, attempt, $order_at AS ord, $activity_cells
    FROM messages
    WHERE activity IS NOT NULL
    UNION ALL BY NAME
    SELECT
        run, task.id AS id, 1 AS attempt, ord, planned AS state,
        task.type AS type, task.external_bytes AS external_bytes
    FROM (
        SELECT run, unnest(plan) AS task, $order_at AS ord, $planned_at AS planned
        FROM messages ANTI JOIN repeated_events USING (seq) WHERE plan IS NOT NULL
    )
    WHERE task.id IS NOT NULL
)
SELECT run, id, attempt, $activity_merged,
    max(CASE WHEN type IS NOT NULL THEN ord END) AS type_ord
FROM cells
GROUP BY run, id, attempt
