import type { Call, Expression, Lambda } from '../../../ast.ts';
import { sorted } from './array_functions.ts';
import { convert } from './conversions.ts';
import { branches, coalesce, intervalOf, meaningOf } from './expressions.ts';
import type { ArgumentKind, FunctionEntry } from './function_entry.ts';
import { scalarFunctions } from './functions.ts';
import { comparison, strict } from './operators.ts';
import { dateOf } from './times.ts';
import { lambdaKey, type Meaning, type ReferenceScope, type Row } from './scope.ts';
import { arrayOf, commonType, isNumber, itemOf, type ReferenceType, typeOf, withNull } from './types.ts';
import { defaultOf, listOf, unsupported, type Value } from './values.ts';

const entriesByName = Map.groupBy(scalarFunctions, ({ name }) => name);

/** Functions whose result does not depend on the order of an array. */
const ignoresOrder: ReadonlySet<string> = new Set([
  'arraySort',
  'arrayReverseSort',
  'length',
  'empty',
  'notEmpty',
  'has',
  'hasAll',
  'hasAny',
  'countEqual',
  'arrayUniq',
  'arraySum',
  'arrayAvg',
  'arrayMin',
  'arrayMax',
  'arrayExists',
  'arrayAll',
  'arrayCount',
]);

/** A call of a function of single values. */
export function callOf(call: Call, scope: ReferenceScope): Meaning {
  const name = call.name.text;
  const { arguments: nodes } = call;
  const [first, second, third] = nodes;
  const inner = { ...scope, anyOrder: ignoresOrder.has(name) };
  const of = (node: Expression | undefined): Meaning =>
    node === undefined ? unsupported('A missing argument.') : meaningOf(node, inner);
  switch (name) {
    case 'if':
      if (first === undefined || second === undefined || third === undefined) return unsupported(name);
      return branches([[first, second]], third, scope);
    case 'multiIf':
      return branches(pairsOf(nodes), nodes.at(-1) ?? null, scope);
    case 'coalesce':
    case 'ifNull':
      return coalesce(nodes.map(of), scope);
    case 'nullIf': {
      const isEqual = comparison('=', of(first), of(second), scope);
      const value = of(first);
      return { type: withNull(value.type), of: (row) => (isEqual.of(row) === true ? null : value.of(row)) };
    }
    case 'assumeNotNull': {
      const value = of(first);
      const type = withNull(value.type, false);
      return { type, of: (row) => value.of(row) ?? defaultOf(type) };
    }
    case 'empty':
    case 'notEmpty': {
      const value = of(first);
      if (value.type.unmatched !== true) break;
      const { type, of: isEmpty } = tableCall(
        'empty',
        [{ ...value, type: withNull(value.type, false) }],
        scope,
      );
      return { type, of: (row) => (value.of(row) === null || isEmpty(row) === true) === (name === 'empty') };
    }
    case 'toIntOrDefault':
    case 'toFloatOrDefault': {
      const value = tableCall(name.slice(0, -'OrDefault'.length), [of(first)], scope);
      const isInteger = name === 'toIntOrDefault';
      const other =
        second === undefined
          ? { type: value.type, of: () => (isInteger ? 0n : 0) }
          : convert(of(second), typeOf(isInteger ? 'integer' : 'float'), scope);
      return {
        type: withNull(value.type, second !== undefined && other.type.nullable),
        of: (row) => value.of(row) ?? other.of(row),
      };
    }
    case 'arrayElement':
      return elementOf(of(first), of(second));
    case 'ifNotFinite': {
      const [value, other] = [of(first), of(second)];
      if (value.type.kind !== 'float' || other.type.kind !== 'float') return unsupported(name);
      return {
        type: typeOf('float', value.type.nullable || other.type.nullable),
        of: (row) => (Number.isFinite(value.of(row) ?? NaN) ? value.of(row) : other.of(row)),
      };
    }
    case 'toUUID': {
      const value = of(first);
      if (value.literal === undefined) return unsupported('toUUID of a value.');
      return { type: typeOf('uuid', true), of: value.of };
    }
    case 'dateTrunc': {
      const [unit, moment] = [of(first).literal ?? '', of(second)];
      const isDate = ['week', 'month', 'quarter', 'year'].includes(unit);
      const start = tableCall(name, [of(first), moment], scope);
      const zone = scope.world.timezone;
      return isDate ? strict(typeOf('date'), [start], (value) => dateOf(value as bigint, zone)) : start;
    }
    case 'toDecimal':
      return { ...convert(of(first), typeOf('decimal'), scope), type: typeOf('decimal', true) };
    case 'arraySum':
    case 'arrayAvg':
    case 'arrayMin':
    case 'arrayMax':
      if (first?.kind !== 'lambda') return arrayTotal(name, of(first));
  }
  if (name.startsWith('toInterval'))
    return intervalOf(of(first), name.slice('toInterval'.length).toLowerCase());
  if (first?.kind === 'lambda') return higherOrder(name, first, of(second), scope);
  return tableCall(name, nodes.map(of), scope);
}

