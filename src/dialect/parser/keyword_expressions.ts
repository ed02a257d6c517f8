import type {
  Call,
  Case,
  CaseBranch,
  Cast,
  Columns,
  Expression,
  Extract,
  Interval,
  Name,
  NumberLiteral,
  Trim,
  Unary,
} from '../ast.ts';
import { reservedWords, type TimeUnit, timeUnitOf, timeUnits } from '../lexer.ts';
import type { Cursor } from './cursor.ts';
import { itemOrStar, readName, typeName } from './names.ts';

const unitWords = timeUnits.map((unit) => unit.toUpperCase());
const expectedUnit = `a unit of time: ${timeUnits.join(', ')}`;

const expression = (cursor: Cursor): Expression => cursor.grammar.expression(cursor);

/** CASE [subject] WHEN … THEN … [ELSE …] END. */
export function caseExpression(cursor: Cursor): Case {
  const { start } = cursor.advance();
  const subject = cursor.peekKeywords('WHEN') ? null : expression(cursor);
  if (!cursor.peekKeywords('WHEN')) throw cursor.unexpected('WHEN', ['WHEN']);
  const branches: CaseBranch[] = [];
  while (cursor.peekKeywords('WHEN')) branches.push(caseBranch(cursor));
  const otherwise = cursor.acceptKeywords('ELSE') ? expression(cursor) : null;
  if (!cursor.acceptKeywords('END'))
    throw cursor.unexpected('WHEN, ELSE or END of this CASE', ['WHEN', 'ELSE', 'END']);
  return cursor.node<Case>(start, { kind: 'case', subject, branches, otherwise });
}

function caseBranch(cursor: Cursor): CaseBranch {
  const { start } = cursor.advance();
  const when = expression(cursor);
  cursor.expectKeywords('THEN');
  return cursor.node<CaseBranch>(start, { kind: 'branch', when, then: expression(cursor) });
}

/** CAST(x AS type), TRY_CAST(x AS type), or the call `cast(x, 'type')`; undefined for a column named cast. */
export function cast(cursor: Cursor): Cast | Call | undefined {
  const safe = cursor.peekKeywords('TRY_CAST');
  if ((!safe && !cursor.peekKeywords('CAST')) || !cursor.peekSymbol('(', 1)) return undefined;
  const { start } = cursor.token;
  const name = readName(cursor);
  cursor.expectSymbol('(');
  const operand = expression(cursor);
  if (!cursor.acceptKeywords('AS')) return castCall(cursor, name, operand);
  const type = typeName(cursor);
  cursor.expectSymbol(')');
  return cursor.node<Cast>(start, { kind: 'cast', operand, type, safe });
}

function castCall(cursor: Cursor, name: Name, operand: Expression): Call {
  if (!cursor.acceptSymbol(',')) throw cursor.unexpected('AS and a type', ['AS']);
  const rest = cursor.list(() => expression(cursor));
  cursor.expectSymbol(')');
  return cursor.node<Call>(name.start, {
    kind: 'call',
    name,
    parameters: null,
    distinct: false,
    arguments: [operand, ...rest],
    orderBy: [],
    nulls: null,
    filter: null,
    over: null,
  });
}

/** EXTRACT(unit FROM x); undefined for other arguments, which are a call. */
export function extract(cursor: Cursor): Extract | undefined {
  if (!cursor.peekKeywords('EXTRACT') || !cursor.peekSymbol('(', 1)) return undefined;
  const following = cursor.peek(3);
  if (following.kind !== 'word' || following.upper !== 'FROM') return undefined;
  const { start } = cursor.advance();
  const fields = cursor.parenthesized(() => {
    const unit = timeUnit(cursor);
    cursor.expectKeywords('FROM');
    return { unit, operand: expression(cursor) };
  });
  return cursor.node<Extract>(start, { kind: 'extract', ...fields });
}

const sides = { BOTH: 'both', LEADING: 'leading', TRAILING: 'trailing' } as const;
const sideWords = ['BOTH', 'LEADING', 'TRAILING'] as const;

/** TRIM(BOTH 'x' FROM y); undefined for other arguments, which are a call. */
export function trim(cursor: Cursor): Trim | undefined {
  if (!cursor.peekKeywords('TRIM') || !cursor.peekSymbol('(', 1)) return undefined;
  const token = cursor.peek(2);
  const word = sideWords.find((side) => token.kind === 'word' && token.upper === side);
  if (word === undefined || cursor.peekSymbol([')', ',', '.'], 3)) return undefined;
  const { start } = cursor.advance();
  const fields = cursor.parenthesized(() => {
    cursor.advance();
    const characters = cursor.peekKeywords('FROM') ? null : expression(cursor);
    cursor.expectKeywords('FROM');
    return { characters, operand: expression(cursor) };
  });
  return cursor.node<Trim>(start, { kind: 'trim', side: sides[word], ...fields });
}

/** COLUMNS('pattern') or COLUMNS(a, b); undefined for a column named columns. */
export function columns(cursor: Cursor): Columns | undefined {
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
export function interval(cursor: Cursor, amountOf: (cursor: Cursor) => Expression): Interval | undefined {
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
