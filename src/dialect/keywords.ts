/** Keywords that cannot name a column or table without quotes, because they start or join parts of a query. */
export const reservedWords: ReadonlySet<string> = new Set(
  `SELECT FROM WHERE PREWHERE GROUP HAVING QUALIFY ORDER LIMIT UNION INTERSECT EXCEPT JOIN ON USING AND OR NOT IN IS
  LIKE ILIKE BETWEEN CASE WHEN THEN ELSE AS BY WITH DISTINCT NULL TRUE FALSE INF INFINITY NAN`.split(/\s+/),
);

/** Reserved words that users often try as the name of a column or table. */
export const commonNameKeywords: ReadonlySet<string> = new Set(
  'FROM GROUP ORDER LIMIT UNION CASE DISTINCT USING BY WITH'.split(' '),
);

/** Keywords that cannot be an alias without AS, because they may start the next clause. */
export const keywordsRequiringAs: ReadonlySet<string> = new Set([
  ...reservedWords,
  ...`LEFT RIGHT FULL INNER CROSS OUTER ASOF ANY ALL SEMI ANTI ARRAY FINAL SAMPLE GLOBAL NATURAL PASTE POSITIONAL PIVOT
  UNPIVOT LATERAL WINDOW OFFSET FETCH SETTINGS FORMAT INTO FOR TABLESAMPLE COLLATE ASC DESC ASCENDING DESCENDING NULLS
  OVER FILTER WITHIN IGNORE RESPECT END EXCLUDE REPLACE ESCAPE VALUES MATERIALIZED`.split(/\s+/),
]);

/** Operators that are functions when a parenthesis follows: `and(a, b)`, `like(x, y)`. */
export const operatorFunctions: ReadonlySet<string> = new Set(['AND', 'OR', 'IN', 'LIKE', 'ILIKE']);

/** Keywords that the parser does not read as the first name of a field. The printer quotes them there. */
export const quotedAsFirstName: ReadonlySet<string> = new Set([
  ...reservedWords,
  ...'INTERVAL ARRAY BOTH LEADING TRAILING ALL'.split(' '),
]);

/** Keywords of SELECT, for suggestions. */
export const clauseKeywords: readonly string[] = [
  ...`SELECT FROM WHERE PREWHERE GROUP HAVING QUALIFY WINDOW ORDER LIMIT OFFSET UNION INTERSECT EXCEPT JOIN LEFT RIGHT
  FULL INNER CROSS ON USING ARRAY AND OR NOT IN LIKE ILIKE BETWEEN IS BY AS WITH DISTINCT`.split(/\s+/),
];

/** SQL statements other than SELECT. The error names the statement. */
export const nonSelectStatements: ReadonlySet<string> = new Set(
  `INSERT UPDATE DELETE MERGE REPLACE UPSERT TRUNCATE CREATE ALTER DROP RENAME ATTACH DETACH EXCHANGE OPTIMIZE GRANT
  REVOKE SET RESET USE SHOW DESCRIBE DESC EXPLAIN ANALYZE VACUUM COPY CALL DO EXEC EXECUTE PREPARE DEALLOCATE BEGIN
  START COMMIT ROLLBACK SAVEPOINT LOCK LISTEN NOTIFY KILL SYSTEM CHECK WATCH BACKUP RESTORE VALUES TABLE PRAGMA LOAD
  REFRESH CLUSTER REINDEX COMMENT DECLARE FETCH MOVE CLOSE DISCARD UNDROP LET RETURN FUN FN`.split(/\s+/),
);

/** Units of INTERVAL and EXTRACT, in the singular. */
export const timeUnits = [
  'microsecond',
  'millisecond',
  'second',
  'minute',
  'hour',
  'day',
  'week',
  'month',
  'quarter',
  'year',
] as const;

export type TimeUnit = (typeof timeUnits)[number];

/** The unit that a word names, singular or plural, case-insensitive. */
export function timeUnitOf(word: string): TimeUnit | undefined {
  const singular = word.toLowerCase().replace(/s$/, '');
  return timeUnits.find((unit) => unit === singular);
}