function pairsOf(nodes: readonly Expression[]): readonly (readonly [Expression, Expression])[] {
  const pairs: [Expression, Expression][] = [];
  for (let index = 0; index + 1 < nodes.length; index += 2) {
    const [condition, then] = [nodes[index], nodes[index + 1]];
    if (condition !== undefined && then !== undefined) pairs.push([condition, then]);
  }
  return pairs;
}

function tableCall(name: string, values: readonly Meaning[], scope: ReferenceScope): Meaning {
  const entry = entriesByName
    .get(name)
    ?.find(
      ({ takes }) =>
        takes.length === values.length &&
        takes.every((kind, index) => accepts(kind, values[index]?.type ?? typeOf('null'))),
    );
  if (entry === undefined) return unsupported(`${name}(${values.map(({ type }) => type.kind).join(', ')})`);
  return applyEntry(entry, values, scope);
}

function accepts(kind: ArgumentKind, type: ReferenceType): boolean {
  switch (kind) {
    case 'T':
      return true;
    case 'array(T)':
      return type.kind === 'array';
    case 'array(integer)':
    case 'array(string)':
      return type.kind === 'array' && `array(${itemOf(type).kind})` === kind;
    case 'small':
      return type.kind === 'integer';
    case 'unit':
    case 'text':
      return type.kind === 'string';
    default:
      return type.kind === kind;
  }
}

function applyEntry(entry: FunctionEntry, given: readonly Meaning[], scope: ReferenceScope): Meaning {
  const shared = sharedType(entry, given);
  const values = given.map((value, index) => {
    const kind = entry.takes[index];
    if (kind === 'T') return convert(value, shared, scope);
    return kind === 'array(T)' ? convert(value, { ...value.type, item: shared }, scope) : value;
  });
  const anyNull = values.some(({ type }) => type.nullable);
  const returned =
    entry.returns === 'T'
      ? withNull(
          shared,
          values.every(({ type }) => type.nullable),
        )
      : entry.returns === 'array(T)'
        ? arrayOf(shared)
        : entry.returns;
  const context = { zone: scope.world.timezone, weekStart: scope.world.weekStartDay };
  const isArray = values.map(({ type }) => type.kind === 'array');
  const of = (row: Row): Value => {
    const all = values.map((value) => value.of(row));
    const isMissing = (value: Value, index: number): boolean =>
      value === null && (isArray[index] === true || (returned.kind === 'array' && !entry.seesNulls));
    if (all.some(isMissing)) return unsupported('A null array.');
    if (!entry.seesNulls && all.includes(null)) return null;
    return entry.apply(all as unknown as readonly never[], context);
  };
  return { type: withNull(returned, returned.nullable || (anyNull && !entry.seesNulls)), of };
}

/** The type that all `T` of a call share. */
function sharedType({ takes }: FunctionEntry, values: readonly Meaning[]): ReferenceType {
  let shared = typeOf('null', false);
  for (const [index, { type }] of values.entries()) {
    const part = takes[index] === 'T' ? type : takes[index] === 'array(T)' ? itemOf(type) : undefined;
    if (part === undefined) continue;
    const nullable = shared.nullable || part.nullable;
    shared = withNull(commonType(shared, part) ?? unsupported(`${shared.kind} and ${part.kind}.`), nullable);
  }
  return shared;
}

