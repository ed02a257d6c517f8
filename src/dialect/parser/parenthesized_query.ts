import { type Cursor, keywordOf } from './cursor.ts';

const joins = new Set(['UNION', 'EXCEPT', 'INTERSECT', 'ORDER', 'LIMIT', 'OFFSET']);

/**
 * Whether the next parentheses contain a query rather than an expression or joined tables: `(SELECT 1)`, `((SELECT
 * 1) UNION ALL (SELECT 2))`, but not `((SELECT 1) + 1)`.
 */
export function peekParenthesizedQuery(cursor: Cursor): boolean {
  let ahead = 0;
  while (cursor.peekSymbol('(', ahead)) ahead += 1;
  const word = keywordOf(cursor.peek(ahead));
  if (ahead === 0 || (word !== 'SELECT' && word !== 'WITH')) return false;
  // From the innermost parenthesis outward: only set operators and query clauses may follow a closing one.
  let open = 0;
  let inner = ahead;
  for (let at = 0; inner > 1; at += 1) {
    const { kind } = cursor.peek(at);
    if (kind === 'end' || kind === 'invalid') return true;
    if (cursor.peekSymbol('(', at)) open += 1;
    if (!cursor.peekSymbol(')', at)) continue;
    open -= 1;
    if (open >= inner) continue;
    inner = open;
    const following = keywordOf(cursor.peek(at + 1));
    const joined = following !== undefined && joins.has(following);
    if (!joined && !cursor.peekSymbol(')', at + 1)) return false;
  }
  return true;
}
