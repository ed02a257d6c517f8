import type { Call, Expression, Name, OrderItem, Subquery } from '../ast.ts';
import { itemOrStar } from './aliases.ts';
import type { Cursor } from './cursor.ts';
import { peekBareLambda, lambda } from './lambdas.ts';
import { optionalOrderBy } from './order_items.ts';
import { over } from './windows.ts';

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