/** The item at an index from 1, or from the end if negative; a default outside the array. */
export function elementOf(array: Meaning, index: Meaning): Meaning {
  if (array.type.kind !== 'array' || index.type.kind !== 'integer') return unsupported('An element of this.');
  const item = itemOf(array.type);
  const nullable = item.nullable || array.type.nullable || index.type.nullable;
  return {
    type: withNull(item, nullable),
    of: (row) => {
      const [list, at] = [array.of(row), index.of(row)];
      const items = listOf(list);
      if (at === null) return null;
      const position = Number(at);
      if (position === 0) return defaultOf(item);
      const found = items.at(position > 0 ? position - 1 : position);
      return found === undefined ? defaultOf(item) : found;
    },
  };
}

function arrayTotal(name: string, array: Meaning): Meaning {
  const item = itemOf(array.type);
  if (array.type.kind !== 'array' || !isNumber(item.kind)) return unsupported(`${name} of ${item.kind}.`);
  return {
    type: name === 'arrayAvg' ? typeOf('float') : withNull(item, false),
    of: (row) => totalOf(name, listOf(array.of(row)), item),
  };
}

function totalOf(name: string, list: readonly Value[], item: ReferenceType): Value {
  const values = list.filter((value) => value !== null);
  if (name === 'arrayAvg')
    return values.reduce<number>((sum, value) => sum + Number(value), 0) / Math.max(values.length, 1);
  if (name !== 'arraySum')
    return sorted(values, name === 'arrayMin' ? 1 : -1)[0] ?? defaultOf(withNull(item, false));
  return item.kind === 'integer'
    ? (values as readonly bigint[]).reduce((sum, value) => sum + value, 0n)
    : (values as readonly number[]).reduce((sum, value) => sum + value, 0);
}

function higherOrder(name: string, lambda: Lambda, array: Meaning, scope: ReferenceScope): Meaning {
  const [parameter, another] = lambda.parameters;
  if (array.type.kind !== 'array' || parameter === undefined || another !== undefined)
    return unsupported('A lambda of several arrays.');
  const item = itemOf(array.type);
  const key = lambdaKey(parameter.text);
  const body = meaningOf(lambda.body, {
    ...scope,
    lambdas: new Map([...scope.lambdas, [parameter.text, item]]),
  });
  const resultOf = (row: Row, value: Value): Value =>
    body.of({ ...row, cells: new Map([...row.cells, [key, value]]) });
  const isTrue = (row: Row, value: Value): boolean => resultOf(row, value) === true;
  const on = (type: ReferenceType, apply: (list: readonly Value[], row: Row) => Value): Meaning => ({
    type,
    of: (row) => apply(listOf(array.of(row)), row),
  });
  switch (name) {
    case 'arrayMap':
      return on(arrayOf(body.type), (list, row) => list.map((value) => resultOf(row, value)));
    case 'arraySum':
    case 'arrayAvg':
    case 'arrayMin':
    case 'arrayMax':
      if (!isNumber(body.type.kind)) return unsupported(name);
      return on(name === 'arrayAvg' ? typeOf('float') : withNull(body.type, false), (list, row) =>
        totalOf(
          name,
          list.map((value) => resultOf(row, value)),
          body.type,
        ),
      );
  }
  if (body.type.kind !== 'boolean') return unsupported(`A lambda of type ${body.type.kind}.`);
  switch (name) {
    case 'arrayFilter':
      return on(array.type, (list, row) => list.filter((value) => isTrue(row, value)));
    case 'arrayExists':
      return on(typeOf('boolean'), (list, row) => list.some((value) => isTrue(row, value)));
    case 'arrayAll':
      return on(typeOf('boolean'), (list, row) => list.every((value) => isTrue(row, value)));
    case 'arrayCount':
      return on(typeOf('integer'), (list, row) => BigInt(list.filter((value) => isTrue(row, value)).length));
    case 'arrayFirst':
      return on(item, (list, row) =>
        found(
          list.find((value) => isTrue(row, value)),
          item,
        ),
      );
    case 'arrayLast':
      return on(item, (list, row) =>
        found(
          list.findLast((value) => isTrue(row, value)),
          item,
        ),
      );
    case 'arrayFirstIndex':
      return on(typeOf('integer'), (list, row) => BigInt(list.findIndex((value) => isTrue(row, value)) + 1));
    default:
      return unsupported(name);
  }
}

const found = (value: Value | undefined, item: ReferenceType): Value =>
  value === undefined ? defaultOf(item) : value;
