import type { Alias, Name, Star } from '../ast.ts';
import { aliasName, plainName } from './names.ts';
import type { Cursor } from './cursor.ts';

/** `*` with what it leaves out and replaces; `table` is what stands before it and its point. */
export function star(cursor: Cursor, start: number, table: readonly Name[]): Star {
  cursor.expectSymbol('*');
  const exclude = atExclude(cursor) ? excluded(cursor) : [];
  const replace = cursor.atWords('REPLACE') && cursor.atSymbol('(', 1) ? replaced(cursor) : [];
  return cursor.node<Star>(start, { kind: 'star', table, exclude, replace });
}

/** EXCEPT may also join another query. */
function atExclude(cursor: Cursor): boolean {
  if (!cursor.atSymbol('(', 1)) return false;
  if (cursor.atWords('EXCLUDE')) return true;
  const inner = cursor.peek(2);
  const isQuery =
    inner.kind === 'word' ? inner.upper === 'SELECT' || inner.upper === 'WITH' : inner.kind !== 'quoted_name';
  return cursor.atWords('EXCEPT') && !isQuery;
}

function excluded(cursor: Cursor): readonly Name[] {
  cursor.advance();
  return cursor.bracketed(() =>
    cursor.list(
      () => plainName(cursor, 'the name of a column to leave out'),
      () => cursor.atSymbol(')'),
    ),
  );
}

function replaced(cursor: Cursor): readonly Alias[] {
  cursor.advance();
  return cursor.bracketed(() =>
    cursor.list(() => {
      const expression = cursor.grammar.expression(cursor);
      cursor.expectWords('AS');
      const name = aliasName(cursor, 'the name of the column to replace');
      return cursor.node<Alias>(expression.start, { kind: 'alias', expression, name });
    }),
  );
}
