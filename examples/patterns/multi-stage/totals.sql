MERGE INTO ${TARGET_TABLE} t
USING (
    SELECT device, day, sum(plays) AS plays, coalesce(sum(seconds), 0) AS seconds
    FROM (
        SELECT device, day, 1 AS plays, seconds FROM ${capture.relation} AS came
        UNION ALL
        SELECT device, day, -1 AS plays, -seconds FROM ${capture.deletes_relation} AS gone
    )
    GROUP BY device, day
) s
ON t.device = s.device AND t.day = s.day
WHEN MATCHED AND t.plays + s.plays = 0 THEN DELETE
WHEN MATCHED THEN UPDATE SET t.plays = t.plays + s.plays, t.seconds = t.seconds + s.seconds
WHEN NOT MATCHED THEN INSERT *
