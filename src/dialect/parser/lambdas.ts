import type { Lambda, Name } from '../ast.ts';
import type { Cursor } from './cursor.ts';
import { anyName } from './names.ts';

const isName = (cursor: Cursor, ahead: number): boolean => {
  const { kind } = cursor.peek(ahead);
  return kind === 'word' || kind === 'quoted_name';
};

/** Whether `x -> …` or `(x, y) -> …` comes next. */
export function peekLambda(cursor: Cursor): boolean {
  if (isName(cursor, 0)) return cursor.peekSymbol('->', 1);
  if (!cursor.peekSymbol('(')) return false;
  if (cursor.peekSymbol(')', 1)) return cursor.peekSymbol('->', 2);
  const last = lastOfNames(cursor, 1);
  return last !== undefined && cursor.peekSymbol(')', last + 1) && cursor.peekSymbol('->', last + 2);
}

/** Whether `x, y -> …` comes next, which is allowed as the first argument of a call. */
export function peekBareLambda(cursor: Cursor): boolean {
  const last = lastOfNames(cursor, 0);
  return last !== undefined && last > 0 && cursor.peekSymbol('->', last + 1);
}

/** The position of the last name of `x, y, z`, or undefined if no name comes first. */
function lastOfNames(cursor: Cursor, first: number): number | undefined {
  if (!isName(cursor, first)) return undefined;
  let last = first;
  while (cursor.peekSymbol(',', last + 1) && isName(cursor, last + 2)) last += 2;
  return last;
}

export function lambda(cursor: Cursor): Lambda {
  const { start } = cursor.token;
  const parameters = cursor.acceptSymbol('(') ? parenthesizedParameters(cursor) : names(cursor);
  cursor.expectSymbol('->');
  const body = cursor.grammar.expression(cursor);
  return cursor.node<Lambda>(start, { kind: 'lambda', parameters, body });
}

function parenthesizedParameters(cursor: Cursor): readonly Name[] {
  const parameters = cursor.peekSymbol(')') ? [] : names(cursor);
  cursor.expectSymbol(')');
  return parameters;
}

const names = (cursor: Cursor): readonly Name[] =>
  cursor.list(() => anyName(cursor, 'the name of a parameter'));
