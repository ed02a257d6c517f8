type Golden = readonly [query: string, rows: readonly (readonly unknown[])[]];

/** Queries over the small data with manually computed rows. */
export const goldenQueries: readonly Golden[] = [
  // Selecting, filtering, grouping
  ['SELECT count() FROM events', [[4]]],
  // Rows with a null are not counted, as in ClickHouse.
  [
    'SELECT uniq(event, person_id), uniq(person_id), count(DISTINCT person_id, event), uniqIf(event, person_id, true) FROM events',
    [[3, 2, 3, 3]],
  ],
  // What an event stores cannot be read where another query has its rows.
  [
    "SELECT count() FROM events AS e LEFT ANTI JOIN events AS t ON t.event = e.distinct_id WHERE t.$session_id = 's1' OR e.$session_id = 's2'",
    [[1]],
  ],
  [
    "SELECT count() FROM events AS t RIGHT ANTI JOIN events AS e ON t.event = e.distinct_id WHERE t.$session_id IN ('s1', 's2') OR e.distinct_id = 'a'",
    [[2]],
  ],
  // Names that the compiler uses itself, and one that looks numbered.
  [
    "SELECT arrayMap(x -> concat(x0_0.event, '/', x), ['v']), arrayCount(x -> x = fold0.event, [x0_0.event]) FROM events AS x0_0 JOIN events AS fold0 ON fold0.uuid = x0_0.uuid WHERE x0_0.distinct_id = 'c'",
    [[['signup/v'], 1]],
  ],
  [
    "SELECT one.event, arrayUniq([one.event, one.event]), e.event, e__2.event FROM events AS one JOIN events AS e__2 ON e__2.uuid = one.uuid JOIN events AS e ON e.uuid = one.uuid JOIN (SELECT e.uuid AS u FROM events AS e) AS s ON s.u = e.uuid WHERE one.distinct_id = 'c'",
    [['signup', 1, 'signup', 'signup']],
  ],
  [
    'SELECT event, count() FROM events GROUP BY event ORDER BY event',
    [
      ['$pageview', 2],
      ['signup', 2],
    ],
  ],
  [
    'SELECT event AS e, count() AS c FROM events GROUP BY e HAVING c > 1 ORDER BY c DESC, e DESC',
    [
      ['signup', 2],
      ['$pageview', 2],
    ],
  ],
  ['SELECT event, count() FROM events GROUP BY 1 ORDER BY 1 LIMIT 1', [['$pageview', 2]]],
  ['SELECT distinct_id FROM events ORDER BY timestamp LIMIT 2 OFFSET 1', [['a'], ['a']]],
  ['SELECT DISTINCT event FROM events ORDER BY event DESC', [['signup'], ['$pageview']]],
  [
    'SELECT DISTINCT ON (event) event, distinct_id FROM events ORDER BY event, timestamp',
    [
      ['$pageview', 'a'],
      ['signup', 'c'],
    ],
  ],
  [
    'SELECT event, distinct_id FROM events ORDER BY timestamp LIMIT 1 BY event',
    [
      ['signup', 'c'],
      ['$pageview', 'a'],
    ],
  ],
  [
    'SELECT event FROM events QUALIFY row_number() OVER (PARTITION BY event ORDER BY timestamp) = 2 ORDER BY event',
    [['$pageview'], ['signup']],
  ],
  [
    'SELECT event, count() FROM events GROUP BY ROLLUP(event) ORDER BY 1',
    [
      ['$pageview', 2],
      ['signup', 2],
      [null, 4],
    ],
  ],
  [
    'SELECT toDate(timestamp) AS timestamp, count() FROM events GROUP BY timestamp ORDER BY timestamp',
    [
      ['2026-11-18', 1],
      ['2026-11-20', 3],
    ],
  ],
  ["SELECT upper(event) AS u, length(u) FROM events WHERE u = 'SIGNUP' LIMIT 1", [['SIGNUP', 6]]],
  // Properties
  ['SELECT properties.plan FROM events ORDER BY timestamp', [[null], ['pro'], [null], ['free']]],
  [
    "SELECT properties['deep']['k']['z'], properties.deep.k, properties.tags[2] FROM events WHERE distinct_id = 'a' AND event = '$pageview'",
    [['5', '{"z":5}', 'b']],
  ],
  ["SELECT properties.empty, properties.missing FROM events WHERE distinct_id = 'c'", [['', null]]],
  ['SELECT properties.amount FROM events ORDER BY timestamp', [[null], [10], [null], [2.5]]],
  [
    'SELECT sum(properties.amount), avg(properties.amount), max(properties.amount) FROM events',
    [[12.5, 6.25, 10]],
  ],
  [
    'SELECT properties.paid, properties.trial_ends FROM events ORDER BY timestamp',
    [
      [null, null],
      [null, null],
      [true, null],
      [null, '2026-12-01T00:00:00.000Z'],
    ],
  ],
  [
    'SELECT person.properties.email FROM events ORDER BY timestamp',
    [[null], ['a@ex.com'], ['a@ex.com'], ['b@ex.com']],
  ],
  ['SELECT count() FROM events WHERE person.properties.seats > 2', [[2]]],
  [
    'SELECT session.$session_duration, session.$pageview_count FROM events ORDER BY timestamp',
    [
      [null, null],
      [300, 1],
      [300, 1],
      [0, 1],
    ],
  ],
  // Nulls
  ["SELECT count() FROM events WHERE properties.plan = 'pro'", [[1]]],
  ["SELECT count() FROM events WHERE properties.plan != 'pro'", [[3]]],
  ["SELECT count() FROM events WHERE NOT (properties.plan = 'pro')", [[3]]],
  ["SELECT countIf(properties.plan = 'pro'), countIf(not properties.plan = 'pro') FROM events", [[1, 3]]],
  ['SELECT count() FROM events WHERE properties.plan = NULL', [[2]]],
  ['SELECT count() FROM events WHERE properties.plan != NULL', [[2]]],
  ['SELECT count() FROM events WHERE properties.plan = properties.plan', [[4]]],
  ["SELECT count() FROM events WHERE properties.plan NOT IN ('pro')", [[3]]],
  ["SELECT count() FROM events WHERE properties.plan IN ('pro', NULL)", [[3]]],
  ["SELECT count() FROM events WHERE properties.plan NOT LIKE 'p%'", [[3]]],
  ["SELECT count() FROM events WHERE properties.plan !~ '^p'", [[3]]],
  [
    "SELECT properties.plan < 'q', properties.plan >= 'q', properties.plan = 'x' FROM events WHERE distinct_id = 'c'",
    [[false, false, false]],
  ],
  [
    "SELECT properties.plan ?? 'none', concat(properties.plan, '!') FROM events WHERE distinct_id = 'c'",
    [['none', '!']],
  ],
  ['SELECT properties.plan FROM events ORDER BY properties.plan', [['free'], ['pro'], [null], [null]]],
  ['SELECT properties.plan FROM events ORDER BY properties.plan DESC', [['pro'], ['free'], [null], [null]]],
  [
    'SELECT properties.plan FROM events ORDER BY properties.plan NULLS FIRST LIMIT 3',
    [[null], [null], ['free']],
  ],
  // Numbers and types
  ['SELECT 7 / 2, 7 % 3, intDiv(7, 2), -7 % 3, 1 + 2 * 3', [[3.5, 1, 3, -1, 7]]],
  ['SELECT 1 / 0, -1 / 0', [[Infinity, -Infinity]]],
  ["SELECT '5'::Int64, CAST('2.5' AS Float64), 5::String", [[5, 2.5, '5']]],
  ["SELECT 1 = '1', event = 'x' OR true FROM events LIMIT 1", [[true, true]]],
  ['SELECT 1 ? 2 : 3, CASE 2 WHEN 1 THEN 10 WHEN 2 THEN 20 END, CASE WHEN false THEN 1 END', [[2, 20, null]]],
  ["SELECT f'a {1 + 1} b', 'x' || 'y'", [['a 2 b', 'xy']]],
  // Arrays, tuples, maps, lambdas
  ["SELECT [1, 2, 3][2], [1, 2, 3][-1], [1][5], (1, 'a').2, [1, 2, 3][2:3]", [[2, 3, 0, 'a', [2, 3]]]],
  [
    'SELECT arrayMap(x -> x * 2, [1, 2]), arrayFilter(x -> x > 1, [1, 2]), arrayMap((x, y) -> x + y, [1, 2], [10, 20])',
    [[[2, 4], [2], [11, 22]]],
  ],
  [
    "SELECT arrayMap(x -> arrayMap(y -> x || y, ['p', 'q']), ['a', 'b'])",
    [
      [
        [
          ['ap', 'aq'],
          ['bp', 'bq'],
        ],
      ],
    ],
  ],
  [
    'SELECT arraySum(x -> x * x, [1, 2, 3]), arrayExists(x -> x = 2, [1, 2]), arrayCount(x -> x > 1, [1, 2, 3])',
    [[14, true, 2]],
  ],
  [
    "SELECT {'a': 1, 'b': 2}['b'], (1, 2) = (1, 2), (1, 2) IN ((1, 2), (3, 4)), 2 IN [1, 2]",
    [[2, true, true, true]],
  ],
  [
    'SELECT arrayJoin([1, 2]) AS x, x + 1',
    [
      [1, 2],
      [2, 3],
    ],
  ],
  [
    "SELECT distinct_id, x FROM events ARRAY JOIN [1, 2] AS x WHERE event = 'signup' ORDER BY distinct_id, x",
    [
      ['a', 1],
      ['a', 2],
      ['c', 1],
      ['c', 2],
    ],
  ],
  ['SELECT x FROM (SELECT [] AS e, 1 AS one) LEFT ARRAY JOIN e AS x', [[null]]],
  ['SELECT uniq(person_id) FROM events', [[2]]],
  ["SELECT uniq(distinct_id) FROM events WHERE event = 'none'", [[0]]],
  [
    'SELECT event, count(DISTINCT person_id) AS n FROM events GROUP BY event HAVING n < 9 ORDER BY n DESC, event',
    [
      ['$pageview', 2],
      ['signup', 1],
    ],
  ],
  ['SELECT uniq(event), 1 + uniq(event) FROM events GROUP BY properties.none', [[2, 3]]],
  [
    'SELECT event, arraySort(groupArray(distinct_id)), groupUniqArray(event) FROM events GROUP BY event ORDER BY event',
    [
      ['$pageview', ['a', 'b'], ['$pageview']],
      ['signup', ['a', 'c'], ['signup']],
    ],
  ],
  [
    "SELECT arrayStringConcat(arrayMap(x -> upper(x), arraySort(groupArray(distinct_id))), '-') FROM events",
    [['A-A-B-C']],
  ],
  // Aggregates
  [
    'SELECT uniq(distinct_id), count(DISTINCT event), count(properties.plan), min(timestamp) FROM events',
    [[3, 2, 2, '2026-11-18T23:30:00.000Z']],
  ],
  [
    'SELECT argMax(event, timestamp), argMin(distinct_id, timestamp), max(event) FROM events',
    [['$pageview', 'c', 'signup']],
  ],
  [
    "SELECT count(), sum(1), countIf(event = 'x'), sumIf(2, event = 'x') FROM events WHERE event = 'nothing'",
    [[0, 0, 0, 0]],
  ],
  ['SELECT quantile(0.5)(number), median(number), quantiles(0, 1)(number) FROM numbers(5)', [[2, 2, [0, 4]]]],
  ['SELECT sum(number) FILTER (WHERE number > 2), sumIf(number, number > 2) FROM numbers(5)', [[7, 7]]],
  ["SELECT count() * 2 + 1, if(count() > 3, 'many', 'few') FROM events", [[9, 'many']]],
  [
    'SELECT event, sum(count()) OVER () FROM events GROUP BY event ORDER BY event',
    [
      ['$pageview', 4],
      ['signup', 4],
    ],
  ],
  [
    'SELECT number, sum(number) OVER w, lag(number) OVER w FROM numbers(3) WINDOW w AS (ORDER BY number)',
    [
      [0, 0, null],
      [1, 1, 0],
      [2, 3, 1],
    ],
  ],
  [
    'SELECT number, avg(number) OVER (ORDER BY number ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM numbers(3)',
    [
      [0, 0],
      [1, 0.5],
      [2, 1.5],
    ],
  ],
  // Queries in queries
  ['SELECT max(c) FROM (SELECT event, count() AS c FROM events GROUP BY event)', [[2]]],
  [
    'WITH a AS (SELECT event, count() AS c FROM events GROUP BY event), b AS (SELECT max(c) AS m FROM a) SELECT a.event, b.m FROM a CROSS JOIN b ORDER BY 1',
    [
      ['$pageview', 2],
      ['signup', 2],
    ],
  ],
  ["WITH toDate('2026-11-20') AS day SELECT count() FROM events WHERE toDate(timestamp) = day", [[3]]],
  ['WITH a AS (SELECT 1 AS x) SELECT x FROM a UNION ALL SELECT x + 1 FROM a ORDER BY 1', [[1], [2]]],
  ['SELECT (SELECT count() FROM persons), exists(SELECT 1 FROM events)', [[2, true]]],
  [
    "SELECT count() FROM events WHERE person_id IN (SELECT id FROM persons WHERE properties.email LIKE 'a%')",
    [[2]],
  ],
  [
    "SELECT count() FROM events WHERE person_id NOT IN (SELECT id FROM persons WHERE properties.email LIKE 'a%')",
    [[2]],
  ],
  ['SELECT 1 UNION ALL SELECT 1', [[1], [1]]],
  ['SELECT 1 UNION DISTINCT SELECT 1.5 UNION DISTINCT SELECT 1 ORDER BY 1', [[1], [1.5]]],
  ['SELECT number FROM numbers(3) EXCEPT SELECT 1', [[0], [2]]],
  ['SELECT number FROM numbers(3) INTERSECT SELECT 1', [[1]]],
  // Tables
  [
    'SELECT * FROM persons ORDER BY created_at LIMIT 1',
    [['00000000-0000-0000-0000-000000000001', '2026-01-01T00:00:00.000Z', { email: 'a@ex.com', seats: 3 }]],
  ],
  [
    'SELECT distinct_id, person.properties.email FROM person_distinct_ids ORDER BY 1',
    [
      ['a', 'a@ex.com'],
      ['b', 'b@ex.com'],
    ],
  ],
  [
    'SELECT session_id, $pageview_count, $entry_pathname, $session_duration FROM sessions ORDER BY 1',
    [
      ['s1', 1, '/p', 300],
      ['s2', 1, null, 0],
    ],
  ],
  [
    'SELECT session_id, click_count, person.properties.email FROM session_replay_events',
    [['s1', 7, 'a@ex.com']],
  ],
  [
    'SELECT distinct_id, group_0.key, group_0.index, group_0.properties.name, group_1.key FROM events ORDER BY timestamp',
    [
      ['c', null, null, null, null],
      ['a', 'acme', 0, 'Acme', null],
      ['a', null, null, null, null],
      ['b', null, null, null, null],
    ],
  ],
  [
    'SELECT key, properties FROM groups WHERE index = 0 AND team_id = 41',
    [['acme', { name: 'Acme', plan: 'team signup' }]],
  ],
  [
    'SELECT e.distinct_id, sum(o.total) FROM events AS e INNER JOIN warehouse.orders AS o ON o.distinct_id = e.distinct_id GROUP BY 1 ORDER BY 1',
    [
      ['a', 25],
      ['b', 7.25],
    ],
  ],
  [
    'SELECT p.price FROM events AS e LEFT JOIN plans AS p ON p.name = e.properties.plan ORDER BY e.timestamp',
    [[null], [20], [null], [0]],
  ],
  [
    'SELECT distinct_id FROM person_distinct_ids INNER JOIN warehouse.orders USING (distinct_id) ORDER BY distinct_id',
    [['a'], ['b']],
  ],
  [
    'SELECT e.event FROM events AS e FULL JOIN persons AS p ON p.id = e.person_id ORDER BY e.timestamp LIMIT 1',
    [['signup']],
  ],
  // Times
  [
    "SELECT toStartOfMonth(timestamp), toStartOfWeek(timestamp), toMonday(timestamp) FROM events WHERE distinct_id = 'c'",
    [['2026-11-01', '2026-11-15', '2026-11-16']],
  ],
  ['SELECT count() FROM events WHERE timestamp > now() - INTERVAL 2 DAY AND timestamp < now()', [[3]]],
  ["SELECT count() FROM events WHERE timestamp BETWEEN '2026-11-20' AND '2026-11-20 10:05:00'", [[2]]],
  [
    "SELECT toDate('2026-01-31') + INTERVAL 1 MONTH, toDateTime('2026-01-01 10:00:00') - INTERVAL 1 HOUR",
    [['2026-02-28', '2026-01-01T09:00:00.000Z']],
  ],
  [
    "SELECT dateDiff('day', toDateTime('2026-01-01 23:00:00'), toDateTime('2026-01-02 01:00:00')), EXTRACT(YEAR FROM now())",
    [[1, 2026]],
  ],
];
