-- Which groups changed comes from the change; their rows come from the whole source, as it was captured.
MERGE INTO ${TARGET_TABLE} t
USING (
    SELECT k.account, k.day,
           count(p.id) AS plays,
           sum(p.seconds) AS seconds,
           max(p.seconds) AS longest,
           count(DISTINCT p.device) AS devices
    FROM (
        SELECT account, day FROM ${capture.relation} AS came
        UNION
        SELECT account, day FROM ${capture.deletes_relation} AS gone
    ) k
    LEFT JOIN ${SOURCE_TABLE} VERSION AS OF ${capture.to_snapshot_id} AS p
    ON p.account = k.account AND p.day = k.day
    GROUP BY k.account, k.day
) s
ON t.account = s.account AND t.day = s.day
WHEN MATCHED AND s.plays = 0 THEN DELETE
WHEN MATCHED THEN UPDATE SET plays = s.plays, seconds = s.seconds, longest = s.longest, devices = s.devices
WHEN NOT MATCHED AND s.plays > 0 THEN INSERT *
