import type { Expression, Limit, LimitBy } from '../ast.ts';
import { itemOrStar } from './aliases.ts';
import type { Cursor } from './cursor.ts';

/** The clauses that end a query: LIMIT … BY, LIMIT and OFFSET. */
export interface LimitClauses {
  readonly limitBy: LimitBy | null;
  readonly limit: Limit | null;
}

interface Bounds {
  readonly count: Expression;
  readonly percent: boolean;
  readonly offset: Expression | null;
  readonly withTies: boolean;
}

/** Reads `LIMIT n BY …` and `LIMIT n`, each at most once and in this order. */
export function limitClauses(cursor: Cursor): LimitClauses {
  const { start } = cursor.token;
  if (!cursor.acceptKeywords('LIMIT')) return { limitBy: null, limit: offsetAlone(cursor) };
  const bounds = limitBounds(cursor);
  if (!cursor.acceptKeywords('BY')) return { limitBy: null, limit: limitOf(cursor, start, bounds) };
  if (bounds.withTies) throw cursor.error('WITH TIES cannot be used with LIMIT … BY.');
  if (bounds.percent) throw cursor.error('PERCENT cannot be used with LIMIT … BY.');
  const { count, offset } = bounds;
  const by = cursor.list(() => itemOrStar(cursor));
  const limitBy = cursor.node<LimitBy>(start, { kind: 'limit_by', count, offset, by });
  return { limitBy, limit: optionalLimit(cursor) };
}

/** `LIMIT n [OFFSET m]` or `OFFSET m`, or null. */
export function optionalLimit(cursor: Cursor): Limit | null {
  const { start } = cursor.token;
  if (!cursor.acceptKeywords('LIMIT')) return offsetAlone(cursor);
  const bounds = limitBounds(cursor);
  if (cursor.peekKeywords('BY')) throw cursor.error('A SELECT may have one LIMIT … BY, before LIMIT.');
  return limitOf(cursor, start, bounds);
}

function offsetAlone(cursor: Cursor): Limit | null {
  const { start } = cursor.token;
  if (!cursor.acceptKeywords('OFFSET')) return null;
  const offset = cursor.grammar.expression(cursor);
  if (cursor.peekKeywords('LIMIT')) throw cursor.error('LIMIT must come before OFFSET.');
  return cursor.node<Limit>(start, { kind: 'limit', count: null, percent: false, offset, withTies: false });
}

/** The operands of LIMIT. `LIMIT m, n` gives the offset first. */
function limitBounds(cursor: Cursor): Bounds {
  const first = cursor.grammar.expression(cursor);
  if (cursor.acceptSymbol(','))
    return {
      count: cursor.grammar.expression(cursor),
      percent: cursor.acceptKeywords('PERCENT'),
      offset: first,
      withTies: cursor.acceptKeywords('WITH', 'TIES'),
    };
  const percent = cursor.acceptKeywords('PERCENT');
  if (percent && cursor.peekSymbol(','))
    throw cursor.error('In LIMIT m, n, PERCENT comes after both numbers.');
  const tiesBefore = cursor.acceptKeywords('WITH', 'TIES');
  const offset = cursor.acceptKeywords('OFFSET') ? cursor.grammar.expression(cursor) : null;
  return { count: first, percent, offset, withTies: tiesBefore || cursor.acceptKeywords('WITH', 'TIES') };
}

const limitOf = (cursor: Cursor, start: number, bounds: Bounds): Limit =>
  cursor.node<Limit>(start, { kind: 'limit', ...fractionAsPercent(bounds) });

/** `LIMIT 0.1` is LIMIT 10 PERCENT. */
function fractionAsPercent(bounds: Bounds): Bounds {
  const { count, percent } = bounds;
  if (percent || count.kind !== 'number') return bounds;
  const share = Number(count.text);
  if (!(share > 0 && share < 1)) return bounds;
  // Shift the exponent in the text, because 0.07 * 100 is more than 7.
  const [digits, exponent = '0'] = String(share).split('e');
  const text = String(Number(`${digits}e${Number(exponent) + 2}`));
  return { ...bounds, count: { ...count, text }, percent: true };
}
