import type {
  Arithmetic,
  ArithmeticOperator,
  Between,
  Call,
  Case,
  CaseBranch,
  Cast,
  Columns,
  Comparison,
  ComparisonOperator,
  Conditional,
  Element,
  Expression,
  Extract,
  Field,
  Fill,
  Frame,
  FrameBound,
  Index,
  Interval,
  IsNull,
  Lambda,
  Logical,
  Member,
  Name,
  NamedWindow,
  Nullish,
  NumberLiteral,
  OrderItem,
  Slice,
  Subquery,
  Trim,
  Tuple,
  Unary,
  Window,
} from '../ast.ts';
import {
  commonNameKeywords,
  operatorFunctions,
  reservedWords,
  type TimeUnit,
  timeUnitOf,
  timeUnits,
} from '../query_text.ts';
import { type Cursor, keywordOf } from './cursor.ts';
import { peekParenthesizedQuery } from './from.ts';
import {
  anyName,
  array,
  braces,
  item,
  itemOrStar,
  keywordLiteral,
  numberLiteral,
  plainName,
  readName,
  star,
  stringLiteral,
  template,
  timeLiteral,
  typeName,
} from './literals.ts';

const unitWords = timeUnits.map((unit) => unit.toUpperCase());
const expectedUnit = `a unit of time: ${timeUnits.join(', ')}`;

const operandExpression = (cursor: Cursor): Expression => cursor.grammar.expression(cursor);

/** CASE [subject] WHEN … THEN … [ELSE …] END. */
function caseExpression(cursor: Cursor): Case {
  const { start } = cursor.advance();
  const subject = cursor.peekKeywords('WHEN') ? null : operandExpression(cursor);
  if (!cursor.peekKeywords('WHEN')) throw cursor.unexpected('WHEN', ['WHEN']);
  const branches: CaseBranch[] = [];
  while (cursor.peekKeywords('WHEN')) branches.push(caseBranch(cursor));
  const otherwise = cursor.acceptKeywords('ELSE') ? operandExpression(cursor) : null;
  if (!cursor.acceptKeywords('END'))
    throw cursor.unexpected('WHEN, ELSE or END of this CASE', ['WHEN', 'ELSE', 'END']);
  return cursor.node<Case>(start, { kind: 'case', subject, branches, otherwise });
}

function caseBranch(cursor: Cursor): CaseBranch {
  const { start } = cursor.advance();
  const when = operandExpression(cursor);
  cursor.expectKeywords('THEN');
  return cursor.node<CaseBranch>(start, { kind: 'branch', when, then: operandExpression(cursor) });
}

/** CAST(x AS type), TRY_CAST(x AS type), or the call `cast(x, 'type')`; undefined for a column named cast. */
function cast(cursor: Cursor): Cast | Call | undefined {
  const safe = cursor.peekKeywords('TRY_CAST');
  if ((!safe && !cursor.peekKeywords('CAST')) || !cursor.peekSymbol('(', 1)) return undefined;
  const { start } = cursor.token;
  const name = readName(cursor);
  cursor.expectSymbol('(');
  const operand = operandExpression(cursor);
  if (!cursor.acceptKeywords('AS')) return castCall(cursor, name, operand);
  const type = typeName(cursor);
  cursor.expectSymbol(')');
  return cursor.node<Cast>(start, { kind: 'cast', operand, type, safe });
}

function castCall(cursor: Cursor, name: Name, operand: Expression): Call {
  if (!cursor.acceptSymbol(',')) throw cursor.unexpected('AS and a type', ['AS']);
  const rest = cursor.list(() => operandExpression(cursor));
  cursor.expectSymbol(')');
  return plainCall(cursor, name, name.start, [operand, ...rest]);
}

/** A call with nothing but arguments. */
const plainCall = (cursor: Cursor, name: Name, start: number, operands: readonly Expression[]): Call =>
  cursor.node<Call>(start, {
    kind: 'call',
    name,
    parameters: null,
    distinct: false,
    arguments: operands,
    orderBy: [],
    nulls: null,
    filter: null,
    over: null,
  });

