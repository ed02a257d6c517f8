import type { Call, Expression } from '../../../ast.ts';
import { conditionOf, meaningOf } from './expressions.ts';
import { foldAggregate, isDistinctByNature } from './folds.ts';
import type { Meaning, ReferenceScope, Row } from './scope.ts';
import { arrayOf, isNumber, type ReferenceType, typeOf, withNull } from './types.ts';
import { AmbiguousResultError, defaultOf, identityOf, unsupported, type Value } from './values.ts';

const names = [
  'count',
  'countDistinct',
  'sum',
  'avg',
  'min',
  'max',
  'any',
  'argMin',
  'argMax',
  'uniq',
  'uniqExact',
  'groupArray',
  'groupUniqArray',
  'groupBitAnd',
  'groupBitOr',
  'groupBitXor',
  'median',
  'quantile',
  'stddevPop',
  'varPop',
  'varSamp',
] as const;
const combinators = ['If', 'OrNull', 'OrDefault', 'Distinct'] as const;

interface AggregateName {
  readonly name: string;
  readonly combinators: readonly string[];
}

/** Splits `sumOrNullIf` into `sum` and its combinators. */
function split(text: string): AggregateName | undefined {
  if (names.some((name) => name === text)) return { name: text, combinators: [] };
  const suffix = combinators.find((combinator) => text.endsWith(combinator));
  if (suffix === undefined) return undefined;
  const rest = split(text.slice(0, -suffix.length));
  return rest === undefined ? undefined : { ...rest, combinators: [...rest.combinators, suffix] };
}

export const isAggregate = (name: string): boolean => split(name) !== undefined;

/** An aggregate of the rows of a group. */
export function aggregateOf(call: Call, scope: ReferenceScope): Meaning {
  if (scope.keys === undefined) return unsupported('An aggregate outside of a group.');
  const single: ReferenceScope = { ...scope, keys: undefined };
  const { type, over } = aggregateOver(call, single);
  return {
    type,
    of: (row) =>
      over(row.group?.rows.map((one) => ({ ...one, cells: new Map([...row.cells, ...one.cells]) })) ?? []),
  };
}

/** An aggregate of any rows, as used by groups and windows. */
export function aggregateOver(
  call: Call,
  scope: ReferenceScope,
): { readonly type: ReferenceType; readonly over: (rows: readonly Row[]) => Value } {
  const { name, combinators: suffixes } = split(call.name.text) ?? unsupported(call.name.text);
  const hasCondition = suffixes.includes('If');
  const nodes = hasCondition ? call.arguments.slice(0, -1) : call.arguments;
  const conditions = [hasCondition ? call.arguments.at(-1) : undefined, call.filter ?? undefined]
    .filter((node): node is Expression => node !== undefined)
    .map((node) => conditionOf(node, scope));
  const values = nodes.filter((node) => node.kind !== 'star').map((node) => meaningOf(node, scope));
  const isDistinct = call.distinct || suffixes.includes('Distinct') || isDistinctByNature(name);
  const level = call.parameters?.[0];
  const isExtreme = ['min', 'max', 'any'].includes(name) && suffixes.every((suffix) => suffix === 'If');
  const isUnmatched = isExtreme && !call.distinct && call.over === null && values[0]?.type.unmatched === true;
  const type = { ...typeOfAggregate(name, values), ...(isUnmatched && { unmatched: true }) };
  const orNull = suffixes.includes('OrNull');
  const orDefault = suffixes.includes('OrDefault') && !values.some((value) => value.type.nullable);
  const over = (rows: readonly Row[]): Value => {
    const kept = rows.filter((row) => conditions.every((condition) => condition.of(row) === true));
    const tuples = kept.map((row) => values.map((value) => value.of(row)));
    const present = tuples.filter((tuple) => !tuple.includes(null));
    const distinct = isDistinct
      ? [...new Map(present.map((tuple) => [identityOf(tuple), tuple])).values()]
      : present;
    if (distinct.length === 0 && orNull) return null;
    if (distinct.length === 0 && orDefault) return defaultOf(withNull(type, false));
    const isArray = name === 'groupArray' || name === 'groupUniqArray';
    if (isArray && scope.anyOrder !== true) checkSame(distinct);
    return foldAggregate(name, distinct, {
      type,
      level: level?.kind === 'number' ? Number(level.text) : 0.5,
    });
  };
  return { type: orNull ? withNull(type) : type, over };
}

/** @throws AmbiguousResultError if the order of an array is open */
function checkSame(tuples: readonly (readonly Value[])[]): void {
  if (new Set(tuples.map(identityOf)).size > 1) throw new AmbiguousResultError('An array without an order.');
}

function typeOfAggregate(name: string, values: readonly Meaning[]): ReferenceType {
  const [first] = values;
  const nullable = values.some(({ type }) => type.nullable);
  const value = withNull(first?.type ?? typeOf('null', true), nullable);
  const number = (): ReferenceType =>
    isNumber(value.kind) ? value : unsupported(`${name} of ${value.kind}.`);
  switch (name) {
    case 'count':
    case 'countDistinct':
    case 'uniq':
    case 'uniqExact':
      return typeOf('integer');
    case 'sum':
      return number();
    case 'avg':
    case 'median':
    case 'quantile':
    case 'stddevPop':
    case 'varPop':
    case 'varSamp':
      return typeOf('float', number().nullable);
    case 'min':
    case 'max':
    case 'any':
    case 'argMin':
    case 'argMax':
      return value.kind === 'array' ? unsupported(name) : value;
    case 'groupArray':
    case 'groupUniqArray':
      return arrayOf(withNull(value, false));
    default:
      return value.kind === 'integer' ? value : unsupported(`${name} of ${value.kind}.`);
  }
}
