SELECT account, day, sum(played) AS played, sum(paused) AS paused
FROM (
    SELECT account, day, seconds AS played, 0 AS paused FROM db.plays
    UNION ALL
    SELECT account, day, 0 AS played, seconds AS paused FROM db.pauses
)
GROUP BY account, day
