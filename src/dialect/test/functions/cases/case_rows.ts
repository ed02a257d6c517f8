/** A result as JSON. Times are in UTC; numbers that are not finite are `nan`, `inf` and `-inf`. */
type ExpectedValue =
  | null
  | boolean
  | number
  | string
  | readonly ExpectedValue[]
  | { readonly [key: string]: ExpectedValue };

/**
 * By function: calls with their results in the zone of New York. Aggregates and window functions read `caseRows`:
 * `sum(x) FROM nulls`. The result of a window function is the array of its values.
 */
export type CasesByFunction = Readonly<Record<string, Readonly<Record<string, ExpectedValue>>>>;

/** Rows that the cases of aggregates and window functions read, by name. */
export const caseRows: Readonly<Record<string, string>> = {
  numbers:
    'SELECT 1 AS x UNION ALL SELECT 2 AS x UNION ALL SELECT 2 AS x UNION ALL SELECT 5 AS x UNION ALL SELECT -3 AS x',
  nulls: 'SELECT 1 AS x UNION ALL SELECT NULL AS x UNION ALL SELECT 4 AS x UNION ALL SELECT NULL AS x',
  none: 'SELECT x FROM (SELECT 1 AS x) AS one WHERE x > 1',
  only_null: 'SELECT nullIf(1, 1) AS x',
  pairs:
    'SELECT 1 AS x, 2 AS y UNION ALL SELECT 2 AS x, 3 AS y UNION ALL SELECT 3 AS x, 5 AS y UNION ALL SELECT 4 AS x, 4 AS y',
  keyed: "SELECT 'a' AS x, 1 AS y UNION ALL SELECT 'b' AS x, 3 AS y UNION ALL SELECT 'c' AS x, 2 AS y",
  floats: 'SELECT 1.5 AS x UNION ALL SELECT 2.25 AS x UNION ALL SELECT -0.5 AS x',
  maps: "SELECT map('a', 1, 'b', 2) AS x UNION ALL SELECT map('a', 10) AS x",
  grown:
    "SELECT 1 AS x, toDateTime('2024-01-01 00:00:00') AS y UNION ALL SELECT 2 AS x, toDateTime('2024-01-01 00:10:00') AS y UNION ALL SELECT 3 AS x, toDateTime('2024-01-01 00:20:00') AS y",
  flags: 'SELECT 1 AS x UNION ALL SELECT 0 AS x UNION ALL SELECT 1 AS x',
  words:
    "SELECT 'a' AS x UNION ALL SELECT 'b' AS x UNION ALL SELECT 'a' AS x UNION ALL SELECT 'c' AS x UNION ALL SELECT 'a' AS x UNION ALL SELECT 'b' AS x",
  more_maps: "SELECT map('a', 1.5) AS x UNION ALL SELECT map('b', 2) AS x UNION ALL SELECT map('a', 1) AS x",
  letters:
    "SELECT 1 AS x, 'a' AS y UNION ALL SELECT 2 AS x, 'b' AS y UNION ALL SELECT 2 AS x, 'c' AS y UNION ALL SELECT 5 AS x, 'd' AS y",
};
