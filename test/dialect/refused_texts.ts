/** A text that is refused, the line of carets below the line at fault, and what is said with it. */
export interface RefusedText {
  readonly text: string;
  readonly carets: string;
  readonly says: string;
}

/** Refused queries, each read by a person: the carets stand below what is at fault. */
export const refusedTexts: readonly RefusedText[] = [
  { text: '', carets: '^', says: 'The query is empty. Write a SELECT. (line 1, column 1)' },
  { text: '   \n ', carets: ' ^', says: 'The query is empty. Write a SELECT. (line 2, column 2)' },
  {
    text: '-- only a comment',
    carets: '                 ^',
    says: 'The query is empty. Write a SELECT. (line 1, column 18)',
  },
  {
    text: 'SELECT',
    carets: '      ^',
    says: 'Expected an expression, found the end of the query. (line 1, column 7)',
  },
  {
    text: 'SELECT FROM events',
    carets: '       ^^^^',
    says: 'SELECT lists no columns. Write `*` for all of them. (line 1, column 8)',
  },
  {
    text: 'SELECT a FROM',
    carets: '             ^',
    says: 'Expected a table, a query in brackets or a table function, found the end of the query. (line 1, column 14)',
  },
  {
    text: 'SELECT a, FROM',
    carets: '              ^',
    says: 'Expected a table, a query in brackets or a table function, found the end of the query. (line 1, column 15)',
  },
  {
    text: 'SELECT a,, b',
    carets: '         ^',
    says: 'Expected an expression, found `,`. (line 1, column 10)',
  },
  {
    text: 'SELECT a b c',
    carets: '           ^',
    says: 'Expected an operator, a clause or the end of the query, found `c`. (line 1, column 12)',
  },
  {
    text: 'SELECT a FORM events',
    carets: '         ^^^^',
    says: '`FORM` is not a keyword. Perhaps you meant FROM? (line 1, column 10)',
  },
  {
    text: 'SELECT a FROM events WEHRE x = 1',
    carets: '                     ^^^^^',
    says: '`WEHRE` is not a keyword. Perhaps you meant WHERE? (line 1, column 22)',
  },
  {
    text: 'SELECT a FROM events e GRUOP BY a',
    carets: '                       ^^^^^',
    says: 'Expected an operator, a clause or the end of the query, found `GRUOP`. Perhaps you meant GROUP? (line 1, column 24)',
  },
  {
    text: 'SELECT a FROM events\nWHERE a =\n  AND b',
    carets: '  ^^^',
    says: 'Expected an expression, found the keyword `AND`. (line 3, column 3)',
  },
  {
    text: 'SELECT a FROM events WHERE',
    carets: '                          ^',
    says: 'Expected an expression, found the end of the query. (line 1, column 27)',
  },
  {
    text: 'SELECT a FROM events WHERE a b',
    carets: '                             ^',
    says: 'Expected an operator, a clause or the end of the query, found `b`. (line 1, column 30)',
  },
  {
    text: 'SELECT a FROM events GROUP a',
    carets: '                           ^',
    says: 'Expected BY, found `a`. (line 1, column 28)',
  },
  {
    text: 'SELECT a FROM events GROUP BY',
    carets: '                             ^',
    says: 'Expected an expression, found the end of the query. (line 1, column 30)',
  },
  {
    text: 'SELECT a FROM events ORDER a',
    carets: '                           ^',
    says: 'Expected BY, found `a`. (line 1, column 28)',
  },
  {
    text: 'SELECT a FROM events ORDER BY a WHERE b',
    carets: '                                ^^^^^',
    says: 'WHERE stands at the wrong place or a second time. The order is FROM, PREWHERE, WHERE, GROUP BY, HAVING, QUALIFY, WINDOW, ORDER BY, LIMIT, OFFSET. (line 1, column 33)',
  },
  {
    text: 'SELECT a FROM events LIMIT 1 ORDER BY a',
    carets: '                             ^^^^^',
    says: 'ORDER BY stands at the wrong place or a second time. The order is FROM, PREWHERE, WHERE, GROUP BY, HAVING, QUALIFY, WINDOW, ORDER BY, LIMIT, OFFSET. (line 1, column 30)',
  },
  {
    text: 'SELECT a FROM t HAVING b GROUP BY c',
    carets: '                         ^^^^^',
    says: 'GROUP BY stands at the wrong place or a second time. The order is FROM, PREWHERE, WHERE, GROUP BY, HAVING, QUALIFY, WINDOW, ORDER BY, LIMIT, OFFSET. (line 1, column 26)',
  },
  {
    text: 'SELECT a WHERE b FROM c',
    carets: '                 ^^^^',
    says: 'FROM stands at the wrong place or a second time. The order is FROM, PREWHERE, WHERE, GROUP BY, HAVING, QUALIFY, WINDOW, ORDER BY, LIMIT, OFFSET. (line 1, column 18)',
  },
  {
    text: 'SELECT a FROM t ORDER BY a NULLS MIDDLE',
    carets: '                                 ^^^^^^',
    says: 'Expected FIRST or LAST, found `MIDDLE`. (line 1, column 34)',
  },
  {
    text: "SELECT a FROM t ORDER BY a COLLATE 'de'",
    carets: '                           ^^^^^^^',
    says: 'COLLATE is not supported; texts are compared by their bytes. (line 1, column 28)',
  },
  {
    text: 'SELECT a FROM t OFFSET 1 LIMIT 2',
    carets: '                         ^^^^^',
    says: 'LIMIT stands before OFFSET. (line 1, column 26)',
  },
  {
    text: 'SELECT a FROM t LIMIT',
    carets: '                     ^',
    says: 'Expected an expression, found the end of the query. (line 1, column 22)',
  },
  {
    text: 'SELECT a FROM t LIMIT 10 PERCENT',
    carets: '                         ^^^^^^^',
    says: 'LIMIT in percent is not supported. (line 1, column 26)',
  },
  {
    text: 'SELECT a FROM t LIMIT 1 WITH TIES BY a',
    carets: '                                     ^',
    says: 'WITH TIES is for a LIMIT without BY. (line 1, column 38)',
  },
  {
    text: 'SELECT a FROM t LIMIT 1 BY a LIMIT 1 BY b',
    carets: '                                     ^^',
    says: 'LIMIT … BY stands once, before LIMIT, in a single SELECT. (line 1, column 38)',
  },
  {
    text: 'DELETE FROM events',
    carets: '^^^^^^',
    says: 'Only SELECT is supported; found DELETE. (line 1, column 1)',
  },
  {
    text: 'insert into events values (1)',
    carets: '^^^^^^',
    says: 'Only SELECT is supported; found INSERT. (line 1, column 1)',
  },
  {
    text: 'UPDATE events SET a = 1',
    carets: '^^^^^^',
    says: 'Only SELECT is supported; found UPDATE. (line 1, column 1)',
  },
  {
    text: 'DROP TABLE events',
    carets: '^^^^',
    says: 'Only SELECT is supported; found DROP. (line 1, column 1)',
  },
  {
    text: 'CREATE TABLE a (b Int64)',
    carets: '^^^^^^',
    says: 'Only SELECT is supported; found CREATE. (line 1, column 1)',
  },
  { text: 'SET a = 1', carets: '^^^', says: 'Only SELECT is supported; found SET. (line 1, column 1)' },
  {
    text: 'EXPLAIN SELECT 1',
    carets: '^^^^^^^',
    says: 'Only SELECT is supported; found EXPLAIN. (line 1, column 1)',
  },
  { text: 'SHOW TABLES', carets: '^^^^', says: 'Only SELECT is supported; found SHOW. (line 1, column 1)' },
  {
    text: 'TRUNCATE events',
    carets: '^^^^^^^^',
    says: 'Only SELECT is supported; found TRUNCATE. (line 1, column 1)',
  },
  {
    text: 'SELCT 1',
    carets: '^^^^^',
    says: 'Expected SELECT, found `SELCT`. Perhaps you meant SELECT? (line 1, column 1)',
  },
  { text: 'events', carets: '^^^^^^', says: 'Expected SELECT, found `events`. (line 1, column 1)' },
  { text: '42', carets: '^^', says: 'Expected SELECT, found `42`. (line 1, column 1)' },
  {
    text: 'SELECT 1; SELECT 2',
    carets: '          ^^^^^^',
    says: 'Only one query can be run at a time. Remove what follows the `;`. (line 1, column 11)',
  },
  {
    text: 'SELECT 1; DROP TABLE events',
    carets: '          ^^^^',
    says: 'Only one query can be run at a time. Remove what follows the `;`. (line 1, column 11)',
  },
  {
    text: 'SELECT 1;;',
    carets: '         ^',
    says: 'Only one query can be run at a time. Remove what follows the `;`. (line 1, column 10)',
  },
  {
    text: 'SELECT 1 SETTINGS max_threads = 1',
    carets: '         ^^^^^^^^',
    says: 'SETTINGS is not supported. Leave it out. (line 1, column 10)',
  },
  {
    text: 'SELECT 1 FORMAT JSON',
    carets: '         ^^^^^^',
    says: 'FORMAT is not supported. Answers are JSON; batch exports write other formats. (line 1, column 10)',
  },
  {
    text: "SELECT 1 INTO OUTFILE 'x'",
    carets: '         ^^^^',
    says: 'INTO is not supported. Batch exports write rows elsewhere. (line 1, column 10)',
  },
  {
    text: 'SELECT 1 FROM t FOR UPDATE',
    carets: '                ^^^',
    says: 'FOR UPDATE and its kin are not supported: queries lock nothing. (line 1, column 17)',
  },
  {
    text: 'SELECT 1 FROM t FETCH FIRST 1 ROW ONLY',
    carets: '                ^^^^^',
    says: 'FETCH is not supported. Write LIMIT. (line 1, column 17)',
  },
  {
    text: 'SELECT TOP 10 a FROM t',
    carets: '       ^^^',
    says: 'TOP is not supported. Write LIMIT at the end of the query. (line 1, column 8)',
  },
  {
    text: 'SELECT 1 FROM t TABLESAMPLE SYSTEM (1)',
    carets: '                ^^^^^^^^^^^',
    says: 'TABLESAMPLE is not supported. (line 1, column 17)',
  },
  {
    text: 'WITH RECURSIVE a AS (SELECT 1) SELECT 1',
    carets: '     ^^^^^^^^^',
    says: 'WITH RECURSIVE is not supported. (line 1, column 6)',
  },
  {
    text: 'WITH a AS MATERIALIZED (SELECT 1) SELECT 1',
    carets: '          ^^^^^^^^^^^^',
    says: 'MATERIALIZED is not supported. Leave it out. (line 1, column 11)',
  },
  {
    text: 'WITH a AS (SELECT 1',
    carets: '                   ^',
    says: 'Expected `)`, found the end of the query. (line 1, column 20)',
  },
  {
    text: 'WITH a AS (SELECT 1)',
    carets: '                    ^',
    says: 'Expected SELECT, found the end of the query. (line 1, column 21)',
  },
  {
    text: 'WITH a AS (1 + 1) SELECT a',
    carets: '           ^',
    says: 'Expected SELECT, found `1`. (line 1, column 12)',
  },
  {
    text: 'WITH a(b) AS (SELECT 1) SELECT b',
    carets: '     ^^^^',
    says: 'The columns of a CTE are named inside its query. (line 1, column 6)',
  },
  {
    text: 'WITH select AS (SELECT 1) SELECT 1',
    carets: '     ^^^^^^',
    says: 'Expected the name of a CTE, found the keyword `select`. (line 1, column 6)',
  },
  {
    text: "SELECT 'abc",
    carets: '       ^^^^',
    says: "This text is never closed. Close it with `'`. (line 1, column 8)",
  },
  {
    text: 'SELECT "abc',
    carets: '       ^^^^',
    says: 'This name in double quotes is never closed. Close it with `"`. (line 1, column 8)',
  },
  {
    text: 'SELECT `abc FROM t\nWHERE a',
    carets: '       ^^^^^^^^^^^',
    says: 'This name in backticks is never closed. Close it with `` ``. (line 1, column 8)',
  },
  {
    text: "SELECT f'a {b",
    carets: '             ^',
    says: 'Expected `}` behind the expression of this template text, found the end of the query. (line 1, column 14)',
  },
  {
    text: "SELECT f'a {b'",
    carets: '             ^',
    says: "This text is never closed. Close it with `'`. (line 1, column 14)",
  },
  {
    text: "SELECT f'{}'",
    carets: '          ^',
    says: 'Expected an expression, found `}`. (line 1, column 11)',
  },
  {
    text: 'SELECT /* abc',
    carets: '       ^^',
    says: 'This comment is never closed. Close it with `*/`. (line 1, column 8)',
  },
  {
    text: 'SELECT 1abc',
    carets: '       ^^^^',
    says: '`1abc` is neither a number nor a name. A name that begins with a digit stands in backticks. (line 1, column 8)',
  },
  {
    text: 'SELECT 0x',
    carets: '       ^^',
    says: '`0x` is neither a number nor a name. A name that begins with a digit stands in backticks. (line 1, column 8)',
  },
  {
    text: 'SELECT 1e',
    carets: '       ^^',
    says: '`1e` is neither a number nor a name. A name that begins with a digit stands in backticks. (line 1, column 8)',
  },
  {
    text: 'SELECT a # b',
    carets: '         ^',
    says: 'The character `#` has no meaning here. Comments begin with `--` or stand between `/*` and `*/`. (line 1, column 10)',
  },
  {
    text: 'SELECT ‘a’',
    carets: '       ^',
    says: 'The character `‘` has no meaning here. Text stands in straight single quotes. (line 1, column 8)',
  },
  {
    text: 'SELECT a & b',
    carets: '         ^',
    says: 'The character `&` has no meaning here. Conditions are joined by AND; for bits there is bitAnd(). (line 1, column 10)',
  },
  {
    text: 'SELECT a | b',
    carets: '         ^',
    says: 'The character `|` has no meaning here. Conditions are joined by OR, texts by ||; for bits there is bitOr(). (line 1, column 10)',
  },
  {
    text: 'SELECT !a',
    carets: '       ^',
    says: 'The character `!` has no meaning here. Write NOT before a condition. (line 1, column 8)',
  },
  {
    text: 'SELECT @a',
    carets: '       ^',
    says: "The character `@` has no meaning here. Write a placeholder as {name}, and a property with such a name as properties['@name']. (line 1, column 8)",
  },
  {
    text: 'SELECT a ^ b',
    carets: '         ^',
    says: 'The character `^` has no meaning here. Write pow(x, y) for powers and bitXor(x, y) for bits. (line 1, column 10)',
  },
  {
    text: 'SELECT \u0000',
    carets: '       ^',
    says: 'The character `\u0000` has no meaning here. (line 1, column 8)',
  },
  {
    text: 'SELECT 😀',
    carets: '       ^',
    says: 'The character `😀` has no meaning here. (line 1, column 8)',
  },
  { text: 'SELECT ``', carets: '       ^^', says: 'A name cannot be empty. (line 1, column 8)' },
  {
    text: 'SELECT (1',
    carets: '         ^',
    says: 'Expected `,` or `)`, found the end of the query. (line 1, column 10)',
  },
  {
    text: 'SELECT (1, 2',
    carets: '            ^',
    says: 'Expected `,` or `)`, found the end of the query. (line 1, column 13)',
  },
  {
    text: 'SELECT ()',
    carets: '       ^^',
    says: 'These brackets are empty. Write tuple() for an empty tuple. (line 1, column 8)',
  },
  {
    text: 'SELECT [1, 2',
    carets: '            ^',
    says: 'Expected `,` or `]` in this array, found the end of the query. (line 1, column 13)',
  },
  {
    text: 'SELECT [1 2]',
    carets: '          ^',
    says: 'Expected `,` or `]` in this array, found `2`. (line 1, column 11)',
  },
  {
    text: 'SELECT {a',
    carets: '         ^',
    says: 'Expected `}` behind a placeholder, or `:` behind a key, found the end of the query. (line 1, column 10)',
  },
  {
    text: 'SELECT {a: 1, b}',
    carets: '               ^',
    says: 'Expected `}` behind a placeholder, or `:` behind a key, found `}`. (line 1, column 16)',
  },
  {
    text: "SELECT {'a' 1}",
    carets: '            ^',
    says: 'Expected `}` behind a placeholder, or `:` behind a key, found `1`. (line 1, column 13)',
  },
  {
    text: 'SELECT f(a b)',
    carets: '           ^',
    says: 'Expected `,` or `)` in the call of f(), found `b`. (line 1, column 12)',
  },
  {
    text: 'SELECT f(a',
    carets: '          ^',
    says: 'Expected `,` or `)` in the call of f(), found the end of the query. (line 1, column 11)',
  },
  {
    text: 'SELECT f(, a)',
    carets: '         ^',
    says: 'Expected an expression, found `,`. (line 1, column 10)',
  },
  {
    text: 'SELECT count(DISTINCT)',
    carets: '                     ^',
    says: 'Expected an expression, found `)`. (line 1, column 22)',
  },
  {
    text: 'SELECT f(DISTINCT x)(y)',
    carets: '                    ^',
    says: 'DISTINCT and ORDER BY belong into the second pair of brackets. (line 1, column 21)',
  },
  {
    text: 'SELECT a.b(c)',
    carets: '       ^^^',
    says: 'The name of a function has no point in it. Write b(…). (line 1, column 8)',
  },
  {
    text: 'SELECT a.',
    carets: '         ^',
    says: 'Expected the name of a property behind the point, found the end of the query. (line 1, column 10)',
  },
  {
    text: 'SELECT a..b',
    carets: '         ^',
    says: 'Expected the name of a property behind the point, found `.`. (line 1, column 10)',
  },
  {
    text: 'SELECT a[',
    carets: '         ^',
    says: 'Expected an expression, found the end of the query. (line 1, column 10)',
  },
  {
    text: 'SELECT a[]',
    carets: '         ^',
    says: 'Expected an expression, found `]`. (line 1, column 10)',
  },
  {
    text: 'SELECT a?.',
    carets: '         ^',
    says: 'Expected an expression, found `.`. (line 1, column 10)',
  },
  {
    text: 'SELECT a::',
    carets: '          ^',
    says: 'Expected the name of a type, such as String, Int64, Float64, DateTime or Array(String), found the end of the query. (line 1, column 11)',
  },
  {
    text: 'SELECT a::1',
    carets: '          ^',
    says: 'Expected the name of a type, such as String, Int64, Float64, DateTime or Array(String), found `1`. (line 1, column 11)',
  },
  {
    text: 'SELECT CAST(a, )',
    carets: '               ^',
    says: 'Expected an expression, found `)`. (line 1, column 16)',
  },
  {
    text: 'SELECT CAST(a)',
    carets: '             ^',
    says: 'Expected AS and a type, found `)`. (line 1, column 14)',
  },
  {
    text: 'SELECT CAST(a AS)',
    carets: '                ^',
    says: 'Expected the name of a type, such as String, Int64, Float64, DateTime or Array(String), found `)`. (line 1, column 17)',
  },
  {
    text: 'SELECT CASE END',
    carets: '               ^',
    says: 'Expected WHEN, found the end of the query. (line 1, column 16)',
  },
  {
    text: 'SELECT CASE WHEN a END',
    carets: '                   ^^^',
    says: 'Expected THEN, found `END`. (line 1, column 20)',
  },
  {
    text: 'SELECT CASE WHEN a THEN b',
    carets: '                         ^',
    says: 'Expected WHEN, ELSE or END of this CASE, found the end of the query. (line 1, column 26)',
  },
  {
    text: 'SELECT CASE a THEN b END',
    carets: '              ^^^^',
    says: 'Expected WHEN, found `THEN`. Perhaps you meant WHEN? (line 1, column 15)',
  },
  {
    text: 'SELECT a ? b',
    carets: '            ^',
    says: 'Expected `:` of this `? :`, found the end of the query. (line 1, column 13)',
  },
  {
    text: 'SELECT a ? b ; c',
    carets: '             ^',
    says: 'Expected `:` of this `? :`, found `;`. (line 1, column 14)',
  },
  {
    text: 'SELECT a BETWEEN 1',
    carets: '                  ^',
    says: 'Expected AND, found the end of the query. (line 1, column 19)',
  },
  {
    text: 'SELECT a BETWEEN 1 OR 2',
    carets: '                   ^^',
    says: 'Expected AND, found `OR`. (line 1, column 20)',
  },
  {
    text: 'SELECT a IS 1',
    carets: '            ^',
    says: 'Expected NULL or DISTINCT FROM, found `1`. (line 1, column 13)',
  },
  {
    text: 'SELECT a IS NOT b',
    carets: '                ^',
    says: 'Expected NULL or DISTINCT FROM, found `b`. (line 1, column 17)',
  },
  {
    text: 'SELECT a NOT b',
    carets: '         ^^^',
    says: 'Expected an operator, a clause or the end of the query, found `NOT`. (line 1, column 10)',
  },
  {
    text: 'SELECT a IN',
    carets: '           ^',
    says: 'Expected an expression, found the end of the query. (line 1, column 12)',
  },
  {
    text: 'SELECT a IN COHORT',
    carets: '                  ^',
    says: 'Expected an expression, found the end of the query. (line 1, column 19)',
  },
  {
    text: 'SELECT a LIKE',
    carets: '             ^',
    says: 'Expected an expression, found the end of the query. (line 1, column 14)',
  },
  {
    text: 'SELECT NOT',
    carets: '          ^',
    says: 'Expected an expression, found the end of the query. (line 1, column 11)',
  },
  {
    text: 'SELECT * + 1',
    carets: '         ^',
    says: 'Expected an operator, a clause or the end of the query, found `+`. (line 1, column 10)',
  },
  {
    text: 'SELECT 1 + *',
    carets: '           ^',
    says: '`*` stands only in SELECT, in COLUMNS() and in the brackets of a call. (line 1, column 12)',
  },
  {
    text: 'SELECT (*)',
    carets: '        ^',
    says: '`*` stands only in SELECT, in COLUMNS() and in the brackets of a call. (line 1, column 9)',
  },
  {
    text: 'SELECT <Sparkline data={a} />',
    carets: '       ^',
    says: 'Tags such as <Sparkline … /> are not supported. Call a function instead. (line 1, column 8)',
  },
  {
    text: 'SELECT INTERVAL 1 FORTNIGHT',
    carets: '                  ^^^^^^^^^',
    says: 'Expected a unit of time: microsecond, millisecond, second, minute, hour, day, week, month, quarter, year, found `FORTNIGHT`. (line 1, column 19)',
  },
  {
    text: "SELECT INTERVAL '1 fortnight'",
    carets: '                ^^^^^^^^^^^^^',
    says: "The text of an INTERVAL is a number and a unit. Write for example INTERVAL '1 day'; the units are microsecond, millisecond, second, minute, hour, day, week, month, quarter, year. (line 1, column 17)",
  },
  {
    text: "SELECT INTERVAL 'one day'",
    carets: '                ^^^^^^^^^',
    says: "The text of an INTERVAL is a number and a unit. Write for example INTERVAL '1 day'; the units are microsecond, millisecond, second, minute, hour, day, week, month, quarter, year. (line 1, column 17)",
  },
  {
    text: 'SELECT EXTRACT(fortnight FROM a)',
    carets: '               ^^^^^^^^^',
    says: 'Expected a unit of time: microsecond, millisecond, second, minute, hour, day, week, month, quarter, year, found `fortnight`. (line 1, column 16)',
  },
  {
    text: "SELECT TRIM(BOTH 'x' a)",
    carets: '                     ^',
    says: 'Expected FROM, found `a`. (line 1, column 22)',
  },
  {
    text: 'SELECT x -> ',
    carets: '            ^',
    says: 'Expected an expression, found the end of the query. (line 1, column 13)',
  },
  {
    text: 'SELECT (x, y) -> ',
    carets: '                 ^',
    says: 'Expected an expression, found the end of the query. (line 1, column 18)',
  },
  {
    text: 'SELECT a AS',
    carets: '           ^',
    says: 'Expected a name for this column, found the end of the query. (line 1, column 12)',
  },
  {
    text: 'SELECT a AS 1',
    carets: '            ^',
    says: 'Expected a name for this column, found `1`. (line 1, column 13)',
  },
  { text: "SELECT a AS ''", carets: '            ^^', says: 'A name cannot be empty. (line 1, column 13)' },
  {
    text: 'SELECT select',
    carets: '       ^^^^^^',
    says: 'Expected an expression, found a query. A query inside an expression stands in brackets. (line 1, column 8)',
  },
  {
    text: 'SELECT group FROM t',
    carets: '       ^^^^^',
    says: 'Expected an expression, found the keyword `group`. A column with this name stands in backticks: `group`. (line 1, column 8)',
  },
  {
    text: 'SELECT SELECT 1',
    carets: '       ^^^^^^',
    says: 'Expected an expression, found a query. A query inside an expression stands in brackets. (line 1, column 8)',
  },
  {
    text: 'SELECT sum(a) OVER',
    carets: '                  ^',
    says: 'Expected the name of a window or `(`, found the end of the query. (line 1, column 19)',
  },
  {
    text: 'SELECT sum(a) OVER (PARTITION a)',
    carets: '                              ^',
    says: 'Expected `)` at the end of the window, found `a`. (line 1, column 31)',
  },
  {
    text: 'SELECT sum(a) OVER (ORDER BY a ROWS 1)',
    carets: '                                     ^',
    says: 'Expected PRECEDING or FOLLOWING, found `)`. (line 1, column 38)',
  },
  {
    text: 'SELECT sum(a) OVER (ROWS BETWEEN 1 PRECEDING)',
    carets: '                                            ^',
    says: 'Expected AND, found `)`. (line 1, column 45)',
  },
  {
    text: 'SELECT sum(a) OVER (ROWS UNBOUNDED)',
    carets: '                                  ^',
    says: 'Expected PRECEDING or FOLLOWING, found `)`. (line 1, column 35)',
  },
  {
    text: 'SELECT sum(a) OVER (ORDER BY a ROWS CURRENT ROW EXCLUDE TIES)',
    carets: '                                                ^^^^^^^',
    says: 'EXCLUDE is not supported in a window frame. (line 1, column 49)',
  },
  {
    text: 'SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a)',
    carets: '                            ^^^^^^',
    says: 'WITHIN GROUP is not supported. Write quantile(0.5)(x), or ORDER BY inside the brackets. (line 1, column 29)',
  },
  {
    text: 'SELECT count() FILTER (a)',
    carets: '                       ^',
    says: 'Expected WHERE, found `a`. (line 1, column 24)',
  },
  {
    text: 'SELECT 1 FROM a JOIN b',
    carets: '                      ^',
    says: 'Expected ON or USING and what the tables are joined by, found the end of the query. (line 1, column 23)',
  },
  {
    text: 'SELECT 1 FROM a LEFT b ON c',
    carets: '                     ^',
    says: 'Expected JOIN, found `b`. (line 1, column 22)',
  },
  {
    text: 'SELECT 1 FROM a JOIN ON c',
    carets: '                     ^^',
    says: 'Expected a table, a query in brackets or a table function, found the keyword `ON`. (line 1, column 22)',
  },
  {
    text: 'SELECT 1 FROM a NATURAL JOIN b',
    carets: '                ^^^^^^^',
    says: 'NATURAL is not supported. (line 1, column 17)',
  },
  {
    text: 'SELECT 1 FROM a, LATERAL (SELECT 1)',
    carets: '                 ^^^^^^^',
    says: 'LATERAL is not supported. (line 1, column 18)',
  },
  {
    text: 'SELECT 1 FROM VALUES (1)',
    carets: '              ^^^^^^',
    says: 'VALUES is not supported. Use arrayJoin([…]). (line 1, column 15)',
  },
  {
    text: 'SELECT 1 FROM {table}',
    carets: '              ^',
    says: 'A placeholder cannot stand for a table. (line 1, column 15)',
  },
  {
    text: "SELECT 1 FROM 'events'",
    carets: '              ^^^^^^^^',
    says: 'Expected a table, a query in brackets or a table function, found a text. (line 1, column 15)',
  },
  {
    text: 'SELECT 1 FROM (SELECT 1',
    carets: '                       ^',
    says: 'Expected `)`, found the end of the query. (line 1, column 24)',
  },
  {
    text: 'SELECT 1 FROM a JOIN b USING ()',
    carets: '                              ^',
    says: 'Expected the name of a column of both tables, found `)`. (line 1, column 31)',
  },
  {
    text: 'SELECT 1 FROM a FULL SEMI JOIN b ON c',
    carets: '                ^^^^^^^^^^^^^^',
    says: 'A FULL JOIN cannot be SEMI. Choose LEFT or RIGHT. (line 1, column 17)',
  },
  {
    text: 'SELECT 1 FROM a SAMPLE x',
    carets: '                       ^',
    says: 'Expected a share such as 0.1 or 1/10, found `x`. (line 1, column 24)',
  },
  {
    text: 'SELECT 1 FROM a PIVOT (x)',
    carets: '                ^^^^^',
    says: 'PIVOT is not supported. (line 1, column 17)',
  },
  {
    text: 'SELECT 1 FROM a CROSS JOIN b ON c',
    carets: '                             ^^',
    says: 'Expected an operator, a clause or the end of the query, found `ON`. (line 1, column 30)',
  },
  {
    text: 'SELECT 1 FROM events.',
    carets: '                     ^',
    says: 'Expected the rest of the name of a table, found the end of the query. (line 1, column 22)',
  },
  {
    text: 'SELECT 1 FROM t GROUP BY ROLLUP()',
    carets: '                                ^',
    says: 'Expected an expression, found `)`. (line 1, column 33)',
  },
  {
    text: 'SELECT 1 ARRAY JOIN',
    carets: '                   ^',
    says: 'Expected an expression, found the end of the query. (line 1, column 20)',
  },
  {
    text: 'SELECT 1 UNION',
    carets: '              ^',
    says: 'Expected SELECT, found the end of the query. (line 1, column 15)',
  },
  {
    text: 'SELECT 1 UNION ALL',
    carets: '                  ^',
    says: 'Expected SELECT, found the end of the query. (line 1, column 19)',
  },
  {
    text: 'SELECT 1 UNION ALL BY NAME SELECT 2',
    carets: '                   ^^',
    says: 'BY NAME is not supported: queries are joined by the order of their columns. (line 1, column 20)',
  },
  {
    text: 'SELECT 1 MINUS SELECT 2',
    carets: '               ^^^^^^',
    says: 'Expected an operator, a clause or the end of the query, found `SELECT`. (line 1, column 16)',
  },
  {
    text: '(SELECT 1) ORDER BY a',
    carets: '           ^^^^^',
    says: 'ORDER BY and LIMIT of a query in brackets stand inside them. (line 1, column 12)',
  },
  {
    text: '(SELECT 1',
    carets: '         ^',
    says: 'Expected `)`, found the end of the query. (line 1, column 10)',
  },
  {
    text: 'SELECT 1)',
    carets: '        ^',
    says: 'Expected an operator, a clause or the end of the query, found `)`. (line 1, column 9)',
  },
  {
    text: 'SELECT 1 UNION ALL (SELECT 2) LIMIT 1 BY a',
    carets: '                                      ^^',
    says: 'LIMIT … BY stands once, before LIMIT, in a single SELECT. (line 1, column 39)',
  },
  {
    text: "SELECT a\n\tFROM events\n\tWHERE ü = 'ö' AND",
    carets: '\t                 ^',
    says: 'Expected an expression, found the end of the query. (line 3, column 19)',
  },
  {
    text: "SELECT '😀', )",
    carets: '            ^',
    says: 'Expected an expression, found `)`. (line 1, column 13)',
  },
  {
    text: 'SELECT a\r\nFROM t\r\nWHERE )',
    carets: '      ^',
    says: 'Expected an expression, found `)`. (line 3, column 7)',
  },
];
