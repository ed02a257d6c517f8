import type { Cursor } from './cursor.ts';

interface UnsupportedClause {
  readonly words: readonly string[];
  readonly summary: string;
  readonly suggestion?: string;
}

/** Clauses of other databases that the dialect does not support, by position in a SELECT. */
const unsupportedClauses: Readonly<Record<'cte' | 'end', readonly UnsupportedClause[]>> = {
  cte: [
    { words: ['MATERIALIZED'], summary: 'MATERIALIZED is not supported.', suggestion: 'Remove it.' },
    {
      words: ['NOT', 'MATERIALIZED'],
      summary: 'NOT MATERIALIZED is not supported.',
      suggestion: 'Remove it.',
    },
  ],
  end: [
    { words: ['SETTINGS'], summary: 'SETTINGS is not supported.', suggestion: 'Remove it.' },
    {
      words: ['FORMAT'],
      summary: 'FORMAT is not supported.',
      suggestion: 'Results are JSON; use a batch export for other formats.',
    },
    {
      words: ['INTO'],
      summary: 'INTO is not supported.',
      suggestion: 'Use a batch export to write rows elsewhere.',
    },
    { words: ['FOR'], summary: 'FOR UPDATE and other locking clauses are not supported.' },
    { words: ['FETCH'], summary: 'FETCH is not supported.', suggestion: 'Use LIMIT.' },
    { words: ['WITH', 'TOTALS'], summary: 'WITH TOTALS must directly follow the GROUP BY list.' },
  ],
};

/** @throws DialectError if an unsupported clause comes next */
export function rejectUnsupportedClause(cursor: Cursor, position: 'cte' | 'end'): void {
  const unsupported = unsupportedClauses[position].find(({ words }) => cursor.peekKeywords(...words));
  if (unsupported !== undefined)
    throw cursor.error(unsupported.summary, cursor.token, unsupported.suggestion ?? null);
}

/** @throws DialectError for `SELECT TOP 10 x`. Without a number `top` is a column. */
export function rejectTop(cursor: Cursor): void {
  if (cursor.peekKeywords('TOP') && cursor.peek(1).kind === 'number')
    throw cursor.error('TOP is not supported.', cursor.token, 'Use LIMIT at the end of the query.');
}

/** The order of the clauses of a SELECT. */
const clauseOrder = [
  'FROM',
  'PREWHERE',
  'WHERE',
  'GROUP BY',
  'HAVING',
  'QUALIFY',
  'WINDOW',
  'ORDER BY',
  'LIMIT',
  'OFFSET',
];

/** @throws DialectError if the next token is a clause that belongs earlier */
export function rejectMisplacedClause(cursor: Cursor): void {
  const { token } = cursor;
  if (token.kind !== 'word') return;
  const clause = clauseOrder.find((name) => name.split(' ')[0] === token.upper);
  if (clause === undefined) return;
  throw cursor.error(
    `${clause} is misplaced or repeated.`,
    token,
    `Clauses come in this order: ${clauseOrder.join(', ')}.`,
  );
}
