import type { Expression, Node } from '../../ast.ts';
import {
  argument,
  type ArgumentType,
  arityOf,
  type CallSite,
  type FunctionDefinition,
  type IntegerRange,
} from '../../functions/function_definition.ts';
import type { Statement } from '../../resolve/statement.ts';
import type { Value } from '../../resolve/value.ts';
import { rawSql, sql, type Sql } from '../../sql.ts';
import {
  arrayOf,
  commonTypeOf,
  isNumber,
  mapOf,
  nameOfType,
  type ScalarKind,
  scalarType,
  tupleOf,
  type Type,
  withNull,
} from '../../types.ts';
import { coerce, definitionHint, readConstant, toCondition } from '../expressions/coerce.ts';
import { firstReading, otherReading } from '../expressions/readings.ts';

/** @throws DialectError for too few or too many arguments */
export function checkArity(
  name: string,
  argumentTypes: readonly ArgumentType[],
  found: number,
  node: Node,
  statement: Statement,
  what = 'argument',
): void {
  const { min, max } = arityOf(argumentTypes);
  if (found >= min && found <= max) return;
  const count = min === max ? `${min}` : max === Infinity ? `at least ${min}` : `${min} to ${max}`;
  const plural = count === '1' || count === 'at least 1' ? '' : 's';
  throw statement.error(`Function '${name}' expects ${count} ${what}${plural}, found ${found}`, node);
}

const baseType = (argumentType: ArgumentType): string => argumentType.replace(/\?$|\.\.\.$/, '');

/** The type of the argument at an index; the last one repeats. */
export function argumentTypeAt(argumentTypes: readonly ArgumentType[], index: number): string {
  const argumentType = argumentTypes[index] ?? argumentTypes.at(-1);
  return argumentType === undefined ? 'any' : baseType(argumentType);
}

/** Converts arguments to the declared types and computes the return type. @throws DialectError */
export function applySignature(
  definition: FunctionDefinition,
  name: string,
  values: readonly Value[],
  nodes: readonly Expression[],
  statement: Statement,
): { readonly values: readonly Value[]; readonly returnType: Type } {
  const genericTypes = new Map<string, Type>();
  const argumentTypes = values.map((_, index) => argumentTypeAt(definition.argumentTypes, index));
  const readable = [...values];
  for (const letter of ['T', 'U']) {
    const indexes = values.flatMap(({ type }, index) =>
      genericPart(argumentTypes[index] ?? '', letter, type).length === 0 ? [] : [index],
    );
    if (indexes.length === 0) continue;
    const typesOf = (read: readonly Value[]): readonly Type[] =>
      read.flatMap(({ type }, at) => genericPart(argumentTypes[indexes[at] ?? 0] ?? '', letter, type));
    const involved = indexes.flatMap((index) => values[index] ?? []);
    const common = firstReading(involved, statement, (read) => {
      const type = commonTypeOf(typesOf(read));
      return type && { type, read };
    });
    const mismatched = nodes[argumentTypes.findLastIndex((argumentType) => argumentType.includes(letter))];
    if (common === null)
      throw statement.error(
        `The arguments of '${name}' have no common type: ${typesOf(involved)
          .map((type) => nameOfType(type))
          .join(', ')}.`,
        mismatched ?? nodes[0] ?? { kind: 'null', start: 0, end: 0 },
        'Convert them with toString(), toFloat(), toInt() or toDateTime().',
      );
    for (const [at, value] of common.read.entries()) readable[indexes[at] ?? 0] = value;
    genericTypes.set(letter, common.type);
  }
  const converted = readable.map((value, index) => {
    const node = nodes[index];
    if (node === undefined) return value;
    const argumentType = argumentTypes[index] ?? 'any';
    return {
      ...toParameterType(value, argumentType, { name, index, node, statement, genericTypes }),
      traits: value.traits,
    };
  });
  const nullable = values.some(({ type }) => type.nullable);
  return { values: converted, returnType: resultType(definition.returns, converted, genericTypes, nullable) };
}

/** Converts one argument whose type does not follow from its index. @throws DialectError */
export const argumentAs = (site: CallSite, index: number, argumentType: ArgumentType): Value =>
  toParameterType(argument(site, index), argumentType, {
    name: site.name,
    index,
    node: site.nodes[index] ?? site.node,
    statement: site.statement,
    genericTypes: new Map(),
  });

