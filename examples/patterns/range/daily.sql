-- Both statements work on the branch of the attempt: readers never see the state between them.
DELETE FROM ${DAILY_TABLE} WHERE ${capture.range_predicate};

INSERT INTO ${DAILY_TABLE}
SELECT account, day, sum(played) AS played, sum(paused) AS paused
FROM (
    SELECT account, day, seconds AS played, 0 AS paused
    FROM ${PLAYS_TABLE} VERSION AS OF ${capture.plays.to_snapshot_id}
    UNION ALL
    SELECT account, day, 0 AS played, seconds AS paused
    FROM ${PAUSES_TABLE} VERSION AS OF ${capture.pauses.to_snapshot_id}
)
WHERE ${capture.range_predicate}
GROUP BY account, day
