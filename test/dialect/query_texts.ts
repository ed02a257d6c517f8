/** Queries and their canonical text; one text alone is canonical already. */
export const queryTexts: readonly (readonly [text: string, canonical: string] | string)[] = [
  ...[
    'SELECT 1',
    'SELECT *',
    'SELECT * FROM events',
    'SELECT e.* FROM events AS e',
    'SELECT DISTINCT event FROM events',
  ],
  ...[
    'SELECT DISTINCT ON (a, b) a, c FROM t',
    'SELECT a AS b FROM t',
    "SELECT COLUMNS('^a') FROM t",
    'SELECT COLUMNS(a, b) FROM t',
  ],
  ...[
    'SELECT * EXCLUDE (a, b) FROM t',
    'SELECT e.* EXCLUDE (a) REPLACE (b + 1 AS b) FROM t AS e',
    'SELECT COLUMNS(*) FROM t',
  ],
  ['select 1;', 'SELECT 1'],
  ['\n  SELECT a, b, FROM t', 'SELECT a, b FROM t'],
  ['SELECT count() c FROM events', 'SELECT count() AS c FROM events'],
  ["SELECT a 'x y' FROM t".replace("'x y'", '"x y"'), 'SELECT a AS `x y` FROM t'],
  ['SELECT (a AS b) c FROM t', 'SELECT (a AS b) AS c FROM t'],
  ['SELECT * EXCEPT (a) FROM t', 'SELECT * EXCLUDE (a) FROM t'],
  ['SELECT event -- the name\nFROM events /* all\nof them */', 'SELECT event FROM events'],
  ['SELECT date, timestamp, key, id, first FROM t', 'SELECT date, timestamp, key, id, first FROM t'],
  // Sources
  ...[
    'SELECT 1 FROM warehouse.orders AS o',
    'SELECT 1 FROM a.b.c',
    'SELECT 1 FROM `odd table`',
    'SELECT 1 FROM numbers(10)',
  ],
  ...[
    'SELECT 1 FROM numbers(1, 10) AS n',
    'SELECT 1 FROM (SELECT 1)',
    'SELECT 1 FROM (SELECT 1) AS q',
    'SELECT 1 FROM events FINAL',
  ],
  ...['SELECT 1 FROM (events SAMPLE 0.1) OFFSET 3', 'SELECT 1 FROM events AS e FINAL SAMPLE 0.1 OFFSET 1/2'],
  ['SELECT 1 FROM events SAMPLE 1/10', 'SELECT 1 FROM (events SAMPLE 1/10)'],
  ['SELECT 1 FROM events SAMPLE 1/10 AS e OFFSET 3', 'SELECT 1 FROM (events AS e SAMPLE 1/10) OFFSET 3'],
  ['SELECT 1 FROM events e', 'SELECT 1 FROM events AS e'],
  ['SELECT 1 FROM events FINAL AS e', 'SELECT 1 FROM events AS e FINAL'],
  ['SELECT 1 FROM (events)', 'SELECT 1 FROM events'],
  ['SELECT 1 FROM ((SELECT 1)) q', 'SELECT 1 FROM (SELECT 1) AS q'],
  ['SELECT 1 FROM (SELECT 1 UNION ALL SELECT 2) q', 'SELECT 1 FROM (SELECT 1 UNION ALL SELECT 2) AS q'],
  ['SELECT 1 FROM ((SELECT 1) UNION ALL (SELECT 2)) q', 'SELECT 1 FROM (SELECT 1 UNION ALL SELECT 2) AS q'],
  // Joins
  ...[
    'SELECT 1 FROM a INNER JOIN b ON a.x = b.x',
    'SELECT 1 FROM a LEFT JOIN b USING (x, y)',
    'SELECT 1 FROM a RIGHT JOIN b ON c',
  ],
  ...[
    'SELECT 1 FROM a FULL JOIN b ON c',
    'SELECT 1 FROM a CROSS JOIN b',
    'SELECT 1 FROM a INNER JOIN b ON c LEFT JOIN d ON e',
  ],
  ...[
    'SELECT 1 FROM a INNER JOIN (b INNER JOIN c ON d) ON e',
    'SELECT 1 FROM a LEFT ASOF JOIN b ON c',
    'SELECT 1 FROM a LEFT SEMI JOIN b ON c',
  ],
  ...[
    'SELECT 1 FROM a RIGHT ANTI JOIN b ON c',
    'SELECT 1 FROM a INNER ANY JOIN b ON c',
    'SELECT 1 FROM a INNER ALL JOIN b ON c',
  ],
  ...[
    'SELECT 1 FROM (SELECT 1) AS x CROSS JOIN y',
    'SELECT 1 FROM a INNER JOIN ((SELECT 1) AS x CROSS JOIN y) ON c',
  ],
  ['SELECT 1 FROM a JOIN b ON c', 'SELECT 1 FROM a INNER JOIN b ON c'],
  ['SELECT 1 FROM a, b, c', 'SELECT 1 FROM a CROSS JOIN b CROSS JOIN c'],
  ['SELECT 1 FROM a left outer join b on c', 'SELECT 1 FROM a LEFT JOIN b ON c'],
  ['SELECT 1 FROM a ANY LEFT JOIN b USING x', 'SELECT 1 FROM a LEFT ANY JOIN b USING (x)'],
  ['SELECT 1 FROM a ASOF JOIN b USING x, y', 'SELECT 1 FROM a INNER ASOF JOIN b USING (x, y)'],
  ['SELECT 1 FROM (a JOIN b ON c) JOIN d ON e', 'SELECT 1 FROM a INNER JOIN b ON c INNER JOIN d ON e'],
  // Clauses
  ...[
    'SELECT 1 FROM t ARRAY JOIN a AS b',
    'SELECT 1 FROM t LEFT ARRAY JOIN a, b',
    'SELECT 1 FROM t PREWHERE a WHERE b',
  ],
  ...[
    'SELECT 1 FROM t WHERE a GROUP BY b HAVING c',
    'SELECT 1 FROM t GROUP BY a, b',
    'SELECT 1 FROM t GROUP BY ROLLUP(a, b)',
  ],
  ...[
    'SELECT 1 FROM t GROUP BY CUBE(a)',
    'SELECT 1 FROM t GROUP BY GROUPING SETS ((a), (a, b), ())',
    'SELECT 1 FROM t GROUP BY a WITH TOTALS',
    'SELECT 1 FROM t GROUP BY ALL',
    'SELECT 1 FROM t GROUP BY `all`',
  ],
  ...[
    'SELECT 1 FROM t QUALIFY row_number() OVER w = 1 WINDOW w AS (PARTITION BY a)',
    'SELECT 1 FROM t ORDER BY a, b DESC',
  ],
  ...[
    'SELECT 1 FROM t ORDER BY a DESC NULLS FIRST',
    'SELECT 1 FROM t ORDER BY a WITH FILL',
    'SELECT 1 FROM t ORDER BY a WITH FILL FROM 1 TO 10 STEP 2',
  ],
  ...[
    'SELECT 1 FROM t LIMIT 10',
    'SELECT 1 FROM t LIMIT 10 OFFSET 5',
    'SELECT 1 FROM t OFFSET 5',
    'SELECT 1 FROM t LIMIT 10 WITH TIES',
  ],
  ...[
    'SELECT 1 FROM t LIMIT 1 BY a',
    'SELECT 1 FROM t LIMIT 2 OFFSET 1 BY a, b LIMIT 10',
    'SELECT 1 FROM t LIMIT {variables.n}',
  ],
  ['SELECT 1 FROM t INNER ARRAY JOIN a', 'SELECT 1 FROM t ARRAY JOIN a'],
  ['SELECT 1 FROM t GROUP BY a, b WITH ROLLUP', 'SELECT 1 FROM t GROUP BY ROLLUP(a, b)'],
  ['SELECT 1 FROM t GROUP BY a WITH CUBE WITH TOTALS', 'SELECT 1 FROM t GROUP BY CUBE(a) WITH TOTALS'],
  [
    'SELECT 1 FROM t GROUP BY GROUPING SETS (a, (b, c))',
    'SELECT 1 FROM t GROUP BY GROUPING SETS ((a), (b, c))',
  ],
  ['SELECT 1 FROM t ORDER BY a ASC, b descending', 'SELECT 1 FROM t ORDER BY a, b DESC'],
  ['SELECT 1 FROM t LIMIT 5, 10', 'SELECT 1 FROM t LIMIT 10 OFFSET 5'],
  ['SELECT 1 FROM t LIMIT 1, 2 BY a', 'SELECT 1 FROM t LIMIT 2 OFFSET 1 BY a'],
  ['SELECT 1 FROM t LIMIT 1 WITH TIES OFFSET 2', 'SELECT 1 FROM t LIMIT 1 OFFSET 2 WITH TIES'],
  // Common table expressions
  ...[
    'WITH a AS (SELECT 1) SELECT * FROM a',
    'WITH a AS (SELECT 1), b AS (SELECT 2) SELECT * FROM a',
    'WITH 1 + 1 AS two SELECT two',
  ],
  ...[
    'WITH (SELECT max(x) FROM t) AS top SELECT top',
    "WITH toDate('2026-01-01') AS d, a AS (SELECT d) SELECT * FROM a",
  ],
  ...[
    'WITH a AS (WITH b AS (SELECT 1) SELECT * FROM b) SELECT * FROM a',
    'WITH a AS (SELECT 1 UNION ALL SELECT 2) SELECT * FROM a',
  ],
  ['WITH x AS y SELECT y', 'WITH x AS y SELECT y'],
  ['with a as (select 1), select * from a', 'WITH a AS (SELECT 1) SELECT * FROM a'],
  // Set operations
  ...[
    'SELECT 1 UNION ALL SELECT 2',
    'SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3',
    'SELECT 1 UNION DISTINCT SELECT 2',
  ],
  ...[
    'SELECT 1 INTERSECT DISTINCT SELECT 2',
    'SELECT 1 EXCEPT DISTINCT SELECT 2',
    'SELECT 1 EXCEPT ALL SELECT 2',
    'SELECT 1 INTERSECT ALL SELECT 2',
  ],
  ...[
    'SELECT 1 UNION ALL (SELECT 2) ORDER BY a LIMIT 3',
    'SELECT 1 UNION ALL SELECT 2 LIMIT 3',
    'SELECT 1 LIMIT 1 UNION ALL SELECT 2',
  ],
  ...['SELECT 1 UNION ALL (SELECT 2 UNION ALL SELECT 3)'],
  ['SELECT 1 UNION SELECT 2', 'SELECT 1 UNION DISTINCT SELECT 2'],
  ['SELECT 1 INTERSECT SELECT 2', 'SELECT 1 INTERSECT ALL SELECT 2'],
  ['SELECT 1 EXCEPT SELECT 2', 'SELECT 1 EXCEPT ALL SELECT 2'],
  ['SELECT 1 UNION ALL SELECT 2 INTERSECT SELECT 3', 'SELECT 1 UNION ALL (SELECT 2 INTERSECT ALL SELECT 3)'],
  ['SELECT 1 UNION ALL SELECT 2 EXCEPT SELECT 3', '(SELECT 1 UNION ALL SELECT 2) EXCEPT ALL SELECT 3'],
  ['(SELECT 1) UNION ALL (SELECT 2)', 'SELECT 1 UNION ALL SELECT 2'],
  [
    '((SELECT 1 UNION ALL SELECT 2)) INTERSECT SELECT 3',
    '(SELECT 1 UNION ALL SELECT 2) INTERSECT ALL SELECT 3',
  ],
  ['(SELECT 1)', 'SELECT 1'],
  // What analysts write
  [
    "select properties.$browser as browser, count() from events where event = '$pageview' and timestamp > now() - interval 7 day and {filters} group by browser order by count() desc limit 10",
    "SELECT properties.$browser AS browser, count() FROM events WHERE event = '$pageview' AND timestamp > now() - INTERVAL 7 DAY AND {filters} GROUP BY browser ORDER BY count() DESC LIMIT 10",
  ],
  [
    "SELECT toStartOfWeek(timestamp) AS week, count(DISTINCT person_id) AS users FROM events WHERE properties.$geoip_country_code IN ('DE', 'FR') GROUP BY week ORDER BY week",
    "SELECT toStartOfWeek(timestamp) AS week, count(DISTINCT person_id) AS users FROM events WHERE properties.$geoip_country_code IN ('DE', 'FR') GROUP BY week ORDER BY week",
  ],
  [
    "SELECT person.properties.email, session.$session_duration / 60 AS minutes FROM events LEFT JOIN persons p ON p.id = person_id WHERE not isNull(p.properties.plan) and person.properties.email ilike '%@example.com'",
    "SELECT person.properties.email, session.$session_duration / 60 AS minutes FROM events LEFT JOIN persons AS p ON p.id = person_id WHERE NOT isNull(p.properties.plan) AND person.properties.email ILIKE '%@example.com'",
  ],
];
