import type { Call, Frame, FrameBound, Window } from '../../../ast.ts';
import { aggregateOver, isAggregate } from './aggregates.ts';
import { convert } from './conversions.ts';
import { meaningOf } from './expressions.ts';
import { compareKeys, type SortKey, sortKeysOf } from './sorting.ts';
import type { Meaning, ReferenceScope, Row } from './scope.ts';
import { commonType, type ReferenceType, typeOf, withNull } from './types.ts';
import { AmbiguousResultError, identityOf, unsupported, type Value } from './values.ts';

/** The rows of a partition in order, and where a row and its peers are. */
interface Position {
  readonly rows: readonly Row[];
  readonly index: number;
  readonly firstPeer: number;
  readonly lastPeer: number;
}

/** A window function or an aggregate over a window. */
export function windowOf(call: Call, scope: ReferenceScope): Meaning {
  const window = specification(call, scope);
  const partition = window.partitionBy.map((item) => meaningOf(item, scope));
  const keys = sortKeysOf(window.orderBy, scope);
  const { type, at, needsOrder } = functionOf(call, window, scope);
  const partitions = new WeakMap<readonly Row[], ReadonlyMap<string, readonly Row[]>>();
  const partitionsOf = (stage: readonly Row[]): ReadonlyMap<string, readonly Row[]> => {
    const known = partitions.get(stage) ?? partitionRows(stage, partition, keys);
    partitions.set(stage, known);
    return known;
  };
  return {
    type,
    of: (row) => {
      const { stage, index = 0 } = row;
      const own = stage?.[index];
      if (stage === undefined || own === undefined) return unsupported('A window function here.');
      const rows = partitionsOf(stage).get(identityOf(partition.map((item) => item.of(own)))) ?? [];
      const sameKeys = (other: Row | undefined): boolean =>
        other !== undefined && compareKeys(keys, other, own) === 0;
      const firstPeer = rows.findIndex(sameKeys);
      const lastPeer = rows.findLastIndex(sameKeys);
      if (needsOrder && firstPeer !== lastPeer) throw new AmbiguousResultError('Rows with equal sort keys.');
      return at({ rows, index: rows.indexOf(own), firstPeer, lastPeer });
    },
  };
}

function specification({ over }: Call, scope: ReferenceScope): Window {
  if (over === null) return unsupported('A window function without OVER.');
  if (over.kind === 'name')
    return (
      scope.windows.find(({ name }) => name.text === over.text)?.window ??
      unsupported(`The window ${over.text}.`)
    );
  return over.base === null ? over : unsupported('A window based on another.');
}

function partitionRows(
  stage: readonly Row[],
  partition: readonly Meaning[],
  keys: readonly SortKey[],
): ReadonlyMap<string, readonly Row[]> {
  const groups = Map.groupBy(stage, (row) => identityOf(partition.map((item) => item.of(row))));
  return new Map([...groups].map(([key, rows]) => [key, [...rows].sort((a, b) => compareKeys(keys, a, b))]));
}

interface WindowFunction {
  readonly type: ReferenceType;
  readonly at: (position: Position) => Value;
  /** Whether the result depends on the order of rows with equal sort keys. */
  readonly needsOrder: boolean;
}

function functionOf(call: Call, window: Window, scope: ReferenceScope): WindowFunction {
  const name = call.name.text;
  const values = call.arguments.filter((node) => node.kind !== 'star').map((node) => meaningOf(node, scope));
  const integer = (needsOrder: boolean, at: (position: Position) => number): WindowFunction => ({
    type: typeOf('integer'),
    needsOrder,
    at: (position) => BigInt(at(position)),
  });
  switch (name) {
    case 'row_number':
      return integer(true, ({ index }) => index + 1);
    case 'rank':
      return integer(false, ({ firstPeer }) => firstPeer + 1);
    case 'dense_rank': {
      const keys = sortKeysOf(window.orderBy, scope);
      return integer(
        false,
        ({ rows, firstPeer }) =>
          rows.slice(0, firstPeer + 1).filter((row, index) => {
            const before = rows[index - 1];
            return before === undefined || compareKeys(keys, before, row) !== 0;
          }).length,
      );
    }
    case 'lag':
    case 'lead':
      return neighbor(name === 'lag' ? -1 : 1, values, scope);
    case 'first_value':
    case 'last_value': {
      const [value = unsupported(name)] = values;
      return {
        type: withNull(value.type),
        needsOrder: true,
        at: (position) => {
          const found = frameRows(window, position)
            .map((row) => value.of(row))
            .filter((one) => one !== null);
          return (name === 'first_value' ? found[0] : found.at(-1)) ?? null;
        },
      };
    }
  }
  if (!isAggregate(name)) return unsupported(name);
  const { type, over } = aggregateOver({ ...call, over: null }, { ...scope, anyOrder: false });
  const frame = window.frame;
  return {
    type,
    needsOrder: frame?.unit === 'rows' && !isWhole(frame),
    at: (position) => over(frameRows(window, position)),
  };
}

function neighbor(step: number, values: readonly Meaning[], scope: ReferenceScope): WindowFunction {
  const [given, offset, fallback] = values;
  if (given === undefined) return unsupported('lag without a value.');
  const type =
    fallback === undefined
      ? withNull(given.type)
      : (commonType(given.type, fallback.type) ?? unsupported('lag'));
  const value = convert(given, type, scope);
  const otherwise = fallback === undefined ? undefined : convert(fallback, type, scope);
  return {
    type,
    needsOrder: true,
    at: ({ rows, index }) => {
      const own = rows[index];
      if (own === undefined) return null;
      const distance = offset === undefined ? 1 : Number(offset.of(own));
      const row = rows[index + step * distance];
      return row === undefined ? (otherwise?.of(own) ?? null) : value.of(row);
    },
  };
}

const isUnbounded = (bound: FrameBound | null): boolean =>
  bound !== null && bound.direction !== 'current row' && bound.offset === null;
const isWhole = ({ first, last }: Frame): boolean => isUnbounded(first) && isUnbounded(last);

/** The rows of the frame; by default those up to the last peer. */
function frameRows({ frame, orderBy }: Window, position: Position): readonly Row[] {
  const { rows, index, firstPeer, lastPeer } = position;
  if (frame === null) return orderBy.length === 0 ? rows : rows.slice(0, lastPeer + 1);
  const isRows = frame.unit === 'rows';
  const at = (bound: FrameBound, isStart: boolean): number => {
    if (bound.direction === 'current row') return isRows ? index : isStart ? firstPeer : lastPeer;
    const sign = bound.direction === 'preceding' ? -1 : 1;
    if (bound.offset === null) return sign < 0 ? 0 : rows.length - 1;
    if (!isRows || bound.offset.kind !== 'number') return unsupported('A RANGE frame with an offset.');
    return index + sign * Number(bound.offset.text);
  };
  const last = frame.last === null ? (isRows ? index : lastPeer) : at(frame.last, false);
  return rows.slice(Math.max(0, at(frame.first, true)), Math.max(0, last + 1));
}
