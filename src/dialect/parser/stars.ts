import type { Alias, Name, Star } from '../ast.ts';
import { aliasName, plainName } from './names.ts';
import type { Cursor } from './cursor.ts';

/** `*` with its EXCLUDE and REPLACE lists. `table` is the path before it. */
export function star(cursor: Cursor, start: number, table: readonly Name[]): Star {
  cursor.expectSymbol('*');
  const exclude = peekExclude(cursor) ? excluded(cursor) : [];
  const replace = cursor.peekKeywords('REPLACE') && cursor.peekSymbol('(', 1) ? replaced(cursor) : [];
  return cursor.node<Star>(start, { kind: 'star', table, exclude, replace });
}

/** EXCEPT may also be a set operator. */
function peekExclude(cursor: Cursor): boolean {
  if (!cursor.peekSymbol('(', 1)) return false;
  if (cursor.peekKeywords('EXCLUDE')) return true;
  const inner = cursor.peek(2);
  const isQuery =
    inner.kind === 'word' ? inner.upper === 'SELECT' || inner.upper === 'WITH' : inner.kind !== 'quoted_name';
  return cursor.peekKeywords('EXCEPT') && !isQuery;
}

function excluded(cursor: Cursor): readonly Name[] {
  cursor.advance();
  return cursor.parenthesized(() =>
    cursor.list(
      () => plainName(cursor, 'the name of a column to exclude'),
      () => cursor.peekSymbol(')'),
    ),
  );
}

function replaced(cursor: Cursor): readonly Alias[] {
  cursor.advance();
  return cursor.parenthesized(() =>
    cursor.list(() => {
      const expression = cursor.grammar.expression(cursor);
      cursor.expectKeywords('AS');
      const name = aliasName(cursor, 'the name of the column to replace');
      return cursor.node<Alias>(expression.start, { kind: 'alias', expression, name });
    }),
  );
}
