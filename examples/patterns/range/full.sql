SELECT account, day, sum(sum(played)) OVER (PARTITION BY account ORDER BY day) AS total
FROM (
    SELECT account, day, seconds AS played FROM db.plays
    UNION ALL
    SELECT account, day, 0 AS played FROM db.pauses
)
GROUP BY account, day
