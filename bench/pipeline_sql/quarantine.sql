-- A sequence number stands for one record. A bitmap for each 32,768 of them shows where it does not.
CREATE TEMP TABLE crowded AS
SELECT seq >> 15 AS bucket
FROM raw
WHERE seq > 0
GROUP BY bucket
HAVING count(*) > bit_count(bitstring_agg((seq & 32767)::INTEGER, 0, 32767));

CREATE TEMP VIEW judged AS
SELECT * EXCLUDE (facts, plan), CASE
    WHEN coalesce(seq, 0) < 1 THEN 'it has no sequence number'
    WHEN coalesce(length(id), 0) = 0 THEN 'it has no id'
    WHEN length(id) > $name_max THEN 'its id is too long to be one'
    WHEN coalesce(length(source), 0) = 0 THEN 'it has no source'
    WHEN length(source) > $name_max THEN 'its source is too long to be one'
    WHEN coalesce(length(type), 0) = 0 THEN 'it has no type'
    WHEN length(type) > $name_max THEN 'its type is too long to be one'
    WHEN received IS NULL THEN 'it has no time (received)'
    WHEN "at" IS NULL THEN 'it has no time (at)'
    WHEN length(topic) > $name_max THEN 'its topic is too long'
    WHEN length(subject) > $name_max THEN 'its subject is too long'
    WHEN length(run) > $name_max THEN 'its run is too long'
    WHEN length(activity) > $name_max THEN 'its activity is too long'
    WHEN received NOT BETWEEN TIMESTAMPTZ '1970-01-01 00:00:00+00'
        AND TIMESTAMPTZ '9999-12-31 00:00:00+00'
        THEN 'its time (received) is one that no clock shows'
    WHEN "at" NOT BETWEEN TIMESTAMPTZ '0001-01-01 00:00:00+00'
        AND TIMESTAMPTZ '9999-12-31 00:00:00+00'
        THEN 'its time (at) is one that no clock shows'
    WHEN says_nothing AND NOT coalesce(
        starts_with(ltrim(TRY(decode(data))), '{') AND json_valid(TRY(decode(data))), false)
        THEN 'it should be a message, and its data is not a JSON object'
    WHEN says_nothing AND TRY(decode(data)) ->> '$$.RunId' IS NOT NULL
        THEN 'its RunId is too long or not printable'
    END AS own_reason
FROM (
    SELECT *,
        starts_with(type, '$message_type') AND source <> '$source' AND run IS NULL
            AND facts.WorkflowName IS NULL AND facts.evolution IS NULL AS says_nothing
    FROM raw
);

-- Of several under one number, one that can be used keeps it.
CREATE TEMP TABLE twice AS
SELECT seq
FROM raw
WHERE seq > 0 AND seq >> 15 IN (SELECT bucket FROM crowded)
GROUP BY seq HAVING count(*) > 1;

CREATE TEMP TABLE repeated_numbers AS
SELECT seq, file_row_number
FROM (
    SELECT
        seq, file_row_number,
        row_number() OVER (
            PARTITION BY seq ORDER BY own_reason IS NOT NULL, received, source, id) AS place
    FROM judged SEMI JOIN twice USING (seq)
)
WHERE place > 1;

CREATE TEMP TABLE quarantine AS
WITH marked AS (
    SELECT
        judged.*, again.seq IS NOT NULL AS is_again,
        CASE WHEN is_again THEN 'it has no sequence number' ELSE own_reason END AS reason
    FROM judged LEFT JOIN repeated_numbers AS again USING (seq, file_row_number)
)
SELECT
    filename AS file, CASE WHEN NOT is_again THEN seq END AS seq, received,
    id[1:200] AS id, source[1:200] AS source, type[1:200] AS type, reason,
    readable(data)[1:200] AS excerpt, seq AS own_seq, file_row_number
FROM marked
WHERE reason IS NOT NULL;

CREATE TEMP VIEW clean AS
SELECT raw.*
FROM raw ANTI JOIN quarantine AS aside
    ON raw.seq = aside.own_seq AND raw.file_row_number = aside.file_row_number
WHERE raw.seq > 0 AND raw.id <> '' AND raw.source <> '' AND raw.type <> ''
    AND raw.received IS NOT NULL AND raw."at" IS NOT NULL;

-- What tells of runs, our own words apart: those are no news.
CREATE TEMP VIEW messages AS
SELECT * FROM clean WHERE run IS NOT NULL AND source <> '$source';
