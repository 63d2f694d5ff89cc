SELECT device, day, count(*) AS plays, sum(seconds) AS seconds
FROM db.plays
GROUP BY device, day
