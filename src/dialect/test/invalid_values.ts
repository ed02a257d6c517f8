import type { InvalidText } from './invalid_text.ts';

/** Invalid strings, names, brackets and calls. The messages were reviewed one by one. */
export const invalidValues: readonly InvalidText[] = [
  ["SELECT 'abc", '       ^^^^', "This string is not closed. Close it with `'`. (line 1, column 8)"],
  [
    'SELECT "abc',
    '       ^^^^',
    'This double-quoted name is not closed. Close it with `"`. (line 1, column 8)',
  ],
  [
    'SELECT `abc FROM t\nWHERE a',
    '       ^^^^^^^^^^^',
    'This backtick-quoted name is not closed. Close it with `` ``. (line 1, column 8)',
  ],
  [
    "SELECT f'a {b",
    '             ^',
    'Expected `}` after the expression in this template string, found the end of the query. (line 1, column 14)',
  ],
  ["SELECT f'a {b'", '             ^', "This string is not closed. Close it with `'`. (line 1, column 14)"],
  ["SELECT f'{}'", '          ^', 'Expected an expression, found `}`. (line 1, column 11)'],
  ['SELECT /* abc', '       ^^', 'This comment is not closed. Close it with `*/`. (line 1, column 8)'],
  [
    'SELECT 1abc',
    '       ^^^^',
    '`1abc` is neither a number nor a name. Write a name that starts with a digit in backticks. (line 1, column 8)',
  ],
  [
    'SELECT 0x',
    '       ^^',
    '`0x` is neither a number nor a name. Write a name that starts with a digit in backticks. (line 1, column 8)',
  ],
  [
    'SELECT 1e',
    '       ^^',
    '`1e` is neither a number nor a name. Write a name that starts with a digit in backticks. (line 1, column 8)',
  ],
  [
    'SELECT a # b',
    '         ^',
    'The character `#` has no meaning here. Comments start with `--` or are enclosed in `/*` and `*/`. (line 1, column 10)',
  ],
  [
    'SELECT ‘a’',
    '       ^',
    'The character `‘` has no meaning here. Write strings in straight single quotes. (line 1, column 8)',
  ],
  [
    'SELECT a & b',
    '         ^',
    'The character `&` has no meaning here. Combine conditions with AND; use bitAnd() for bits. (line 1, column 10)',
  ],
  [
    'SELECT a | b',
    '         ^',
    'The character `|` has no meaning here. Combine conditions with OR and strings with ||; use bitOr() for bits. (line 1, column 10)',
  ],
  [
    'SELECT !a',
    '       ^',
    'The character `!` has no meaning here. Use NOT to negate a condition. (line 1, column 8)',
  ],
  [
    'SELECT @a',
    '       ^',
    "The character `@` has no meaning here. Write placeholders as {name}, and a property of that name as properties['@name']. (line 1, column 8)",
  ],
  [
    'SELECT a ^ b',
    '         ^',
    'The character `^` has no meaning here. Use pow(x, y) for powers and bitXor(x, y) for bits. (line 1, column 10)',
  ],
  ['SELECT \u0000', '       ^', 'The character `\u0000` has no meaning here. (line 1, column 8)'],
  ['SELECT 😀', '       ^', 'The character `😀` has no meaning here. (line 1, column 8)'],
  ['SELECT ``', '       ^^', 'A name cannot be empty. (line 1, column 8)'],
  ['SELECT (1', '         ^', 'Expected `,` or `)`, found the end of the query. (line 1, column 10)'],
  ['SELECT (1, 2', '            ^', 'Expected `,` or `)`, found the end of the query. (line 1, column 13)'],
  [
    'SELECT ()',
    '       ^^',
    'These parentheses are empty. Write tuple() for an empty tuple. (line 1, column 8)',
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
    'Expected `}` after a placeholder or `:` after a key, found the end of the query. (line 1, column 10)',
  ],
  [
    'SELECT {a: 1, b}',
    '               ^',
    'Expected `}` after a placeholder or `:` after a key, found `}`. (line 1, column 16)',
  ],
  [
    "SELECT {'a' 1}",
    '            ^',
    'Expected `}` after a placeholder or `:` after a key, found `1`. (line 1, column 13)',
  ],
  ['SELECT f(a b)', '           ^', 'Expected `,` or `)` in the call to f(), found `b`. (line 1, column 12)'],
  [
    'SELECT f(a',
    '          ^',
    'Expected `,` or `)` in the call to f(), found the end of the query. (line 1, column 11)',
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
    'DISTINCT and ORDER BY belong in the second pair of parentheses. (line 1, column 21)',
  ],
  ['SELECT a.b(c)', '       ^^^', 'A function name cannot contain a dot. Write b(…). (line 1, column 8)'],
  [
    'SELECT a.',
    '         ^',
    'Expected a property name after the dot, found the end of the query. (line 1, column 10)',
  ],
  ['SELECT a..b', '         ^', 'Expected a property name after the dot, found `.`. (line 1, column 10)'],
  ['SELECT a[', '         ^', 'Expected an expression, found the end of the query. (line 1, column 10)'],
  ['SELECT a[]', '         ^', 'Expected an expression, found `]`. (line 1, column 10)'],
  ['SELECT a?.', '         ^', 'Expected an expression, found `.`. (line 1, column 10)'],
];
