import type {
  Call,
  Expression,
  Fill,
  Frame,
  FrameBound,
  Lambda,
  Name,
  NamedWindow,
  OrderItem,
  Subquery,
  Window,
} from '../ast.ts';
import type { Cursor } from './cursor.ts';
import { anyName, itemOrStar, plainName } from './names.ts';

/** The items of ORDER BY, or an empty list if it is absent. */
export function optionalOrderBy(cursor: Cursor): readonly OrderItem[] {
  if (!cursor.acceptKeywords('ORDER')) return [];
  cursor.expectKeywords('BY');
  return cursor.list(() => orderItem(cursor));
}

/** `expression [ASC | DESC] [NULLS FIRST | LAST] [WITH FILL …]`. */
export function orderItem(cursor: Cursor): OrderItem {
  const { start } = cursor.token;
  const expression = cursor.grammar.expression(cursor);
  const descending = cursor.acceptKeywords('DESC') || cursor.acceptKeywords('DESCENDING');
  if (!descending && !cursor.acceptKeywords('ASC')) cursor.acceptKeywords('ASCENDING');
  const nulls = nullsOrder(cursor);
  if (cursor.peekKeywords('COLLATE'))
    throw cursor.error('COLLATE is not supported: strings are compared by their bytes.');
  const fill = optionalFill(cursor);
  return cursor.node<OrderItem>(start, { kind: 'order_item', expression, descending, nulls, fill });
}

function nullsOrder(cursor: Cursor): 'first' | 'last' | null {
  if (!cursor.acceptKeywords('NULLS')) return null;
  if (cursor.acceptKeywords('FIRST')) return 'first';
  if (cursor.acceptKeywords('LAST')) return 'last';
  throw cursor.unexpected('FIRST or LAST', ['FIRST', 'LAST']);
}

function optionalFill(cursor: Cursor): Fill | null {
  const { start } = cursor.token;
  if (!cursor.acceptKeywords('WITH', 'FILL')) return null;
  const bound = (word: string): Expression | null =>
    cursor.acceptKeywords(word) ? cursor.grammar.expression(cursor) : null;
  return cursor.node<Fill>(start, {
    kind: 'fill',
    from: bound('FROM'),
    to: bound('TO'),
    step: bound('STEP'),
  });
}

/** `OVER name` or `OVER (…)`, after OVER. */
function over(cursor: Cursor): Window | Name {
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
function peekBareLambda(cursor: Cursor): boolean {
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

interface Arguments {
  readonly distinct: boolean;
  readonly arguments: readonly Expression[];
  readonly orderBy: readonly OrderItem[];
  readonly nulls: Call['nulls'];
}

/** The rest of a call after its name: one or two pairs of parentheses, FILTER and OVER. */
export function call(cursor: Cursor, name: Name): Call {
  const first = parenthesizedArguments(cursor, name);
  const parameters = cursor.peekSymbol('(') ? parametersOf(cursor, first) : null;
  const { nulls: inner, ...fields } = parameters === null ? first : parenthesizedArguments(cursor, name);
  const nulls = inner ?? optionalNulls(cursor);
  if (cursor.peekKeywords('WITHIN', 'GROUP'))
    throw cursor.error(
      'WITHIN GROUP is not supported.',
      cursor.token,
      'Write quantile(0.5)(x), or put ORDER BY inside the parentheses.',
    );
  const filter = optionalFilter(cursor);
  const window = cursor.acceptKeywords('OVER') ? over(cursor) : null;
  return cursor.node<Call>(name.start, {
    kind: 'call',
    name,
    parameters,
    ...fields,
    nulls,
    filter,
    over: window,
  });
}

function parametersOf(cursor: Cursor, read: Arguments): readonly Expression[] {
  if (read.distinct || read.orderBy.length > 0 || read.nulls !== null)
    throw cursor.error('DISTINCT and ORDER BY belong in the second pair of parentheses.');
  return read.arguments;
}

function parenthesizedArguments(cursor: Cursor, name: Name): Arguments {
  return cursor.parenthesized(() => {
    const distinct = cursor.acceptKeywords('DISTINCT');
    const read = distinct ? cursor.list(() => itemOrStar(cursor)) : callArguments(cursor, name);
    const orderBy = optionalOrderBy(cursor);
    const nulls = optionalNulls(cursor);
    if (!cursor.peekSymbol(')'))
      throw cursor.unexpected(`\`,\` or \`)\` in the call to ${name.text}()`, [
        'ORDER',
        'DISTINCT',
        'AND',
        'OR',
      ]);
    return { distinct, arguments: read, orderBy, nulls };
  });
}

function callArguments(cursor: Cursor, name: Name): readonly Expression[] {
  const ends = (): boolean => cursor.peekSymbol(')');
  if (ends()) return [];
  if (peekBareLambda(cursor)) {
    const first = lambda(cursor);
    return cursor.acceptSymbol(',') ? [first, ...cursor.list(() => itemOrStar(cursor), ends)] : [first];
  }
  if (cursor.peekKeywords('SELECT') || cursor.peekKeywords('WITH')) return [bareSubquery(cursor)];
  const read = cursor.list(() => itemOrStar(cursor), ends);
  return name.text.toUpperCase() === 'SUBSTRING' && read.length === 1
    ? [...read, ...substringRange(cursor)]
    : read;
}

/** `exists(SELECT …)`: a subquery may use the parentheses of the call. */
function bareSubquery(cursor: Cursor): Subquery {
  const { start } = cursor.token;
  const query = cursor.grammar.query(cursor);
  return cursor.node<Subquery>(start, { kind: 'subquery', query });
}

/** The rest of `SUBSTRING(text FROM start FOR length)`. */
function substringRange(cursor: Cursor): readonly Expression[] {
  if (!cursor.acceptKeywords('FROM')) return [];
  const from = cursor.grammar.expression(cursor);
  return cursor.acceptKeywords('FOR') ? [from, cursor.grammar.expression(cursor)] : [from];
}

function optionalNulls(cursor: Cursor): Call['nulls'] {
  if (cursor.acceptKeywords('IGNORE', 'NULLS')) return 'ignore';
  return cursor.acceptKeywords('RESPECT', 'NULLS') ? 'respect' : null;
}

function optionalFilter(cursor: Cursor): Expression | null {
  if (!cursor.peekKeywords('FILTER') || !cursor.peekSymbol('(', 1)) return null;
  cursor.advance();
  return cursor.parenthesized(() => {
    cursor.expectKeywords('WHERE');
    return cursor.grammar.expression(cursor);
  });
}
