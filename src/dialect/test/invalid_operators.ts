import type { InvalidText } from './invalid_text.ts';

/** Invalid operators, windows and tables. The messages were reviewed one by one. */
export const invalidOperators: readonly InvalidText[] = [
  [
    'SELECT a::',
    '          ^',
    'Expected the name of a type, such as String, Int64, Float64, DateTime or Array(String), found the end of the query. (line 1, column 11)',
  ],
  [
    'SELECT a::1',
    '          ^',
    'Expected the name of a type, such as String, Int64, Float64, DateTime or Array(String), found `1`. (line 1, column 11)',
  ],
  ['SELECT CAST(a, )', '               ^', 'Expected an expression, found `)`. (line 1, column 16)'],
  ['SELECT CAST(a)', '             ^', 'Expected AS and a type, found `)`. (line 1, column 14)'],
  [
    'SELECT CAST(a AS)',
    '                ^',
    'Expected the name of a type, such as String, Int64, Float64, DateTime or Array(String), found `)`. (line 1, column 17)',
  ],
  ['SELECT CASE END', '               ^', 'Expected WHEN, found the end of the query. (line 1, column 16)'],
  ['SELECT CASE WHEN a END', '                   ^^^', 'Expected THEN, found `END`. (line 1, column 20)'],
  [
    'SELECT CASE WHEN a THEN b',
    '                         ^',
    'Expected WHEN, ELSE or END of this CASE, found the end of the query. (line 1, column 26)',
  ],
  [
    'SELECT CASE a THEN b END',
    '              ^^^^',
    'Expected WHEN, found `THEN`. Perhaps you meant WHEN? (line 1, column 15)',
  ],
  [
    'SELECT a ? b',
    '            ^',
    'Expected `:` of this `? :`, found the end of the query. (line 1, column 13)',
  ],
  ['SELECT a ? b ; c', '             ^', 'Expected `:` of this `? :`, found `;`. (line 1, column 14)'],
  [
    'SELECT a BETWEEN 1',
    '                  ^',
    'Expected AND, found the end of the query. (line 1, column 19)',
  ],
  ['SELECT a BETWEEN 1 OR 2', '                   ^^', 'Expected AND, found `OR`. (line 1, column 20)'],
  ['SELECT a IS 1', '            ^', 'Expected NULL or DISTINCT FROM, found `1`. (line 1, column 13)'],
  [
    'SELECT a IS NOT b',
    '                ^',
    'Expected NULL or DISTINCT FROM, found `b`. (line 1, column 17)',
  ],
  [
    'SELECT a NOT b',
    '         ^^^',
    'Expected an operator, a clause or the end of the query, found `NOT`. (line 1, column 10)',
  ],
  ['SELECT a IN', '           ^', 'Expected an expression, found the end of the query. (line 1, column 12)'],
  [
    'SELECT a IN COHORT',
    '                  ^',
    'Expected an expression, found the end of the query. (line 1, column 19)',
  ],
  [
    'SELECT a LIKE',
    '             ^',
    'Expected an expression, found the end of the query. (line 1, column 14)',
  ],
  ['SELECT NOT', '          ^', 'Expected an expression, found the end of the query. (line 1, column 11)'],
  [
    'SELECT * + 1',
    '         ^',
    'Expected an operator, a clause or the end of the query, found `+`. (line 1, column 10)',
  ],
  [
    'SELECT 1 + *',
    '           ^',
    '`*` is allowed only in SELECT, in COLUMNS() and as a function argument. (line 1, column 12)',
  ],
  [
    'SELECT (*)',
    '        ^',
    '`*` is allowed only in SELECT, in COLUMNS() and as a function argument. (line 1, column 9)',
  ],
  [
    'SELECT <Sparkline data={a} />',
    '       ^',
    'Tags such as <Sparkline … /> are not supported. Write sparkline([1, 2]) or recordingButton(session_id). (line 1, column 8)',
  ],
  [
    'SELECT INTERVAL 1 FORTNIGHT',
    '                  ^^^^^^^^^',
    'Expected a unit of time: microsecond, millisecond, second, minute, hour, day, week, month, quarter, year, found `FORTNIGHT`. (line 1, column 19)',
  ],
  [
    "SELECT INTERVAL '1 fortnight'",
    '                ^^^^^^^^^^^^^',
    "The string of an INTERVAL must be a number and a unit. For example INTERVAL '1 day'; the units are microsecond, millisecond, second, minute, hour, day, week, month, quarter, year. (line 1, column 17)",
  ],
  [
    "SELECT INTERVAL 'one day'",
    '                ^^^^^^^^^',
    "The string of an INTERVAL must be a number and a unit. For example INTERVAL '1 day'; the units are microsecond, millisecond, second, minute, hour, day, week, month, quarter, year. (line 1, column 17)",
  ],
  [
    'SELECT EXTRACT(fortnight FROM a)',
    '               ^^^^^^^^^',
    'Expected a unit of time: microsecond, millisecond, second, minute, hour, day, week, month, quarter, year, found `fortnight`. (line 1, column 16)',
  ],
  ["SELECT TRIM(BOTH 'x' a)", '                     ^', 'Expected FROM, found `a`. (line 1, column 22)'],
  [
    'SELECT x -> ',
    '            ^',
    'Expected an expression, found the end of the query. (line 1, column 13)',
  ],
  [
    'SELECT (x, y) -> ',
    '                 ^',
    'Expected an expression, found the end of the query. (line 1, column 18)',
  ],
  [
    'SELECT a AS',
    '           ^',
    'Expected an alias for this column, found the end of the query. (line 1, column 12)',
  ],
  ['SELECT a AS 1', '            ^', 'Expected an alias for this column, found `1`. (line 1, column 13)'],
  ["SELECT a AS ''", '            ^^', 'A name cannot be empty. (line 1, column 13)'],
  [
    'SELECT select',
    '       ^^^^^^',
    'Expected an expression, found a query. Write a subquery in parentheses. (line 1, column 8)',
  ],
  [
    'SELECT group FROM t',
    '       ^^^^^',
    'Expected an expression, found the keyword `group`. Write a column of this name in backticks: `group`. (line 1, column 8)',
  ],
  [
    'SELECT SELECT 1',
    '       ^^^^^^',
    'Expected an expression, found a query. Write a subquery in parentheses. (line 1, column 8)',
  ],
  [
    'SELECT sum(a) OVER',
    '                  ^',
    'Expected the name of a window or `(`, found the end of the query. (line 1, column 19)',
  ],
  [
    'SELECT sum(a) OVER (PARTITION a)',
    '                              ^',
    'Expected `)` at the end of the window, found `a`. (line 1, column 31)',
  ],
  [
    'SELECT sum(a) OVER (ORDER BY a ROWS 1)',
    '                                     ^',
    'Expected PRECEDING or FOLLOWING, found `)`. (line 1, column 38)',
  ],
  [
    'SELECT sum(a) OVER (ROWS BETWEEN 1 PRECEDING)',
    '                                            ^',
    'Expected AND, found `)`. (line 1, column 45)',
  ],
  [
    'SELECT sum(a) OVER (ROWS UNBOUNDED)',
    '                                  ^',
    'Expected PRECEDING or FOLLOWING, found `)`. (line 1, column 35)',
  ],
  [
    'SELECT sum(a) OVER (ORDER BY a ROWS CURRENT ROW EXCLUDE TIES)',
    '                                                ^^^^^^^',
    'EXCLUDE is not supported in a window frame. (line 1, column 49)',
  ],
  [
    'SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a DESC)',
    '                            ^^^^^^',
    'percentile_cont() takes one ascending value in WITHIN GROUP. For descending values use 1 minus the level. (line 1, column 29)',
  ],
  [
    'SELECT string_agg(a, b) WITHIN GROUP ()',
    '                        ^^^^^^',
    'WITHIN GROUP requires one ORDER BY, inside its parentheses. (line 1, column 25)',
  ],
  ['SELECT count() FILTER (a)', '                       ^', 'Expected WHERE, found `a`. (line 1, column 24)'],
  [
    'SELECT 1 FROM a JOIN b',
    '                      ^',
    'Expected ON or USING with a join condition, found the end of the query. (line 1, column 23)',
  ],
  ['SELECT 1 FROM a LEFT b ON c', '                     ^', 'Expected JOIN, found `b`. (line 1, column 22)'],
  [
    'SELECT 1 FROM a JOIN ON c',
    '                     ^^',
    'Expected a table, a subquery in parentheses or a table function, found the keyword `ON`. (line 1, column 22)',
  ],
  [
    'SELECT 1 FROM a NATURAL JOIN b',
    '                ^^^^^^^',
    'NATURAL is not supported. (line 1, column 17)',
  ],
  [
    'SELECT 1 FROM a, LATERAL (SELECT 1)',
    '                 ^^^^^^^',
    'LATERAL is not supported. (line 1, column 18)',
  ],
  [
    'SELECT 1 FROM VALUES (1)',
    '              ^^^^^^',
    'VALUES is not supported. Use arrayJoin([…]). (line 1, column 15)',
  ],
  ['SELECT 1 FROM {table}', '              ^', 'A placeholder cannot replace a table. (line 1, column 15)'],
  [
    "SELECT 1 FROM 'events'",
    '              ^^^^^^^^',
    'Expected a table, a subquery in parentheses or a table function, found a string. (line 1, column 15)',
  ],
  [
    'SELECT 1 FROM (SELECT 1',
    '                       ^',
    'Expected `)`, found the end of the query. (line 1, column 24)',
  ],
  [
    'SELECT 1 FROM a JOIN b USING ()',
    '                              ^',
    'Expected the name of a column in both tables, found `)`. (line 1, column 31)',
  ],
  [
    'SELECT 1 FROM a FULL SEMI JOIN b ON c',
    '                ^^^^^^^^^^^^^^',
    'A FULL JOIN cannot be SEMI. Use LEFT or RIGHT. (line 1, column 17)',
  ],
  [
    'SELECT 1 FROM a SAMPLE x',
    '                       ^',
    'Expected a sampling ratio such as 0.1 or 1/10, found `x`. (line 1, column 24)',
  ],
  [
    'SELECT 1 FROM (SELECT 1 FROM a) AS q SAMPLE 1/10',
    '                                     ^^^^^^',
    'Only a table can be sampled. Write SAMPLE after the table name. (line 1, column 38)',
  ],
  [
    'SELECT 1 FROM numbers(10) SAMPLE 1/10',
    '                          ^^^^^^',
    'Only a table can be sampled. Write SAMPLE after the table name. (line 1, column 27)',
  ],
  ['SELECT 1 FROM a PIVOT (x)', '                ^^^^^', 'PIVOT is not supported. (line 1, column 17)'],
  [
    'SELECT 1 FROM a CROSS JOIN b ON c',
    '                             ^^',
    'Expected an operator, a clause or the end of the query, found `ON`. (line 1, column 30)',
  ],
  [
    'SELECT 1 FROM events.',
    '                     ^',
    'Expected the rest of the table name, found the end of the query. (line 1, column 22)',
  ],
  [
    'SELECT 1 FROM t GROUP BY ROLLUP()',
    '                                ^',
    'Expected an expression, found `)`. (line 1, column 33)',
  ],
  [
    'SELECT 1 ARRAY JOIN',
    '                   ^',
    'Expected an expression, found the end of the query. (line 1, column 20)',
  ],
  ['SELECT 1 UNION', '              ^', 'Expected SELECT, found the end of the query. (line 1, column 15)'],
  [
    'SELECT 1 UNION ALL',
    '                  ^',
    'Expected SELECT, found the end of the query. (line 1, column 19)',
  ],
  [
    'SELECT 1 UNION ALL BY NAME SELECT 2',
    '                   ^^',
    'BY NAME is not supported: columns are matched by position. (line 1, column 20)',
  ],
  [
    'SELECT 1 MINUS SELECT 2',
    '               ^^^^^^',
    'Expected an operator, a clause or the end of the query, found `SELECT`. (line 1, column 16)',
  ],
  [
    '(SELECT 1) ORDER BY a',
    '           ^^^^^',
    'Write ORDER BY and LIMIT inside the parentheses. (line 1, column 12)',
  ],
  ['(SELECT 1', '         ^', 'Expected `)`, found the end of the query. (line 1, column 10)'],
  [
    'SELECT 1)',
    '        ^',
    'Expected an operator, a clause or the end of the query, found `)`. (line 1, column 9)',
  ],
  [
    'SELECT 1 UNION ALL (SELECT 2) LIMIT 1 BY a',
    '                                      ^^',
    'A SELECT may have one LIMIT … BY, before LIMIT. (line 1, column 39)',
  ],
  [
    "SELECT a\n\tFROM events\n\tWHERE ü = 'ö' AND",
    '\t                 ^',
    'Expected an expression, found the end of the query. (line 3, column 19)',
  ],
  ["SELECT '😀', )", '            ^', 'Expected an expression, found `)`. (line 1, column 13)'],
  ['SELECT a\r\nFROM t\r\nWHERE )', '      ^', 'Expected an expression, found `)`. (line 3, column 7)'],
];
