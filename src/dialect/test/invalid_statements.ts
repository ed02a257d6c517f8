import type { InvalidText } from './invalid_text.ts';

/** Invalid statements and clauses. The messages were reviewed one by one. */
export const invalidStatements: readonly InvalidText[] = [
  ['', '^', 'The query is empty. Write a SELECT. (line 1, column 1)'],
  ['   \n ', ' ^', 'The query is empty. Write a SELECT. (line 2, column 2)'],
  ['-- only a comment', '                 ^', 'The query is empty. Write a SELECT. (line 1, column 18)'],
  ['SELECT', '      ^', 'Expected an expression, found the end of the query. (line 1, column 7)'],
  [
    'SELECT FROM events',
    '       ^^^^',
    'SELECT has no columns. Write `*` for all columns. (line 1, column 8)',
  ],
  [
    'SELECT a FROM',
    '             ^',
    'Expected a table, a subquery in parentheses or a table function, found the end of the query. (line 1, column 14)',
  ],
  [
    'SELECT a, FROM',
    '              ^',
    'Expected a table, a subquery in parentheses or a table function, found the end of the query. (line 1, column 15)',
  ],
  ['SELECT a,, b', '         ^', 'Expected an expression, found `,`. (line 1, column 10)'],
  [
    'SELECT a b c',
    '           ^',
    'Expected an operator, a clause or the end of the query, found `c`. (line 1, column 12)',
  ],
  [
    'SELECT a FORM events',
    '         ^^^^',
    '`FORM` is not a keyword. Perhaps you meant FROM? (line 1, column 10)',
  ],
  [
    'SELECT a FROM events WEHRE x = 1',
    '                     ^^^^^',
    '`WEHRE` is not a keyword. Perhaps you meant WHERE? (line 1, column 22)',
  ],
  [
    'SELECT a FROM events e GRUOP BY a',
    '                       ^^^^^',
    'Expected an operator, a clause or the end of the query, found `GRUOP`. Perhaps you meant GROUP? (line 1, column 24)',
  ],
  [
    'SELECT a FROM events\nWHERE a =\n  AND b',
    '  ^^^',
    'Expected an expression, found the keyword `AND`. (line 3, column 3)',
  ],
  [
    'SELECT a FROM events WHERE',
    '                          ^',
    'Expected an expression, found the end of the query. (line 1, column 27)',
  ],
  [
    'SELECT a FROM events WHERE a b',
    '                             ^',
    'Expected an operator, a clause or the end of the query, found `b`. (line 1, column 30)',
  ],
  [
    'SELECT a FROM events GROUP a',
    '                           ^',
    'Expected BY, found `a`. (line 1, column 28)',
  ],
  [
    'SELECT a FROM events GROUP BY',
    '                             ^',
    'Expected an expression, found the end of the query. (line 1, column 30)',
  ],
  [
    'SELECT a FROM events ORDER a',
    '                           ^',
    'Expected BY, found `a`. (line 1, column 28)',
  ],
  [
    'SELECT a FROM events ORDER BY a WHERE b',
    '                                ^^^^^',
    'WHERE is misplaced or repeated. Clauses come in this order: FROM, PREWHERE, WHERE, GROUP BY, HAVING, QUALIFY, WINDOW, ORDER BY, LIMIT, OFFSET. (line 1, column 33)',
  ],
  [
    'SELECT a FROM events LIMIT 1 ORDER BY a',
    '                             ^^^^^',
    'ORDER BY is misplaced or repeated. Clauses come in this order: FROM, PREWHERE, WHERE, GROUP BY, HAVING, QUALIFY, WINDOW, ORDER BY, LIMIT, OFFSET. (line 1, column 30)',
  ],
  [
    'SELECT a FROM t HAVING b GROUP BY c',
    '                         ^^^^^',
    'GROUP BY is misplaced or repeated. Clauses come in this order: FROM, PREWHERE, WHERE, GROUP BY, HAVING, QUALIFY, WINDOW, ORDER BY, LIMIT, OFFSET. (line 1, column 26)',
  ],
  [
    'SELECT a WHERE b FROM c',
    '                 ^^^^',
    'FROM is misplaced or repeated. Clauses come in this order: FROM, PREWHERE, WHERE, GROUP BY, HAVING, QUALIFY, WINDOW, ORDER BY, LIMIT, OFFSET. (line 1, column 18)',
  ],
  [
    'SELECT a FROM t ORDER BY a NULLS MIDDLE',
    '                                 ^^^^^^',
    'Expected FIRST or LAST, found `MIDDLE`. (line 1, column 34)',
  ],
  [
    "SELECT a FROM t ORDER BY a COLLATE 'de'",
    '                           ^^^^^^^',
    'COLLATE is not supported: strings are compared by their bytes. (line 1, column 28)',
  ],
  [
    'SELECT a FROM t OFFSET 1 LIMIT 2',
    '                         ^^^^^',
    'LIMIT must come before OFFSET. (line 1, column 26)',
  ],
  [
    'SELECT a FROM t LIMIT',
    '                     ^',
    'Expected an expression, found the end of the query. (line 1, column 22)',
  ],
  [
    'SELECT a FROM t LIMIT 10 PERCENT BY a',
    '                                    ^',
    'PERCENT cannot be used with LIMIT … BY. (line 1, column 37)',
  ],
  [
    'SELECT a FROM t LIMIT 10 PERCENT, 5',
    '                                ^',
    'In LIMIT m, n, PERCENT comes after both numbers. (line 1, column 33)',
  ],
  [
    'SELECT a FROM t LIMIT 1 WITH TIES BY a',
    '                                     ^',
    'WITH TIES cannot be used with LIMIT … BY. (line 1, column 38)',
  ],
  [
    'SELECT a FROM t LIMIT 1 BY a LIMIT 1 BY b',
    '                                     ^^',
    'A SELECT may have one LIMIT … BY, before LIMIT. (line 1, column 38)',
  ],
  ['DELETE FROM events', '^^^^^^', 'Only SELECT is supported; found DELETE. (line 1, column 1)'],
  ['insert into events values (1)', '^^^^^^', 'Only SELECT is supported; found INSERT. (line 1, column 1)'],
  ['UPDATE events SET a = 1', '^^^^^^', 'Only SELECT is supported; found UPDATE. (line 1, column 1)'],
  ['DROP TABLE events', '^^^^', 'Only SELECT is supported; found DROP. (line 1, column 1)'],
  ['CREATE TABLE a (b Int64)', '^^^^^^', 'Only SELECT is supported; found CREATE. (line 1, column 1)'],
  ['SET a = 1', '^^^', 'Only SELECT is supported; found SET. (line 1, column 1)'],
  ['EXPLAIN SELECT 1', '^^^^^^^', 'Only SELECT is supported; found EXPLAIN. (line 1, column 1)'],
  ['SHOW TABLES', '^^^^', 'Only SELECT is supported; found SHOW. (line 1, column 1)'],
  ['TRUNCATE events', '^^^^^^^^', 'Only SELECT is supported; found TRUNCATE. (line 1, column 1)'],
  ['SELCT 1', '^^^^^', 'Expected SELECT, found `SELCT`. Perhaps you meant SELECT? (line 1, column 1)'],
  ['events', '^^^^^^', 'Expected SELECT, found `events`. (line 1, column 1)'],
  ['42', '^^', 'Expected SELECT, found `42`. (line 1, column 1)'],
  [
    'SELECT 1; SELECT 2',
    '          ^^^^^^',
    'Only one query can be run at a time. Remove everything after the `;`. (line 1, column 11)',
  ],
  [
    'SELECT 1; DROP TABLE events',
    '          ^^^^',
    'Only one query can be run at a time. Remove everything after the `;`. (line 1, column 11)',
  ],
  [
    'SELECT 1;;',
    '         ^',
    'Only one query can be run at a time. Remove everything after the `;`. (line 1, column 10)',
  ],
  [
    'SELECT 1 SETTINGS max_threads = 1',
    '         ^^^^^^^^',
    'SETTINGS is not supported. Remove it. (line 1, column 10)',
  ],
  [
    'SELECT 1 FORMAT JSON',
    '         ^^^^^^',
    'FORMAT is not supported. Results are JSON; use a batch export for other formats. (line 1, column 10)',
  ],
  [
    "SELECT 1 INTO OUTFILE 'x'",
    '         ^^^^',
    'INTO is not supported. Use a batch export to write rows elsewhere. (line 1, column 10)',
  ],
  [
    'SELECT 1 FROM t FOR UPDATE',
    '                ^^^',
    'FOR UPDATE and other locking clauses are not supported. (line 1, column 17)',
  ],
  [
    'SELECT 1 FROM t FETCH FIRST 1 ROW ONLY',
    '                ^^^^^',
    'FETCH is not supported. Use LIMIT. (line 1, column 17)',
  ],
  [
    'SELECT TOP 10 a FROM t',
    '       ^^^',
    'TOP is not supported. Use LIMIT at the end of the query. (line 1, column 8)',
  ],
  [
    'SELECT 1 FROM t TABLESAMPLE SYSTEM (1)',
    '                ^^^^^^^^^^^',
    'TABLESAMPLE is not supported. (line 1, column 17)',
  ],
  [
    'WITH RECURSIVE a AS (SELECT 1) SELECT 1',
    '     ^^^^^^^^^',
    'WITH RECURSIVE is not supported. Write numbers(n) for a series, and one JOIN for each level of a tree. (line 1, column 6)',
  ],
  [
    'WITH a AS MATERIALIZED (SELECT 1) SELECT 1',
    '          ^^^^^^^^^^^^',
    'MATERIALIZED is not supported. Remove it. (line 1, column 11)',
  ],
  [
    'WITH a AS (SELECT 1',
    '                   ^',
    'Expected `)`, found the end of the query. (line 1, column 20)',
  ],
  [
    'WITH a AS (SELECT 1)',
    '                    ^',
    'Expected SELECT, found the end of the query. (line 1, column 21)',
  ],
  ['WITH a AS (1 + 1) SELECT a', '           ^', 'Expected SELECT, found `1`. (line 1, column 12)'],
  [
    'WITH a(b) AS (SELECT 1) SELECT b',
    '     ^^^^',
    'A CTE cannot list its columns; name them in its query. (line 1, column 6)',
  ],
  [
    'WITH select AS (SELECT 1) SELECT 1',
    '     ^^^^^^',
    'Expected the name of a CTE, found the keyword `select`. (line 1, column 6)',
  ],
];
