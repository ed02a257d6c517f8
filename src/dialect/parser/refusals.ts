import type { Cursor } from './cursor.ts';

interface Refusal {
  readonly words: readonly string[];
  readonly sentence: string;
  readonly suggestion?: string;
}

/** What other databases know at a place of a SELECT and the dialect does not. */
const refusals: Readonly<Record<'cte' | 'end', readonly Refusal[]>> = {
  cte: [
    { words: ['MATERIALIZED'], sentence: 'MATERIALIZED is not supported.', suggestion: 'Leave it out.' },
    {
      words: ['NOT', 'MATERIALIZED'],
      sentence: 'NOT MATERIALIZED is not supported.',
      suggestion: 'Leave it out.',
    },
  ],
  end: [
    { words: ['SETTINGS'], sentence: 'SETTINGS is not supported.', suggestion: 'Leave it out.' },
    {
      words: ['FORMAT'],
      sentence: 'FORMAT is not supported.',
      suggestion: 'Answers are JSON; batch exports write other formats.',
    },
    {
      words: ['INTO'],
      sentence: 'INTO is not supported.',
      suggestion: 'Batch exports write rows elsewhere.',
    },
    { words: ['FOR'], sentence: 'FOR UPDATE and its kin are not supported: queries lock nothing.' },
    { words: ['FETCH'], sentence: 'FETCH is not supported.', suggestion: 'Write LIMIT.' },
    { words: ['WITH', 'TOTALS'], sentence: 'WITH TOTALS stands right behind the items of GROUP BY.' },
  ],
};

/** Throws when a clause comes next that other databases have here. */
export function refuseClause(cursor: Cursor, place: 'cte' | 'end'): void {
  const refusal = refusals[place].find(({ words }) => cursor.atWords(...words));
  if (refusal !== undefined) throw cursor.error(refusal.sentence, cursor.token, refusal.suggestion ?? null);
}

/** Throws at `SELECT TOP 10 x`; without a number behind it `top` is a column. */
export function refuseTop(cursor: Cursor): void {
  if (cursor.atWords('TOP') && cursor.peek(1).kind === 'number')
    throw cursor.error('TOP is not supported.', cursor.token, 'Write LIMIT at the end of the query.');
}

/** The order in which the clauses of a SELECT stand. */
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

/** Throws when the next token is a clause that stands behind one that it belongs before. */
export function refuseMisplacedClause(cursor: Cursor): void {
  const { token } = cursor;
  if (token.kind !== 'word') return;
  const clause = clauseOrder.find((name) => name.split(' ')[0] === token.upper);
  if (clause === undefined) return;
  throw cursor.error(
    `${clause} stands at the wrong place or a second time.`,
    token,
    `The order is ${clauseOrder.join(', ')}.`,
  );
}
