import type { RefusedText } from './refused_text.ts';

/** Refused texts, names, brackets and calls; a person has looked at each. */
export const refusedValues: readonly RefusedText[] = [
  ["SELECT 'abc", '       ^^^^', "This text is never closed. Close it with `'`. (line 1, column 8)"],
  [
    'SELECT "abc',
    '       ^^^^',
    'This name in double quotes is never closed. Close it with `"`. (line 1, column 8)',
  ],
  [
    'SELECT `abc FROM t\nWHERE a',
    '       ^^^^^^^^^^^',
    'This name in backticks is never closed. Close it with `` ``. (line 1, column 8)',
  ],
  [
    "SELECT f'a {b",
    '             ^',
    'Expected `}` behind the expression of this template text, found the end of the query. (line 1, column 14)',
  ],
  ["SELECT f'a {b'", '             ^', "This text is never closed. Close it with `'`. (line 1, column 14)"],
  ["SELECT f'{}'", '          ^', 'Expected an expression, found `}`. (line 1, column 11)'],
  ['SELECT /* abc', '       ^^', 'This comment is never closed. Close it with `*/`. (line 1, column 8)'],
  [
    'SELECT 1abc',
    '       ^^^^',
    '`1abc` is neither a number nor a name. A name that begins with a digit stands in backticks. (line 1, column 8)',
  ],
  [
    'SELECT 0x',
    '       ^^',
    '`0x` is neither a number nor a name. A name that begins with a digit stands in backticks. (line 1, column 8)',
  ],
  [
    'SELECT 1e',
    '       ^^',
    '`1e` is neither a number nor a name. A name that begins with a digit stands in backticks. (line 1, column 8)',
  ],
  [
    'SELECT a # b',
    '         ^',
    'The character `#` has no meaning here. Comments begin with `--` or stand between `/*` and `*/`. (line 1, column 10)',
  ],
  [
    'SELECT ‘a’',
    '       ^',
    'The character `‘` has no meaning here. Text stands in straight single quotes. (line 1, column 8)',
  ],
  [
    'SELECT a & b',
    '         ^',
    'The character `&` has no meaning here. Conditions are joined by AND; for bits there is bitAnd(). (line 1, column 10)',
  ],
  [
    'SELECT a | b',
    '         ^',
    'The character `|` has no meaning here. Conditions are joined by OR, texts by ||; for bits there is bitOr(). (line 1, column 10)',
  ],
  [
    'SELECT !a',
    '       ^',
    'The character `!` has no meaning here. Write NOT before a condition. (line 1, column 8)',
  ],
  [
    'SELECT @a',
    '       ^',
    "The character `@` has no meaning here. Write a placeholder as {name}, and a property with such a name as properties['@name']. (line 1, column 8)",
  ],
  [
    'SELECT a ^ b',
    '         ^',
    'The character `^` has no meaning here. Write pow(x, y) for powers and bitXor(x, y) for bits. (line 1, column 10)',
  ],
  ['SELECT \u0000', '       ^', 'The character `\u0000` has no meaning here. (line 1, column 8)'],
  ['SELECT 😀', '       ^', 'The character `😀` has no meaning here. (line 1, column 8)'],
  ['SELECT ``', '       ^^', 'A name cannot be empty. (line 1, column 8)'],
  ['SELECT (1', '         ^', 'Expected `,` or `)`, found the end of the query. (line 1, column 10)'],
  ['SELECT (1, 2', '            ^', 'Expected `,` or `)`, found the end of the query. (line 1, column 13)'],
  [
    'SELECT ()',
    '       ^^',
    'These brackets are empty. Write tuple() for an empty tuple. (line 1, column 8)',
  ],
  [
    'SELECT [1, 2',
    '            ^',
    'Expected `,` or `]` in this array, found the end of the query. (line 1, column 13)',
  ],
  ['SELECT [1 2]', '          ^', 'Expected `,` or `]` in this array, found `2`. (line 1, column 11)'],
  [
    'SELECT {a',
    '         ^',
    'Expected `}` behind a placeholder, or `:` behind a key, found the end of the query. (line 1, column 10)',
  ],
  [
    'SELECT {a: 1, b}',
    '               ^',
    'Expected `}` behind a placeholder, or `:` behind a key, found `}`. (line 1, column 16)',
  ],
  [
    "SELECT {'a' 1}",
    '            ^',
    'Expected `}` behind a placeholder, or `:` behind a key, found `1`. (line 1, column 13)',
  ],
  ['SELECT f(a b)', '           ^', 'Expected `,` or `)` in the call of f(), found `b`. (line 1, column 12)'],
  [
    'SELECT f(a',
    '          ^',
    'Expected `,` or `)` in the call of f(), found the end of the query. (line 1, column 11)',
  ],
  ['SELECT f(, a)', '         ^', 'Expected an expression, found `,`. (line 1, column 10)'],
  [
    'SELECT count(DISTINCT)',
    '                     ^',
    'Expected an expression, found `)`. (line 1, column 22)',
  ],
  [
    'SELECT f(DISTINCT x)(y)',
    '                    ^',
    'DISTINCT and ORDER BY belong into the second pair of brackets. (line 1, column 21)',
  ],
  [
    'SELECT a.b(c)',
    '       ^^^',
    'The name of a function has no point in it. Write b(…). (line 1, column 8)',
  ],
  [
    'SELECT a.',
    '         ^',
    'Expected the name of a property behind the point, found the end of the query. (line 1, column 10)',
  ],
  [
    'SELECT a..b',
    '         ^',
    'Expected the name of a property behind the point, found `.`. (line 1, column 10)',
  ],
  ['SELECT a[', '         ^', 'Expected an expression, found the end of the query. (line 1, column 10)'],
  ['SELECT a[]', '         ^', 'Expected an expression, found `]`. (line 1, column 10)'],
  ['SELECT a?.', '         ^', 'Expected an expression, found `.`. (line 1, column 10)'],
];
