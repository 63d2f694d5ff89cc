SELECT account, day, count(*) AS plays, sum(seconds) AS seconds, max(seconds) AS longest, count(DISTINCT device) AS devices
FROM db.plays
GROUP BY account, day
