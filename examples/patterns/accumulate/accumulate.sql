-- Neither the source nor its history is read. Without `targets`, a retry would add everything a second time.
MERGE INTO ${TARGET_TABLE} t
USING (
    SELECT account, sum(plays) AS plays, coalesce(sum(seconds), 0) AS seconds
    FROM (
        SELECT account, 1 AS plays, seconds FROM ${capture.relation} AS came
        UNION ALL
        SELECT account, -1 AS plays, -seconds FROM ${capture.deletes_relation} AS gone
    )
    GROUP BY account
) s
ON t.account = s.account
WHEN MATCHED AND t.plays + s.plays = 0 THEN DELETE
WHEN MATCHED THEN UPDATE SET t.plays = t.plays + s.plays, t.seconds = t.seconds + s.seconds
WHEN NOT MATCHED THEN INSERT *
