import type { Frame, FrameBound, Name, NamedWindow, Window } from '../ast.ts';
import type { Cursor } from './cursor.ts';
import { anyName, plainName } from './names.ts';
import { optionalOrderBy } from './order_items.ts';

/** `OVER name` or `OVER (…)`, after OVER. */
export function over(cursor: Cursor): Window | Name {
  return cursor.peekSymbol('(') ? window(cursor) : plainName(cursor, 'the name of a window or `(`');
}

/** `WINDOW name AS (…), …`, or an empty list if it is absent. */
export function optionalWindows(cursor: Cursor): readonly NamedWindow[] {
  if (!cursor.acceptKeywords('WINDOW')) return [];
  return cursor.list(() => {
    const { start } = cursor.token;
    const name = plainName(cursor, 'the name of a window');
    cursor.expectKeywords('AS');
    return cursor.node<NamedWindow>(start, { kind: 'named_window', name, window: window(cursor) });
  });
}

function window(cursor: Cursor): Window {
  const { start } = cursor.token;
  const fields = cursor.parenthesized(() => {
    const base = peekWindowPart(cursor) ? null : anyName(cursor, 'PARTITION BY, ORDER BY, a frame or `)`');
    const partitionBy = optionalPartitionBy(cursor);
    const orderBy = optionalOrderBy(cursor);
    const frame = optionalFrame(cursor);
    if (!cursor.peekSymbol(')'))
      throw cursor.unexpected('`)` at the end of the window', ['PARTITION', 'ORDER', 'ROWS', 'RANGE']);
    return { base, partitionBy, orderBy, frame };
  });
  return cursor.node<Window>(start, { kind: 'window', ...fields });
}

const peekWindowPart = (cursor: Cursor): boolean =>
  cursor.peekSymbol(')') ||
  cursor.peekKeywords('PARTITION', 'BY') ||
  cursor.peekKeywords('ORDER') ||
  peekFrame(cursor);

const frameUnits = { ROWS: 'rows', RANGE: 'range', GROUPS: 'groups' } as const;
const frameWords = ['ROWS', 'RANGE', 'GROUPS'] as const;

const peekFrame = (cursor: Cursor): boolean => frameWords.some((word) => cursor.peekKeywords(word));

function optionalPartitionBy(cursor: Cursor): Window['partitionBy'] {
  if (!cursor.acceptKeywords('PARTITION')) return [];
  cursor.expectKeywords('BY');
  return cursor.list(() => cursor.grammar.expression(cursor));
}

function optionalFrame(cursor: Cursor): Frame | null {
  const { start } = cursor.token;
  const word = frameWords.find((unit) => cursor.acceptKeywords(unit));
  if (word === undefined) return null;
  const between = cursor.acceptKeywords('BETWEEN');
  const first = frameBound(cursor);
  if (between) cursor.expectKeywords('AND');
  const last = between ? frameBound(cursor) : null;
  if (cursor.peekKeywords('EXCLUDE')) throw cursor.error('EXCLUDE is not supported in a window frame.');
  return cursor.node<Frame>(start, { kind: 'frame', unit: frameUnits[word], first, last });
}

function frameBound(cursor: Cursor): FrameBound {
  const { start } = cursor.token;
  if (cursor.acceptKeywords('CURRENT')) {
    cursor.expectKeywords('ROW');
    return cursor.node<FrameBound>(start, { kind: 'frame_bound', direction: 'current row', offset: null });
  }
  const offset = cursor.acceptKeywords('UNBOUNDED') ? null : cursor.grammar.expression(cursor);
  const direction = frameDirection(cursor);
  return cursor.node<FrameBound>(start, { kind: 'frame_bound', direction, offset });
}

function frameDirection(cursor: Cursor): 'preceding' | 'following' {
  if (cursor.acceptKeywords('PRECEDING')) return 'preceding';
  if (cursor.acceptKeywords('FOLLOWING')) return 'following';
  throw cursor.unexpected('PRECEDING or FOLLOWING', ['PRECEDING', 'FOLLOWING']);
}
