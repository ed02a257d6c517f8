import type { Expression } from '../../ast.ts';
import type { Node } from '../../ast_node.ts';
import { arityOf, type FunctionDefinition, type ArgumentType } from '../../functions/function_definition.ts';
import type { Statement } from '../../resolve/statement.ts';
import type { Value } from '../../resolve/value.ts';
import { sql } from '../../sql.ts';
import {
  arrayOf,
  commonTypeOf,
  isNumber,
  mapOf,
  nameOfType,
  type ScalarKind,
  scalar,
  tupleOf,
  type Type,
  withNull,
} from '../../types.ts';
import { coerce, toCondition, readConstant } from '../coerce.ts';
import { argument, type CallSite } from './call_site.ts';

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
function argumentTypeAt(argumentTypes: readonly ArgumentType[], index: number): string {
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
  for (const letter of ['T', 'U']) {
    const types = values.flatMap(({ type }, index) => genericPart(argumentTypes[index] ?? '', letter, type));
    if (types.length === 0) continue;
    const common = commonTypeOf(types);
    const mismatched = nodes[argumentTypes.findLastIndex((argumentType) => argumentType.includes(letter))];
    if (common === null)
      throw statement.error(
        `The arguments of '${name}' have no common type: ${types.map((type) => nameOfType(type)).join(', ')}.`,
        mismatched ?? nodes[0] ?? { kind: 'null', start: 0, end: 0 },
        'Convert them with toString(), toFloat(), toInt() or toDateTime().',
      );
    genericTypes.set(letter, common);
  }
  const converted = values.map((value, index) => {
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
      return { ...value, sql: toCondition(value, node, statement), type: scalar('boolean', type.nullable) };
    case 'number':
      if (isNumber(type)) return value;
      if (type.kind === 'boolean') return as(scalar('integer', type.nullable));
      if (type.kind === 'null') return as(scalar('float', true));
      throw wrongTypeError(value, argumentType, position);
    case 'date_or_datetime':
      if (type.kind === 'date' || type.kind === 'datetime') return value;
      if (type.kind === 'null') return as(scalar('datetime', true));
      return (
        readConstant(value, scalar('datetime'), statement) ??
        fail(wrongTypeError(value, argumentType, position))
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
    if (type.kind === 'null') return { ...value, sql: sql`'[]'::jsonb`, type: arrayOf(scalar('null', true)) };
    throw wrongTypeError(value, 'array', position);
  }
  const kind = scalarKinds[argumentType];
  if (kind === undefined) return value;
  return toScalarType(value, kind, as) ?? fail(wrongTypeError(value, argumentType, position));
}

function toScalarType(value: Value, kind: ScalarKind, as: (to: Type) => Value): Value | undefined {
  const { type } = value;
  const to = scalar(kind, type.nullable);
  if (type.kind === kind) return value;
  if (type.kind === 'null') return as(scalar(kind, true));
  if (kind === 'string' && (type.kind === 'uuid' || type.kind === 'json')) return as(to);
  if ((kind === 'float' || kind === 'decimal') && (isNumber(type) || type.kind === 'boolean')) return as(to);
  if (kind === 'integer' && type.kind === 'boolean') return as(to);
  if (kind === 'datetime' && type.kind === 'date') return as(to);
  if (kind === 'date' && type.kind === 'datetime') return as(to);
  if (kind === 'json' && type.kind === 'string') return value;
  return undefined;
}

const fail = (error: Error): never => {
  throw error;
};

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
    conversion === undefined ? null : `Convert it with ${conversion}.`,
  );
}

function resultType(
  returnType: string,
  values: readonly Value[],
  genericTypes: ReadonlyMap<string, Type>,
  nullable: boolean,
): Type {
  if (returnType === 'T' || returnType === 'U')
    return withNull(genericTypes.get(returnType) ?? scalar('null', true), nullable);
  const array = /^array\((.*)\)$/.exec(returnType);
  if (array !== null) return arrayOf(resultType(array[1] ?? 'any', [], genericTypes, false));
  const kind = scalarKinds[returnType];
  if (kind !== undefined) return scalar(kind, nullable);
  if (returnType === 'boolean') return scalar('boolean', nullable);
  if (returnType === 'number') return withNull(commonNumber(values), nullable);
  if (returnType === 'date_or_datetime') {
    const time = values.find(({ type }) => type.kind === 'date' || type.kind === 'datetime');
    return withNull(time?.type ?? scalar('datetime'), nullable);
  }
  if (returnType === 'tuple') return tupleOf(values.map(({ type }) => type));
  if (returnType === 'map')
    return values.find(({ type }) => type.kind === 'map')?.type ?? mapOf(scalar('null', true));
  return scalar('null', true);
}

const commonNumber = (values: readonly Value[]): Type =>
  commonTypeOf(values.map(({ type }) => type).filter(isNumber)) ?? scalar('float');
