-- A change three days ago affects every later total: start there, with the total of each account on the day before.
DELETE FROM ${TOTALS_TABLE}
WHERE day >= coalesce(CAST(nullif('${capture.day_lower}', '') AS DATE), DATE'0001-01-01');

INSERT INTO ${TOTALS_TABLE}
SELECT d.account, d.day,
       coalesce(before.total, 0) + sum(d.played) OVER (PARTITION BY d.account ORDER BY d.day) AS total
FROM ${DAILY_TABLE} d
LEFT JOIN (SELECT account, max_by(total, day) AS total FROM ${TOTALS_TABLE} GROUP BY account) before
ON before.account = d.account
WHERE d.day >= coalesce(CAST(nullif('${capture.day_lower}', '') AS DATE), DATE'0001-01-01')
