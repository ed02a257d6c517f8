import fc, { type Arbitrary } from 'fast-check';

/** Characters and tokens, some of which are invalid in queries. */
const fragments = fc.oneof(
  fc.constantFrom(
    '(',
    ')',
    '[',
    ']',
    '{',
    '}',
    "'",
    '"',
    '`',
    '\\',
    ',',
    '.',
    ';',
    ':',
    '?',
    '::',
    '->',
    '--',
    '/*',
    '*/',
    '*',
    "f'",
    '#',
    '@',
    '\0',
    '\n',
    '\r\n',
    '😀',
    '’',
    '0x',
    '1e',
    '.5',
    '1.',
    '$',
    '-',
    '+',
    '/',
    '<',
    '=~',
    '?.',
    '??',
    'SELECT',
    'FROM',
    'WHERE',
    'AS',
    'AND',
    'NOT',
    'IN',
    'BY',
    'OVER',
    'CASE',
    'END',
    'INTERVAL',
    'CAST',
    'LIMIT',
    'UNION ALL',
    'WITH',
    'DISTINCT',
    'ARRAY JOIN',
    'LEFT',
    'NULL',
    'EXCEPT',
    'FORMAT',
    'DROP TABLE events',
  ),
  fc.string({ unit: 'binary', maxLength: 3 }),
);

interface Mutation {
  /** Position as a share of the text. */
  readonly at: number;
  /** Number of removed characters. */
  readonly removed: number;
  readonly inserted: string;
}

const mutation: Arbitrary<Mutation> = fc.record({
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  removed: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 8 })),
  inserted: fc.oneof(
    fc.constant(''),
    fragments,
    fragments.map((fragment) => ` ${fragment} `),
  ),
});

/** Texts with up to three changes. */
export const mutated = (texts: Arbitrary<string>): Arbitrary<string> =>
  fc.tuple(texts, fc.array(mutation, { minLength: 1, maxLength: 3 })).map(([text, mutations]) => {
    let changed = text;
    for (const { at, removed, inserted } of mutations) {
      const start = Math.floor(at * changed.length);
      changed = `${changed.slice(0, start)}${inserted}${changed.slice(start + removed)}`;
    }
    return changed;
  });