/** EXTRACT(unit FROM x); undefined for other arguments, which are a call. */
function extract(cursor: Cursor): Extract | undefined {
  if (!cursor.peekKeywords('EXTRACT') || !cursor.peekSymbol('(', 1)) return undefined;
  const following = cursor.peek(3);
  if (following.kind !== 'word' || following.upper !== 'FROM') return undefined;
  const { start } = cursor.advance();
  const fields = cursor.parenthesized(() => {
    const unit = timeUnit(cursor);
    cursor.expectKeywords('FROM');
    return { unit, operand: operandExpression(cursor) };
  });
  return cursor.node<Extract>(start, { kind: 'extract', ...fields });
}

const sides = { BOTH: 'both', LEADING: 'leading', TRAILING: 'trailing' } as const;
const sideWords = ['BOTH', 'LEADING', 'TRAILING'] as const;

/** TRIM(BOTH 'x' FROM y); undefined for other arguments, which are a call. */
function trim(cursor: Cursor): Trim | undefined {
  if (!cursor.peekKeywords('TRIM') || !cursor.peekSymbol('(', 1)) return undefined;
  const token = cursor.peek(2);
  const word = sideWords.find((side) => token.kind === 'word' && token.upper === side);
  if (word === undefined || cursor.peekSymbol([')', ',', '.'], 3)) return undefined;
  const { start } = cursor.advance();
  const fields = cursor.parenthesized(() => {
    cursor.advance();
    const characters = cursor.peekKeywords('FROM') ? null : operandExpression(cursor);
    cursor.expectKeywords('FROM');
    return { characters, operand: operandExpression(cursor) };
  });
  return cursor.node<Trim>(start, { kind: 'trim', side: sides[word], ...fields });
}

/** COLUMNS('pattern') or COLUMNS(a, b); undefined for a column named columns. */
function columns(cursor: Cursor): Columns | undefined {
  if (!cursor.peekKeywords('COLUMNS') || !cursor.peekSymbol('(', 1)) return undefined;
  const { start } = cursor.advance();
  const items = cursor.parenthesized(() => cursor.list(() => itemOrStar(cursor)));
  const [only] = items;
  const isPattern = items.length === 1 && only?.kind === 'string';
  return cursor.node<Columns>(
    start,
    isPattern ? { kind: 'columns', pattern: only, items: [] } : { kind: 'columns', pattern: null, items },
  );
}

/** INTERVAL 1 DAY or INTERVAL '1 day'; undefined if `interval` is a name. */
function interval(cursor: Cursor, amountOf: (cursor: Cursor) => Expression): Interval | undefined {
  if (!cursor.peekKeywords('INTERVAL') || !peekIntervalAmount(cursor)) return undefined;
  const { start } = cursor.advance();
  const { token } = cursor;
  const following = cursor.peek(1);
  if (token.kind === 'string' && !(following.kind === 'word' && timeUnitOf(following.text) !== undefined))
    return stringInterval(cursor, start);
  const amount = amountOf(cursor);
  return cursor.node<Interval>(start, { kind: 'interval', amount, unit: timeUnit(cursor) });
}

function peekIntervalAmount(cursor: Cursor): boolean {
  const token = cursor.peek(1);
  if (token.kind === 'word') return !reservedWords.has(token.upper) && isAmountWord(cursor);
  if (token.kind === 'quoted_name') return isAmountWord(cursor);
  if (token.kind !== 'symbol') return token.kind !== 'end' && token.kind !== 'invalid';
  if (token.text === '-') return cursor.peek(2).kind === 'number' && isUnit(cursor, 3);
  return token.text === '(' || token.text === '{';
}

/** `interval day` is a column with an alias; `interval n day` is an amount. */
const isAmountWord = (cursor: Cursor): boolean => isUnit(cursor, 2) || cursor.peekSymbol(['(', '.', '['], 2);

function isUnit(cursor: Cursor, ahead: number): boolean {
  const token = cursor.peek(ahead);
  return token.kind === 'word' && timeUnitOf(token.text) !== undefined;
}

