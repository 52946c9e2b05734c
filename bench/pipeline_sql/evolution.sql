-- The versions of each workflow, what was changed, and what became of durations.
CREATE TEMP TABLE evolution AS
WITH told AS (
    SELECT max(seq) AS seq, arg_max(one, seq) AS one
    FROM (
        SELECT seq, source, id, {
            'at': "at", 'concept': facts.evolution, 'workflow': facts.WorkflowName,
            'version': facts.WorkflowVersion, 'previous': facts.PreviousVersion,
            'detail': facts.ChangeDetail, 'activity': facts.ActivityType} AS one
        FROM clean
        WHERE run IS NULL AND facts.evolution IS NOT NULL AND facts.WorkflowName IS NOT NULL
    )
    GROUP BY source, id
), seen AS (
    SELECT
        workflow, version, coalesce(started, created, last_event) AS begin_at,
        coalesce(last_event, ended, started) AS end_at, state,
        CASE WHEN state = 'completed' THEN duration_s END AS lasted_s,
        NULL::STRUCT(seq BIGINT, previous VARCHAR) AS saved
    FROM runs
    UNION ALL
    SELECT
        one.workflow, one.version, one."at", one."at", NULL, NULL,
        CASE WHEN one.concept IN ('VersionSaved', 'VersionForked')
            THEN {'seq': seq, 'previous': one.previous} END
    FROM told
), versions AS (
    SELECT
        workflow, version, min(begin_at) AS first_seen, max(end_at) AS last_seen,
        count(state) AS runs, count(*) FILTER (state = 'completed') AS completed,
        count(*) FILTER (state = 'failed') AS failed, avg(lasted_s) AS mean_s,
        quantile_cont(lasted_s, 0.5) AS p50_s, quantile_cont(lasted_s, 0.9) AS p90_s,
        max(saved) AS saved
    FROM seen
    GROUP BY workflow, version
), linked AS (
    SELECT * EXCLUDE (saved), CASE
        WHEN saved IS NULL
            THEN nullif(lag(version) OVER (PARTITION BY workflow ORDER BY first_seen, version), '')
        WHEN saved.previous <> version THEN nullif(saved.previous, '') END AS previous
    FROM versions
), changes AS (
    SELECT workflow, version, list(words[1:$change_chars_max] ORDER BY seq) AS changes
    FROM (
        SELECT
            seq, one.workflow, one.version,
            concat_ws(': ', concat_ws(' ', one.concept, one.activity), coalesce(nullif(
                concat_ws(', ', one.detail ->> '$$.what', CASE
                    WHEN one.detail ->> '$$.was' IS NOT NULL OR one.detail ->> '$$.is' IS NOT NULL
                    THEN concat(
                        coalesce(one.detail ->> '$$.was', 'nothing'), ' -> ',
                        coalesce(one.detail ->> '$$.is', 'nothing')) END),
                ''), one.detail)) AS words,
            row_number() OVER (PARTITION BY one.workflow, one.version ORDER BY seq) AS number
        FROM told
        WHERE one.concept <> 'VersionSaved'
    )
    WHERE number <= $names_max
    GROUP BY workflow, version
), ran AS (
    SELECT DISTINCT workflow, version FROM activity_stats
), both_ran AS (
    SELECT workflow, version, previous FROM linked
    WHERE (workflow, version) IN (SELECT (workflow, version) FROM ran)
        AND (workflow, previous) IN (SELECT (workflow, version) FROM ran)
), compared AS (
    SELECT
        workflow, version, activity, has.p50_s / nullif(had.p50_s, 0) AS ratio,
        has.is_there IS NULL AS is_gone, had.is_there IS NULL AS is_new
    FROM (
        SELECT workflow, version, activity, p50_s, true AS is_there
        FROM both_ran JOIN activity_stats USING (workflow, version)
    ) AS has FULL JOIN (
        SELECT b.workflow, b.version, s.activity, s.p50_s, true AS is_there
        FROM both_ran AS b JOIN activity_stats AS s
            ON s.workflow = b.workflow AND s.version = b.previous
    ) AS had USING (workflow, version, activity)
), classed AS (
    SELECT
        workflow, version, activity, class,
        row_number() OVER (
            PARTITION BY workflow, version, class
            ORDER BY CASE WHEN ratio >= 1 THEN -ratio ELSE coalesce(ratio, 0) END, activity)
            AS number
    FROM (
        SELECT *, CASE
            WHEN is_new THEN 'added' WHEN is_gone THEN 'removed'
            WHEN ratio >= 1.1 THEN 'slower' WHEN ratio <= 0.9 THEN 'faster' END AS class
        FROM compared
    )
    WHERE class IS NOT NULL
), lists AS (
    SELECT
        workflow, version,
        list(activity ORDER BY number) FILTER (class = 'slower') AS slower,
        list(activity ORDER BY number) FILTER (class = 'faster') AS faster,
        list(activity ORDER BY number) FILTER (class = 'added') AS added,
        list(activity ORDER BY number) FILTER (class = 'removed') AS removed
    FROM classed
    WHERE number <= $names_max
    GROUP BY workflow, version
)
SELECT
    v.*, v.p50_s / nullif(before.p50_s, 0) AS ratio,
    coalesce(changes.changes, []) AS changes, coalesce(slower, []) AS slower,
    coalesce(faster, []) AS faster, coalesce(added, []) AS added, coalesce(removed, []) AS removed
FROM linked AS v
LEFT JOIN linked AS before ON before.workflow = v.workflow AND before.version = v.previous
LEFT JOIN changes
    ON changes.workflow = v.workflow AND changes.version IS NOT DISTINCT FROM v.version
LEFT JOIN lists ON lists.workflow = v.workflow AND lists.version IS NOT DISTINCT FROM v.version