function genericPart(argumentType: string, letter: string, type: Type): readonly Type[] {
  if (argumentType === letter) return [type];
  if (argumentType === `array(${letter})` && type.kind === 'array') return [type.item];
  return [];
}

interface ArgumentPosition {
  readonly name: string;
  readonly index: number;
  readonly node: Expression;
  readonly statement: Statement;
  readonly genericTypes: ReadonlyMap<string, Type>;
}

const scalarKinds: Readonly<Record<string, ScalarKind>> = {
  string: 'string',
  integer: 'integer',
  float: 'float',
  decimal: 'decimal',
  date: 'date',
  datetime: 'datetime',
  interval: 'interval',
  uuid: 'uuid',
  json: 'json',
};

function toParameterType(value: Value, argumentType: string, position: ArgumentPosition): Value {
  const { statement, node } = position;
  const { type } = value;
  const as = (to: Type): Value => ({ ...value, sql: coerce(value, to, statement), type: to });
  switch (argumentType) {
    case 'any':
    case 'lambda':
      return value;
    case 'boolean':
      return {
        ...value,
        sql: toCondition(value, node, statement),
        type: scalarType('boolean', type.nullable),
      };
    case 'number':
      if (isNumber(type)) return value;
      if (type.kind === 'boolean') return as(scalarType('integer', type.nullable));
      if (type.kind === 'null') return as(scalarType('float', true));
      return inOtherReading(value, argumentType, position);
    case 'date_or_datetime':
      if (type.kind === 'date' || type.kind === 'datetime') return value;
      if (type.kind === 'null') return as(scalarType('datetime', true));
      return (
        readConstant(value, scalarType('datetime'), statement) ??
        inOtherReading(value, argumentType, position)
      );
    case 'T':
    case 'U': {
      const common = position.genericTypes.get(argumentType) ?? type;
      return value.items !== undefined && common.kind === type.kind
        ? value
        : as(withNull(common, type.nullable));
    }
    case 'tuple':
    case 'map':
      if (type.kind === argumentType) return value;
      throw wrongTypeError(value, argumentType, position);
  }
  if (argumentType.startsWith('array(')) {
    if (type.kind === 'array') return value;
    if (type.kind === 'null')
      return { ...value, sql: sql`'[]'::jsonb`, type: arrayOf(scalarType('null', true)) };
    throw wrongTypeError(value, 'array', position);
  }
  const kind = scalarKinds[argumentType];
  if (kind === undefined) return value;
  const converted = toScalarType(value, kind, as);
  if (converted !== undefined) return converted;
  if (inferredKinds.has(kind)) return inOtherReading(value, argumentType, position);
  throw wrongTypeError(value, argumentType, position);
}

/** What a property may be, by its text or by the type that is inferred for it. */
const inferredKinds: ReadonlySet<ScalarKind> = new Set(['string', 'float', 'decimal', 'date', 'datetime']);

/** Converts a property in the other of its readings. @throws DialectError if it has none that fits */
function inOtherReading(value: Value, argumentType: string, position: ArgumentPosition): Value {
  const other = otherReading(value, position.statement);
  if (other === undefined) throw wrongTypeError(value, argumentType, position);
  return toParameterType(other, argumentType, position);
}

function toScalarType(value: Value, kind: ScalarKind, as: (to: Type) => Value): Value | undefined {
  const { type } = value;
  const to = scalarType(kind, type.nullable);
  if (type.kind === kind) return value;
  if (type.kind === 'null') return as(scalarType(kind, true));
  if (kind === 'string' && (type.kind === 'uuid' || type.kind === 'json')) return as(to);
  if ((kind === 'float' || kind === 'decimal') && (isNumber(type) || type.kind === 'boolean')) return as(to);
  if (kind === 'integer' && type.kind === 'boolean') return as(to);
  if (kind === 'datetime' && type.kind === 'date') return as(to);
  if (kind === 'date' && type.kind === 'datetime') return as(to);
  if (kind === 'json' && type.kind === 'string') return value;
  return undefined;
}

