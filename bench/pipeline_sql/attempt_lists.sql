-- Lists of texts, united: few messages have some.
CREATE TEMP TABLE attempt_lists AS
WITH told AS (
    SELECT
        run, activity AS id, attempt, told.InputFile AS inputs, told.OutputFile AS outputs,
        told.ParentActivity AS parents
    FROM messages
    WHERE activity IS NOT NULL AND (
        told.InputFile IS NOT NULL OR told.OutputFile IS NOT NULL
        OR told.ParentActivity IS NOT NULL
    )
    UNION ALL BY NAME
    SELECT run, task.id AS id, 1 AS attempt, task.parents AS parents
    FROM (SELECT run, unnest(plan) AS task FROM messages WHERE plan IS NOT NULL)
    WHERE task.id IS NOT NULL AND task.parents IS NOT NULL
)
SELECT
    run, id, attempt,
    united(list(inputs) FILTER (inputs IS NOT NULL)) AS inputs,
    united(list(outputs) FILTER (outputs IS NOT NULL)) AS outputs,
    united(list(parents) FILTER (parents IS NOT NULL)) AS parents
FROM told
GROUP BY run, id, attempt
