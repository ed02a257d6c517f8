/** Queries that the compiler got wrong until the differential test found them, with the rows that are right. */
export const foundDifferences: readonly (readonly [string, readonly (readonly unknown[])[]])[] = [
  // An item at no index is null, not the default of an index outside the array.
  ["SELECT [1, 2][toInt('x')], arrayElement([1, 2], toInt('x')), [1, 2][3]", [[null, null, 0]]],
  // PostgreSQL's LEAST and GREATEST ignore nulls, so bounds of a null length made a length.
  [
    "SELECT substring('abc', toInt('x')), substring('abc', 1, toInt('x')), left('abc', toInt('x')), right('abc', toInt('x'))",
    [[null, null, null, null]],
  ],
  [
    "SELECT repeat('abc', toInt('x')), leftPad('abc', toInt('x')), bitTest(1, toInt('x'))",
    [[null, null, null]],
  ],
  // The functions of the dialect ignore them too, as in ClickHouse.
  ["SELECT least(1, toInt('x')), greatest('a', nullIf('b', 'b')), least(toInt('x'), NULL)", [[1, 'a', null]]],
  ["SELECT replaceOne('ab', nullIf('a', 'a'), 'x'), replaceOne('ab', 'b', nullIf('a', 'a'))", [[null, null]]],
  ["SELECT ifNotFinite(toFloat('x'), 2), ifNotFinite(toFloat('nan'), 2), ifNotFinite(1.5, 2)", [[2, 2, 1.5]]],
  // The rank of a row is never null, so the default of an aggregate over no rows is not null either.
  [
    'SELECT max(r), sum(r) FROM (SELECT rank() OVER (ORDER BY 1 + 1) AS r FROM events WHERE false) AS q',
    [[0, 0]],
  ],
  // Null is among values that are null in this row, as it equals them.
  [
    "SELECT toInt('x') IN (toInt('y'), 1), toInt('x') NOT IN (toInt('y'), 1), 1 IN (toInt('y'), 2)",
    [[true, false, false]],
  ],
  // The row of all groups exists without rows, so its aggregates have defaults.
  [
    'SELECT count(), argMax(event, event), max(event) FROM events WHERE false GROUP BY ROLLUP(event)',
    [[0, '', '']],
  ],
  // PostgreSQL took the second pass of an hour that a clock change repeats.
  [
    "SELECT toUnixTimestamp(subtractMonths(toTimeZone(toDateTime('2026-10-25T00:30:00Z'), 'Europe/Berlin'), 0))",
    [[1_792_888_200]],
  ],
];
