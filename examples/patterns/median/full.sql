SELECT day, median(seconds) AS median_seconds, count(*) AS plays
FROM db.plays
GROUP BY day
