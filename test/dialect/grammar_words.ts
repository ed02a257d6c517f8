import fc, { type Arbitrary } from 'fast-check';

/** What the names of a generated query are: those of a test's own tables, or any. */
export interface Vocabulary {
  readonly tables: readonly string[];
  readonly fields: readonly string[];
  /** Names of functions that take any arguments. */
  readonly functions: readonly string[];
}

/** Names as analysts write them, with keywords and quotes where these are allowed. */
export const anyVocabulary: Vocabulary = {
  tables: ['events', 'persons', 'warehouse.orders', '`odd table`', 'session_replay_events'],
  fields: [
    ...['event', 'timestamp', 'date', 'key', 'id', 'first', 'end', 'left', 'format', '$session_id', '`a b`'],
    ...[
      'properties.$browser',
      'e.person.properties.email',
      '"quoted".`from`.select',
      "properties['a \\' b']",
    ],
    ...['properties.a[1].b', 'x?.y', 't.1.2', 'group_0', 'interval', 'any', 'columns', 'höhe'],
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

export const words = (...choices: readonly string[]): Arbitrary<string> => fc.constantFrom(...choices);

export const literal = words(
  ...['0', '1', '42', '1.5', '.5', '2.', '1e3', '1E-3', '0xFF', 'inf', 'NaN', 'null', 'true', 'FALSE'],
  ...[
    "'text'",
    "''",
    "'it''s'",
    "'it\\'s'",
    "'\\d+\\n'",
    "'ü€😀'",
    "DATE '2026-11-21'",
    "timestamp '2026-11-21 10:00:00'",
  ],
  ...[
    'INTERVAL 1 DAY',
    "interval '2 hours'",
    "INTERVAL '-1 month'",
    'interval -3 minutes',
    "f''",
    "f'a\\{b'",
  ],
);
export const unit = words('SECOND', 'minute', 'HOURS', 'day', 'WEEK', 'months', 'QUARTER', 'year');
export const comparison = words(
  ...[
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
  ],
  ...['~', '~*', 'IN', 'NOT IN', 'GLOBAL IN', 'global not in', 'IN COHORT', 'NOT IN COHORT'],
  ...['IS DISTINCT FROM', 'IS NOT DISTINCT FROM'],
);
export const type = words(
  'Int64',
  'String',
  'Array(Nullable(String))',
  'Decimal(10, 2)',
  "DateTime64(3, 'UTC')",
  'Tuple(a String, b Int64[])',
);
export const alias = words('a', 'b', 'total', '`my name`', 'end', 'date');
export const joinWords = words(
  ...[
    'JOIN',
    'INNER JOIN',
    'LEFT JOIN',
    'LEFT OUTER JOIN',
    'RIGHT JOIN',
    'FULL OUTER JOIN',
    'ANY JOIN',
    'ASOF LEFT JOIN',
  ],
  ...['LEFT ASOF JOIN', 'SEMI LEFT JOIN', 'LEFT ANTI JOIN', 'ALL INNER JOIN'],
);
export const setWords = words(
  'UNION ALL',
  'UNION DISTINCT',
  'UNION',
  'INTERSECT',
  'INTERSECT DISTINCT',
  'EXCEPT',
  'EXCEPT ALL',
);
/** White space and comments, for places where there has to be some. */
export const space = words(
  ' ',
  ' ',
  ' ',
  '\n',
  '\t ',
  ' /* a comment */ ',
  ' -- to the end\n',
  ' // too\r\n',
);
