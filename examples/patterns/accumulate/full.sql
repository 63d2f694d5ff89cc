SELECT account, count(*) AS plays, coalesce(sum(seconds), 0) AS seconds
FROM db.plays
GROUP BY account
