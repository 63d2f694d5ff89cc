SELECT account, count(*) AS plays, sum(seconds) AS seconds
FROM db.plays
GROUP BY account