const typeWords: Readonly<Record<string, string>> = {
  string: 'String',
  number: 'a number',
  integer: 'Int64',
  float: 'a number',
  decimal: 'a number',
  date: 'Date',
  datetime: 'DateTime',
  date_or_datetime: 'Date or DateTime',
  interval: 'an interval',
  uuid: 'UUID',
  array: 'an array',
  tuple: 'a tuple',
  map: 'a map',
};

const conversions: Readonly<Record<string, string>> = {
  string: 'toString(…)',
  number: 'toFloat(…) or toInt(…)',
  float: 'toFloat(…)',
  integer: 'toInt(…)',
  date: 'toDate(…)',
  datetime: 'toDateTime(…)',
  date_or_datetime: 'toDateTime(…)',
};

function wrongTypeError(
  value: Value,
  argumentType: string,
  { name, index, node, statement }: ArgumentPosition,
): Error {
  const conversion = conversions[argumentType];
  return statement.error(
    `Function '${name}' expects ${typeWords[argumentType] ?? argumentType} as argument ${index + 1}, found ${nameOfType(value.type)}.`,
    node,
    conversion === undefined
      ? null
      : `Convert it with ${conversion}.${conversion.startsWith('toFloat') ? definitionHint(value) : ''}`,
  );
}

function resultType(
  returnType: string,
  values: readonly Value[],
  genericTypes: ReadonlyMap<string, Type>,
  nullable: boolean,
): Type {
  if (returnType === 'T' || returnType === 'U')
    return withNull(genericTypes.get(returnType) ?? scalarType('null', true), nullable);
  const array = /^array\((.*)\)$/.exec(returnType);
  if (array !== null) return arrayOf(resultType(array[1] ?? 'any', [], genericTypes, false));
  const kind = scalarKinds[returnType];
  if (kind !== undefined) return scalarType(kind, nullable);
  if (returnType === 'boolean') return scalarType('boolean', nullable);
  if (returnType === 'number') return withNull(commonNumber(values), nullable);
  if (returnType === 'date_or_datetime') {
    const time = values.find(({ type }) => type.kind === 'date' || type.kind === 'datetime');
    return withNull(time?.type ?? scalarType('datetime'), nullable);
  }
  if (returnType === 'tuple') return tupleOf(values.map(({ type }) => type));
  if (returnType === 'map')
    return values.find(({ type }) => type.kind === 'map')?.type ?? mapOf(scalarType('null', true));
  return scalarType('null', true);
}

const commonNumber = (values: readonly Value[]): Type =>
  commonTypeOf(values.map(({ type }) => type).filter(isNumber)) ?? scalarType('float');

/** Values with their nodes, and what error messages call them. */
interface RangeCheckedValues {
  readonly values: readonly Value[];
  readonly nodes: readonly Expression[];
  readonly what: 'argument' | 'parameter';
}

/**
 * Checks numbers against their ranges. Parameters must be integer literals; arguments are checked only if they are
 * literals.
 * @throws DialectError for a number out of range
 */
export function checkRanges(
  name: string,
  ranges: readonly IntegerRange[],
  { values, nodes, what }: RangeCheckedValues,
  statement: Statement,
): void {
  for (const { index, min, max = Infinity, argumentCount } of ranges) {
    const [constant, node] = [values[index]?.constant, nodes[index]];
    if (node === undefined || (argumentCount !== undefined && argumentCount !== nodes.length)) continue;
    const isNumber = typeof constant === 'bigint' || typeof constant === 'number';
    if (what === 'argument' && !isNumber) continue;
    const number = isNumber ? Number(constant) : NaN;
    const isWhole = what === 'argument' || typeof constant === 'bigint';
    if (isWhole && number >= min && number <= max) continue;
    throw statement.error(
      `${what === 'argument' ? 'Argument' : 'Parameter'} ${index + 1} of '${name}' must be an integer ${max === Infinity ? `of at least ${min}` : `from ${min} to ${max}`}.`,
      node,
    );
  }
}

/** Fills the SQL template of a function with its arguments (`$1`, `$2`). */
export function fillTemplate(template: string, values: readonly Value[]): Sql {
  let filled = sql``;
  template.split(/\$(\d+)/).forEach((part, index) => {
    const value = index % 2 === 0 ? undefined : values[Number(part) - 1];
    filled = sql`${filled}${value?.sql ?? rawSql(part)}`;
  });
  return filled;
}