function stringInterval(cursor: Cursor, start: number): Interval {
  const token = cursor.advance();
  const [, sign, digits, word] = /^\s*([+-]?)\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*$/i.exec(token.text) ?? [];
  const unit = word === undefined ? undefined : timeUnitOf(word);
  if (digits === undefined || unit === undefined)
    throw cursor.error(
      'The string of an INTERVAL must be a number and a unit.',
      token,
      `For example INTERVAL '1 day'; the units are ${timeUnits.join(', ')}.`,
    );
  const text = cursor.node<NumberLiteral>(token.start, { kind: 'number', text: digits });
  const amount =
    sign === '-' ? cursor.node<Unary>(token.start, { kind: 'unary', operator: '-', operand: text }) : text;
  return cursor.node<Interval>(start, { kind: 'interval', amount, unit });
}

function timeUnit(cursor: Cursor): TimeUnit {
  const { token } = cursor;
  const unit = token.kind === 'word' ? timeUnitOf(token.text) : undefined;
  if (unit === undefined) throw cursor.unexpected(expectedUnit, unitWords);
  cursor.advance();
  return unit;
}

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
function peekLambda(cursor: Cursor): boolean {
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

function lambda(cursor: Cursor): Lambda {
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
function call(cursor: Cursor, name: Name): Call {
  const first = parenthesizedArguments(cursor, name);
  const given = cursor.peekSymbol('(') ? parametersOf(cursor, first) : null;
  const read = given === null ? first : parenthesizedArguments(cursor, name);
  const ordered = withinGroup(cursor, name, read);
  const parameters = given ?? ordered?.parameters ?? null;
  const { nulls: inner, ...fields } = ordered?.fields ?? read;
  const nulls = inner ?? optionalNulls(cursor);
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

/** Quantiles take their values from WITHIN GROUP (ORDER BY …), other aggregates their order. */
const orderedSet = /^(?:percentile_(?:cont|disc)|quantile\w*|median\w*)$/i;

/**
 * Reads WITHIN GROUP: `percentile_cont(0.5) WITHIN GROUP (ORDER BY x)` is `percentile_cont(0.5)(x)`, and
 * `string_agg(x, ',') WITHIN GROUP (ORDER BY y)` is `string_agg(x, ',' ORDER BY y)`. Null if there is none.
 */
function withinGroup(
  cursor: Cursor,
  name: Name,
  read: Arguments,
): { readonly parameters: readonly Expression[] | null; readonly fields: Arguments } | null {
  if (!cursor.peekKeywords('WITHIN', 'GROUP')) return null;
  const start = cursor.token;
  cursor.acceptKeywords('WITHIN', 'GROUP');
  const orderBy = cursor.parenthesized(() => optionalOrderBy(cursor));
  const [item, another] = orderBy;
  if (item === undefined || read.orderBy.length > 0)
    throw cursor.error('WITHIN GROUP requires one ORDER BY, inside its parentheses.', start);
  if (!orderedSet.test(name.text)) return { parameters: null, fields: { ...read, orderBy } };
  if (another !== undefined || item.descending)
    throw cursor.error(
      `${name.text}() takes one ascending value in WITHIN GROUP.`,
      start,
      'For descending values use 1 minus the level.',
    );
  const parameters = read.arguments.length === 0 ? null : read.arguments;
  return { parameters, fields: { ...read, arguments: [item.expression], orderBy: [] } };
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
  if (unitFunctions.test(name.text)) return withUnit(read);
  return name.text.toUpperCase() === 'SUBSTRING' && read.length === 1
    ? [...read, ...substringRange(cursor)]
    : read;
}

/** Functions whose first argument ClickHouse reads as a unit, whatever columns there are: `dateDiff(day, a, b)`. */
const unitFunctions = /^(?:date|time_?stamp)_?(?:diff|add|sub)$/i;

/** Turns a unit without quotes into its string. */
function withUnit(read: readonly Expression[]): readonly Expression[] {
  const [first, ...rest] = read;
  const [only, another] = first?.kind === 'field' ? first.path : [];
  const isUnit = only !== undefined && another === undefined && timeUnitOf(only.text) !== undefined;
  if (first === undefined || !isUnit || rest.length < 2) return read;
  return [{ kind: 'string', value: only.text, start: first.start, end: first.end }, ...rest];
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

const comparisonSymbols: Readonly<Record<string, ComparisonOperator>> = {
  '=': '=',
  '==': '=',
  '!=': '!=',
  '<>': '!=',
  '<': '<',
  '<=': '<=',
  '>': '>',
  '>=': '>=',
  '=~': '=~',
  '~': '=~',
  '!~': '!~',
  '=~*': '=~*',
  '~*': '=~*',
  '!~*': '!~*',
};

/** Operators of the comparison level. IS and BETWEEN have separate rules. */
type ComparisonStart = ComparisonOperator | 'is' | 'between' | 'not between';

/** Reads a comparison operator, if one comes next. */
function acceptComparison(cursor: Cursor): ComparisonStart | undefined {
  const { token } = cursor;
  if (token.kind === 'symbol') {
    const operator = Object.hasOwn(comparisonSymbols, token.text) ? comparisonSymbols[token.text] : undefined;
    if (operator !== undefined) cursor.advance();
    return operator;
  }
  if (cursor.acceptKeywords('IS')) return 'is';
  if (cursor.acceptKeywords('GLOBAL', 'IN')) return 'global in';
  if (cursor.acceptKeywords('GLOBAL', 'NOT', 'IN')) return 'global not in';
  const not = cursor.peekKeywords('NOT') && negatable(keywordOf(cursor.peek(1)));
  if (not) cursor.advance();
  if (cursor.acceptKeywords('BETWEEN')) return not ? 'not between' : 'between';
  if (cursor.acceptKeywords('LIKE')) return not ? 'not like' : 'like';
  if (cursor.acceptKeywords('ILIKE')) return not ? 'not ilike' : 'ilike';
  if (cursor.acceptKeywords('IN', 'COHORT')) return not ? 'not in cohort' : 'in cohort';
  if (cursor.acceptKeywords('IN')) return not ? 'not in' : 'in';
  return undefined;
}

const negatable = (word: string | undefined): boolean =>
  word === 'IN' || word === 'LIKE' || word === 'ILIKE' || word === 'BETWEEN';

const acceptOneOf = (
  cursor: Cursor,
  operators: readonly ArithmeticOperator[],
): ArithmeticOperator | undefined => operators.find((operator) => cursor.acceptSymbol(operator));

const expectedProperty = 'a property name after the dot';

/** Maximum number of names in a path; no table has more. */
const maxPathLength = 64;

/** Applies any number of postfixes: `.name`, `.1`, `.*`, `[1]`, `[1:2]`, `?.name` and `::type`. */
function postfixes(cursor: Cursor, value: Expression): Expression {
  let object = value;
  for (;;) {
    const next = postfix(cursor, object);
    if (next === undefined) return object;
    object = next;
  }
}

function postfix(cursor: Cursor, object: Expression): Expression | undefined {
  if (cursor.acceptSymbol('.')) return afterDot(cursor, object);
  if (cursor.acceptSymbol('?.')) {
    if (cursor.acceptSymbol('[')) return indexOrSlice(cursor, object, true);
    return cursor.node<Member>(object.start, {
      kind: 'member',
      object,
      name: anyName(cursor, expectedProperty),
      nullish: true,
    });
  }
  if (cursor.acceptSymbol('[')) return indexOrSlice(cursor, object, false);
  if (cursor.acceptSymbol('::'))
    return cursor.node<Cast>(object.start, {
      kind: 'cast',
      operand: object,
      type: typeName(cursor),
      safe: false,
    });
  return undefined;
}

function afterDot(cursor: Cursor, object: Expression): Expression {
  if (cursor.peekKind('number')) {
    const position: NumberLiteral = numberLiteral(cursor);
    return cursor.node<Element>(object.start, { kind: 'element', object, position });
  }
  if (cursor.peekSymbol('*') && object.kind === 'field') return star(cursor, object.start, object.path);
  const name = anyName(cursor, expectedProperty);
  if (cursor.peekSymbol('(') && isFilters(object))
    return call(cursor, { ...name, text: `filters.${name.text}`, start: object.start });
  if (cursor.peekSymbol('('))
    throw cursor.error(
      'A function name cannot contain a dot.',
      { start: object.start, end: name.end },
      `Write ${name.text}(…).`,
    );
  if (object.kind === 'field' && object.path.length === maxPathLength)
    throw cursor.error(`A name may have at most ${maxPathLength} parts.`, name);
  if (object.kind === 'field')
    return cursor.node<Field>(object.start, { kind: 'field', path: [...object.path, name] });
  return cursor.node<Member>(object.start, { kind: 'member', object, name, nullish: false });
}

/** Whether a name starts a placeholder such as `{filters.interval('week')}`. */
const isFilters = (object: Expression): boolean =>
  object.kind === 'field' && object.path.length === 1 && object.path[0]?.text === 'filters';

/** An index or a slice, after its opening bracket. */
function indexOrSlice(cursor: Cursor, object: Expression, nullish: boolean): Expression {
  const from = cursor.peekSymbol(':') ? null : cursor.grammar.expression(cursor);
  if (!nullish && cursor.acceptSymbol(':')) {
    const to = cursor.peekSymbol(']') ? null : cursor.grammar.expression(cursor);
    cursor.expectSymbol(']');
    return cursor.node<Slice>(object.start, { kind: 'slice', object, from, to });
  }
  cursor.expectSymbol(']', '`]` after this index');
  if (from === null) throw cursor.error('Missing index.');
  return cursor.node<Index>(object.start, { kind: 'index', object, index: from, nullish });
}

const expectedValue = 'an expression';

/** An operand without operators. `amountOf` reads the amount of an INTERVAL. */
function primary(cursor: Cursor, amountOf: (cursor: Cursor) => Expression): Expression {
  if (peekLambda(cursor)) return lambda(cursor);
  const { token } = cursor;
  switch (token.kind) {
    case 'number':
      return numberLiteral(cursor);
    case 'string':
      return stringLiteral(cursor);
    case 'template_start':
      return template(cursor);
    case 'quoted_name':
      return fieldOrCall(cursor);
    case 'word':
      return keywordExpression(cursor, amountOf);
    case 'symbol':
      return symbolExpression(cursor);
    case 'template_text':
    case 'template_end':
    case 'invalid':
    case 'end':
      throw cursor.unexpected(expectedValue);
  }
}

function symbolExpression(cursor: Cursor): Expression {
  if (cursor.peekSymbol('(')) return parentheses(cursor);
  if (cursor.peekSymbol('[')) return array(cursor);
  if (cursor.peekSymbol('{')) return braces(cursor);
  if (cursor.peekSymbol('<') && cursor.peek(1).kind === 'word')
    throw cursor.error(
      'Tags such as <Sparkline … /> are not supported.',
      cursor.token,
      'Write sparkline([1, 2]) or recordingButton(session_id).',
    );
  if (cursor.peekSymbol('*'))
    throw cursor.error('`*` is allowed only in SELECT, in COLUMNS() and as a function argument.');
  throw cursor.unexpected(expectedValue);
}

function keywordExpression(cursor: Cursor, amountOf: (cursor: Cursor) => Expression): Expression {
  const word = keywordOf(cursor.token) ?? '';
  if (!cursor.peekSymbol('(', 1)) {
    if (word === 'ARRAY' && cursor.peekSymbol('[', 1)) return array(cursor);
    const literal = keywordLiteral(cursor) ?? timeLiteral(cursor);
    if (literal !== undefined) return literal;
  }
  if (word === 'CASE') return caseExpression(cursor);
  return (
    interval(cursor, amountOf) ??
    cast(cursor) ??
    extract(cursor) ??
    trim(cursor) ??
    columns(cursor) ??
    fieldOrCall(cursor)
  );
}

/** A name followed by parentheses is a call, otherwise the start of a field. */
function fieldOrCall(cursor: Cursor): Expression {
  const { token } = cursor;
  const isCall = cursor.peekSymbol('(', 1);
  if (token.kind === 'word' && reservedWords.has(token.upper)) {
    if (!isCall || !operatorFunctions.has(token.upper)) throw keywordAsValue(cursor);
  }
  const name = readName(cursor);
  if (isCall) return call(cursor, name);
  return cursor.node<Field>(token.start, { kind: 'field', path: [name] });
}

function keywordAsValue(cursor: Cursor): Error {
  const { token } = cursor;
  if (cursor.peekKeywords('SELECT') || cursor.peekKeywords('WITH'))
    return cursor.error(
      `Expected ${expectedValue}, found a query.`,
      token,
      'Write a subquery in parentheses.',
    );
  return cursor.error(
    `Expected ${expectedValue}, found the keyword \`${token.text}\`.`,
    token,
    commonNameKeywords.has(keywordOf(token) ?? '')
      ? `Write a column of this name in backticks: \`${token.text}\`.`
      : null,
  );
}

/** A subquery, an expression or a tuple in parentheses. */
function parentheses(cursor: Cursor): Expression {
  const { start } = cursor.token;
  if (peekParenthesizedQuery(cursor)) {
    const query = cursor.parenthesized(() => cursor.grammar.query(cursor));
    return cursor.node<Subquery>(start, { kind: 'subquery', query });
  }
  cursor.advance();
  if (cursor.peekSymbol(')'))
    throw cursor.error(
      'These parentheses are empty.',
      { start, end: cursor.token.end },
      'Write tuple() for an empty tuple.',
    );
  const items = [item(cursor)];
  let isTuple = false;
  while (cursor.acceptSymbol(',')) {
    isTuple = true;
    if (cursor.peekSymbol(')')) break;
    items.push(item(cursor));
  }
  cursor.expectSymbol(')', '`,` or `)`');
  const [only] = items;
  if (!isTuple && only !== undefined) return only;
  return cursor.node<Tuple>(start, { kind: 'tuple', items });
}

// One rule for each precedence level, loosest first: `? :`, OR, AND, NOT, `??`, comparisons, `+ - ||`, `* / %`, the
// sign, and postfixes.

/** Any expression without an alias. */
export function expression(cursor: Cursor): Expression {
  return cursor.nested(() => {
    const condition = disjunction(cursor);
    if (!cursor.acceptSymbol('?')) return condition;
    const then = expression(cursor);
    cursor.expectSymbol(':', '`:` of this `? :`');
    const otherwise = expression(cursor);
    return cursor.node<Conditional>(condition.start, { kind: 'conditional', condition, then, otherwise });
  });
}

const disjunction = (cursor: Cursor): Expression => logical(cursor, 'or', conjunction);
const conjunction = (cursor: Cursor): Expression => logical(cursor, 'and', negation);

function logical(
  cursor: Cursor,
  operator: Logical['operator'],
  operand: (cursor: Cursor) => Expression,
): Expression {
  const first = operand(cursor);
  const operands = [first];
  while (cursor.acceptKeywords(operator.toUpperCase())) operands.push(operand(cursor));
  return operands.length === 1
    ? first
    : cursor.node<Logical>(first.start, { kind: 'logical', operator, operands });
}

function negation(cursor: Cursor): Expression {
  if (!cursor.peekKeywords('NOT')) return nullish(cursor);
  return cursor.nested(() => {
    const { start } = cursor.advance();
    return cursor.node<Unary>(start, { kind: 'unary', operator: 'not', operand: negation(cursor) });
  });
}

function nullish(cursor: Cursor): Expression {
  let left = comparison(cursor);
  while (cursor.acceptSymbol('??')) {
    const right = comparison(cursor);
    left = cursor.node<Nullish>(left.start, { kind: 'nullish', left, right });
  }
  return left;
}

function comparison(cursor: Cursor): Expression {
  let left = sum(cursor);
  for (;;) {
    const operator = acceptComparison(cursor);
    if (operator === undefined) return left;
    left = comparisonWith(cursor, left, operator);
  }
}

/** LIKE has no ANY: after it, `any('a%', 'b%')` would be an aggregate. */
function rejectListOfPatterns(cursor: Cursor): void {
  const isList =
    ['ANY', 'ALL', 'SOME'].some((word) => cursor.peekKeywords(word)) && cursor.peekSymbol('(', 1);
  const first = cursor.peek(2);
  if (isList && (first.kind === 'string' || cursor.peekSymbol(['[', '('], 2) || keywordOf(first) === 'ARRAY'))
    throw cursor.error(
      `${cursor.token.text.toUpperCase()} is not supported here.`,
      cursor.token,
      "Write x ILIKE '%a%' OR x ILIKE '%b%', or multiSearchAnyCaseInsensitive(x, ['a', 'b']).",
    );
}

const membershipOperators: ReadonlySet<ComparisonStart> = new Set([
  'in',
  'not in',
  'global in',
  'global not in',
]);

function comparisonWith(cursor: Cursor, left: Expression, operator: ComparisonStart): Expression {
  const { start } = left;
  if (operator === 'is') return isComparison(cursor, left);
  if (operator === 'between' || operator === 'not between') {
    const low = sum(cursor);
    cursor.expectKeywords('AND');
    const high = sum(cursor);
    const negated = operator === 'not between';
    return cursor.node<Between>(start, { kind: 'between', operand: left, low, high, negated });
  }
  if (operator.endsWith('like')) rejectListOfPatterns(cursor);
  const right = sum(cursor);
  if (membershipOperators.has(operator) && (right.kind === 'tuple' || right.kind === 'array'))
    cursor.checkValues(right.items);
  return cursor.node<Comparison>(start, { kind: 'comparison', operator, left, right });
}

/** IS [NOT] NULL and IS [NOT] DISTINCT FROM, after IS. */
function isComparison(cursor: Cursor, operand: Expression): IsNull | Comparison {
  const { start } = operand;
  const negated = cursor.acceptKeywords('NOT');
  if (cursor.acceptKeywords('NULL')) return cursor.node<IsNull>(start, { kind: 'is_null', operand, negated });
  if (!cursor.acceptKeywords('DISTINCT'))
    throw cursor.unexpected('NULL or DISTINCT FROM', ['NULL', 'NOT', 'DISTINCT']);
  cursor.expectKeywords('FROM');
  const operator = negated ? 'is not distinct from' : 'is distinct from';
  return cursor.node<Comparison>(start, { kind: 'comparison', operator, left: operand, right: sum(cursor) });
}

/** Sums and concatenations. */
function sum(cursor: Cursor): Expression {
  let left = product(cursor);
  for (;;) {
    const joined = concatenation(cursor, left);
    const operator = joined === undefined ? acceptOneOf(cursor, ['+', '-']) : undefined;
    if (joined !== undefined) left = joined;
    else if (operator === undefined) return left;
    else left = arithmetic(cursor, operator, left, product(cursor));
  }
}

function product(cursor: Cursor): Expression {
  let left = signed(cursor);
  for (;;) {
    const operator = acceptOneOf(cursor, ['*', '/', '%']);
    if (operator === undefined) return left;
    left = arithmetic(cursor, operator, left, signed(cursor));
  }
}

const arithmetic = (
  cursor: Cursor,
  operator: ArithmeticOperator,
  left: Expression,
  right: Expression,
): Arithmetic => cursor.node<Arithmetic>(left.start, { kind: 'arithmetic', operator, left, right });

/** `a || b || c` is the call `concat(a, b, c)`; undefined if no `||` follows. */
function concatenation(cursor: Cursor, first: Expression): Call | undefined {
  const { start, end } = cursor.token;
  const operands = [first];
  while (cursor.acceptSymbol('||')) operands.push(product(cursor));
  if (operands.length === 1) return undefined;
  return plainCall(cursor, { kind: 'name', text: 'concat', start, end }, first.start, operands);
}

/** A value with its sign. A plus before a number is ignored, and NOT may precede any value. */
function signed(cursor: Cursor): Expression {
  if (cursor.peekSymbol('-'))
    return cursor.nested(() => {
      const { start } = cursor.advance();
      return cursor.node<Unary>(start, { kind: 'unary', operator: '-', operand: signed(cursor) });
    });
  if (cursor.peekKeywords('NOT')) return negation(cursor);
  if (cursor.peekSymbol('+') && cursor.peek(1).kind === 'number') cursor.advance();
  return postfixes(cursor, primary(cursor, sum));
}
