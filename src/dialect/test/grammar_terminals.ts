import fc, { type Arbitrary } from 'fast-check';

/** Names for generated queries: those of a test's tables, or arbitrary ones. */
export interface Vocabulary {
  readonly tables: readonly string[];
  readonly fields: readonly string[];
  /** Functions that accept any arguments. */
  readonly functions: readonly string[];
}

/** Names as users write them, with keywords and quotes where allowed. */
export const anyVocabulary: Vocabulary = {
  tables: ['events', 'persons', 'warehouse.orders', '`odd table`', 'session_replay_events'],
  fields: [
    'event',
    'timestamp',
    'date',
    'key',
    'id',
    'first',
    'end',
    'left',
    'format',
    '$session_id',
    '`a b`',
    'properties.$browser',
    'e.person.properties.email',
    '"quoted".`from`.select',
    "properties['a \\' b']",
    'properties.a[1].b',
    'x?.y',
    't.1.2',
    'group_0',
    'interval',
    'any',
    'columns',
    'höhe',
  ],
  functions: [
    'count',
    'toDate',
    'if',
    'any',
    'left',
    'right',
    'replace',
    'and',
    'or',
    'in',
    'like',
    'date',
    '`f g`',
  ],
};

export const oneOf = (...choices: readonly string[]): Arbitrary<string> => fc.constantFrom(...choices);

export const literal = oneOf(
  '0',
  '1',
  '1_000',
  '42',
  '1.5',
  '.5',
  '2.',
  '1e3',
  '1E-3',
  '0xFF',
  'inf',
  'NaN',
  'null',
  'true',
  'FALSE',
  "'text'",
  "''",
  "'it''s'",
  "'it\\'s'",
  "'\\d+\\n'",
  "'ü€😀'",
  "DATE '2026-11-21'",
  "timestamp '2026-11-21 10:00:00'",
  'INTERVAL 1 DAY',
  "interval '2 hours'",
  "INTERVAL '-1 month'",
  'interval -3 minutes',
  "f''",
  "f'a\\{b'",
);
export const unit = oneOf('SECOND', 'minute', 'HOURS', 'day', 'WEEK', 'months', 'QUARTER', 'year');
export const comparison = oneOf(
  '=',
  '==',
  '!=',
  '<>',
  '<',
  '<=',
  '>',
  '>=',
  'LIKE',
  'not like',
  'ILIKE',
  'NOT ILIKE',
  '=~',
  '!~',
  '=~*',
  '!~*',
  '~',
  '~*',
  'IN',
  'NOT IN',
  'GLOBAL IN',
  'global not in',
  'IN COHORT',
  'NOT IN COHORT',
  'IS DISTINCT FROM',
  'IS NOT DISTINCT FROM',
);
export const type = oneOf(
  'Int64',
  'String',
  'Array(Nullable(String))',
  'Decimal(10, 2)',
  "DateTime64(3, 'UTC')",
  'Tuple(a String, b Int64[])',
);
export const alias = oneOf('a', 'b', 'total', '`my name`', 'end', 'date');
export const joinKeywords = oneOf(
  'JOIN',
  'INNER JOIN',
  'LEFT JOIN',
  'LEFT OUTER JOIN',
  'RIGHT JOIN',
  'FULL OUTER JOIN',
  'ANY JOIN',
  'ASOF LEFT JOIN',
  'LEFT ASOF JOIN',
  'SEMI LEFT JOIN',
  'LEFT ANTI JOIN',
  'ALL INNER JOIN',
);
export const setOperators = oneOf(
  'UNION ALL',
  'UNION DISTINCT',
  'UNION',
  'INTERSECT',
  'INTERSECT DISTINCT',
  'EXCEPT',
  'EXCEPT ALL',
);
/** Whitespace and comments where a separator is required. */
export const whitespace = oneOf(
  ' ',
  ' ',
  ' ',
  '\n',
  '\t ',
  ' /* a comment */ ',
  ' -- to the end\n',
  ' // too\r\n',
);
