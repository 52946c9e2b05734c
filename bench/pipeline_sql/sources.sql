CREATE TEMP VIEW raw AS
SELECT * FROM read_parquet('$archive/date=*/*.parquet', filename = true, hive_partitioning = false);

CREATE TEMP VIEW clean AS
SELECT * FROM raw
WHERE seq IS NOT NULL AND received IS NOT NULL AND id IS NOT NULL AND source IS NOT NULL
    AND type IS NOT NULL AND topic IS NOT NULL AND "at" IS NOT NULL;

-- What tells of runs, our own words apart: those are no news.
CREATE TEMP VIEW messages AS
SELECT * FROM clean WHERE run IS NOT NULL AND source <> '$source';

SET VARIABLE now = (SELECT max(received) FROM raw);
