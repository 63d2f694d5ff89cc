-- Changed days may be far apart, so this is not a range: days between them are not touched.
CREATE OR REPLACE TEMPORARY VIEW changed_days AS
SELECT day FROM ${capture.relation} AS came
UNION
SELECT day FROM ${capture.deletes_relation} AS gone;

DELETE FROM ${TARGET_TABLE} WHERE day IN (SELECT day FROM changed_days);

INSERT INTO ${TARGET_TABLE}
SELECT day, median(seconds) AS median_seconds, count(*) AS plays
FROM ${SOURCE_TABLE} VERSION AS OF ${capture.to_snapshot_id}
WHERE day IN (SELECT day FROM changed_days)
GROUP BY day
