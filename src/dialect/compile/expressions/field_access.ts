import type {
  BooleanLiteral,
  Expression,
  Field,
  Name,
  Node,
  NullLiteral,
  NumberLiteral,
  StringLiteral,
  TimeLiteral,
} from '../../ast.ts';
import { nearestName } from '../../query_text.ts';
import type { ConvertedType } from '../../schema.ts';
import { didYouMean, resolveField, type Scope } from '../../resolve/scope.ts';
import { type Column, columnIdentity, type RelationField } from '../../resolve/relation.ts';
import type { Statement } from '../../resolve/statement.ts';
import {
  columnOperation,
  type Constant,
  derive,
  type JsonPath,
  noTraits,
  type Value,
} from '../../resolve/value.ts';
import { bind, joinSql, sql, type Sql } from '../../sql.ts';
import { nameOfType, type Property, scalarType, type Type, withNull } from '../../types.ts';
import type { Compiler } from '../compiler.ts';
import { parseDate, parseTime } from '../times/local_times.ts';
import { castStringTo } from './casts.ts';
import { compactIfComposite, defaultOf, fromJson, spacedSql } from './coerce.ts';

/** The value of a column where a node reads it. */
export const columnValue = (column: Column, node: Node): Value =>
  derive(columnOperation(columnIdentity(column)), [], column.type, column.sql, {
    traits: { ...noTraits, column: node },
    ...(column.propertiesOf === undefined ? {} : { propertiesOf: column.propertiesOf }),
    ...(column.stored === undefined ? {} : { stored: column.stored }),
  });

const constant = (fragment: Sql, type: Type, value: Constant): Value =>
  derive(`literal ${nameOfType(type)} ${String(value)}`, [], type, fragment, { constant: value });

const largestInteger = 2n ** 63n;

/** A number literal. */
function numberValue(text: string): Value {
  if (/^(\d+|0x[\da-f]+)$/.test(text)) return integerValue(BigInt(text));
  const number = text === 'inf' ? Infinity : text === 'nan' ? NaN : Number(text);
  return floatValue(number);
}

function integerValue(value: bigint): Value {
  if (value >= largestInteger || value < -largestInteger) return floatValue(Number(value));
  return constant(bind(value.toString(), 'int8'), scalarType('integer'), value);
}

const floatValue = (value: number): Value =>
  constant(bind(String(value), 'float8'), scalarType('float'), value);

export const stringValue = (text: string): Value => constant(bind(text, 'text'), scalarType('string'), text);
const nullValue: Value = constant(sql`null::text`, scalarType('null', true), null);
const booleanValue = (value: boolean): Value =>
  constant(value ? sql`true` : sql`false`, scalarType('boolean'), value);

/** @throws DialectError for a string with U+0000 or an invalid time */
export function literalValue(
  literal: NumberLiteral | StringLiteral | BooleanLiteral | NullLiteral | TimeLiteral,
  statement: Statement,
): Value {
  switch (literal.kind) {
    case 'number':
      return numberValue(literal.text);
    case 'string':
      if (literal.value.includes('\0'))
        throw statement.error('A string cannot contain the character U+0000.', literal);
      return stringValue(literal.value);
    case 'boolean':
      return booleanValue(literal.value);
    case 'null':
      return nullValue;
    case 'time':
      return timeValue(literal, statement);
  }
}

function timeValue(literal: TimeLiteral, statement: Statement): Value {
  const { timezone } = statement.project;
  if (literal.type === 'date') {
    const day = parseDate(literal.text, timezone);
    if (day === null) throw statement.error(`'${literal.text}' is not a date.`, literal, 'Write YYYY-MM-DD.');
    return derive(`literal Date ${day}`, [], scalarType('date'), bind(day, 'date'));
  }
  const time = parseTime(literal.text, timezone);
  if (time === null)
    throw statement.error(`'${literal.text}' is not a time.`, literal, 'Write YYYY-MM-DD HH:MM:SS.');
  return derive(`literal DateTime ${time}`, [], scalarType('datetime'), bind(time, 'timestamptz'));
}

/** A path of names: a column, an alias, a lambda parameter, or an element of their values. */
export function fieldValue(compiler: Compiler, field: Field, scope: Scope): Value {
  const resolved = resolveField(field, scope);
  if (resolved.kind === 'value') return accessPath(resolved.value, resolved.rest, scope);
  if (resolved.kind === 'expression') {
    const { expression } = resolved;
    const inside: Scope = { ...scope, expandingAliases: [...scope.expandingAliases, expression] };
    scope.statement.countAliasExpansion(field);
    const value = scope.statement.aliasCache.getOrCompile(expression, inside, () =>
      compiler.value(expression, inside),
    );
    return accessPath(value, resolved.rest, scope);
  }
  return relationFieldValue(resolved.relationField, resolved.name, resolved.rest, field, scope);
}

function relationFieldValue(
  relationField: RelationField,
  name: Name,
  rest: readonly Name[],
  field: Field,
  scope: Scope,
): Value {
  const { statement } = scope;
  if (relationField.kind === 'unsupported')
    throw statement.error(relationField.summary, name, relationField.suggestion);
  if (relationField.kind === 'column') return accessPath(columnValue(relationField, field), rest, scope);
  const [next, ...further] = rest;
  if (next === undefined)
    throw statement.error(
      `Can't select a table when a column is expected: ${name.text}`,
      name,
      `Select one of its columns: ${relationField.fields.names().join(', ')}.`,
    );
  const inner = relationField.fields.field(next.text);
  if (inner === undefined)
    throw statement.error(
      `Unable to resolve field: ${next.text}`,
      next,
      didYouMean(nearestName(next.text, relationField.fields.names())),
    );
  return relationFieldValue(inner, next, further, field, scope);
}

const accessPath = (value: Value, names: readonly Name[], scope: Scope): Value =>
  names.reduce((part, name) => accessElement(part, stringValue(name.text), name, scope), value);

/** A property read as a type; values that do not parse are null. */
function typedProperty(text: Value, known: ConvertedType, { statement }: Scope): Value {
  const kinds = { numeric: 'float', boolean: 'boolean', datetime: 'datetime' } as const;
  const type = scalarType(kinds[known], true);
  const details = text.json === undefined ? {} : { json: text.json };
  return derive(`as ${known}`, [text], type, castStringTo(spacedSql(text), type, statement), details);
}

/** A property of the project's rows, by its declared type, else by the inferred one that the query needs. */
function propertyValue(text: Value, property: Property, scope: Scope): Value {
  const { properties, inference } = scope.statement.project.schema;
  const declared = properties.get(property.scope)?.get(property.name);
  if (declared === 'string' || (declared === undefined && inference === undefined)) return text;
  if (declared !== undefined) return typedProperty(text, declared, scope);
  const inferred = inference?.typeOf(property);
  return inferred === undefined
    ? { ...text, type: { kind: 'string', nullable: true, property } }
    : { ...typedProperty(text, inferred, scope), text };
}

/**
 * Accesses an element of a value: of JSON by key or index, of an array by index, of a tuple by index or name, of a
 * map by key. Indexes start at 1.
 * @throws DialectError if the value has no elements
 */
export function accessElement(value: Value, key: Value, node: Node, scope: Scope): Value {
  const { type } = value;
  const isInJson = value.json !== undefined || type.kind === 'json';
  if (isInJson && key.constant === 0n)
    throw scope.statement.error('SQL indexes start from one, not from zero. E.g: array[1]', node);
  if (value.json !== undefined) return accessJson(value.json, value, key);
  switch (type.kind) {
    case 'json': {
      const text = accessJson({ root: value.sql, keys: [] }, value, key);
      const { propertiesOf } = value;
      if (propertiesOf === undefined || typeof key.constant !== 'string') return text;
      return propertyValue(text, { scope: propertiesOf, name: key.constant }, scope);
    }
    case 'array':
      return accessArrayItem(value, type.item, key, node, scope);
    case 'tuple':
      return accessTupleItem(value, type, key, node, scope);
    case 'map': {
      const text = key.type.kind === 'string' ? key.sql : sql`(${key.sql})::text`;
      const item = fromJson(sql`(${value.sql} -> ${text})`, sql`(${value.sql} ->> ${text})`, type.value);
      return derive('element', [value, key], type.value, orDefault(item, type.value));
    }
    case 'null':
      return value;
    default:
      throw scope.statement.error(`Cannot access an element of ${nameOfType(type)}.`, node);
  }
}

/** Outside the bounds ClickHouse returns a default instead of null. */
const orDefault = (item: Sql, type: Type): Sql =>
  type.nullable ? item : sql`coalesce(${item}, ${defaultOf(type)})`;

function accessJson({ root, keys }: JsonPath, value: Value, key: Value): Value {
  const isIndex = key.type.kind === 'integer';
  const next = isIndex ? toZeroBased(key) : key.type.kind === 'string' ? key.sql : sql`(${key.sql})::text`;
  const path = [...keys, next];
  const before = path.slice(0, -1);
  const inner = before.length === 0 ? root : sql`${root} -> ${joinSql(before, ' -> ')}`;
  const text = sql`(${inner} ->> ${next})`;
  const compact = compactIfComposite(sql`${inner} -> ${next}`, text);
  return derive('element', [value, key], scalarType('string', true), compact, {
    json: { root, keys: path },
    spaced: text,
  });
}

const maxIndex = 2_147_483_647n;

/**
 * Converts an index from 1, or from the end if negative, to PostgreSQL's. Index 0 and indexes beyond 32 bits match
 * nothing.
 */
function toZeroBased({ constant, sql: index }: Value): Sql {
  if (typeof constant !== 'bigint')
    return sql`(case when ${index} > 0 then least(${index}, 2147483647) - 1 when ${index} < 0 then greatest(${index}, -2147483647) end)::int4`;
  if (constant === 0n) return sql`null::int4`;
  const itemIndex = constant > 0n ? constant - 1n : constant;
  return bind(
    String(itemIndex > maxIndex ? maxIndex : itemIndex < -maxIndex ? -maxIndex : itemIndex),
    'int4',
  );
}

function accessArrayItem(value: Value, item: Type, key: Value, node: Node, scope: Scope): Value {
  if (key.type.kind !== 'integer')
    throw scope.statement.error(`An array index must be an integer, found ${nameOfType(key.type)}.`, node);
  if (key.constant === 0n)
    throw scope.statement.error('SQL indexes start from one, not from zero. E.g: array[1]', node);
  const itemIndex = toZeroBased(key);
  const fragment = fromJson(sql`(${value.sql} -> ${itemIndex})`, sql`(${value.sql} ->> ${itemIndex})`, item);
  if (!key.type.nullable) return derive('element', [value, key], item, orDefault(fragment, item));
  // No index, no item: the default is for indexes outside the array.
  const found = sql`(case when ${key.sql} is not null then ${orDefault(fragment, item)} end)`;
  return derive('element', [value, key], withNull(item), found);
}

function accessTupleItem(
  value: Value,
  type: Extract<Type, { kind: 'tuple' }>,
  key: Value,
  node: Node,
  scope: Scope,
): Value {
  const itemIndex =
    typeof key.constant === 'bigint'
      ? Number(key.constant) - 1
      : typeof key.constant === 'string'
        ? type.names.indexOf(key.constant)
        : -1;
  const item = type.items[itemIndex];
  if (item === undefined)
    throw scope.statement.error(`${nameOfType(type)} has no element ${String(key.constant)}.`, node);
  const literalItem = value.items?.[itemIndex];
  if (literalItem !== undefined) return literalItem;
  const index = bind(String(itemIndex), 'int4');
  const fragment = fromJson(sql`(${value.sql} -> ${index})`, sql`(${value.sql} ->> ${index})`, item);
  return derive('element', [value, key], item, fragment);
}

/** The name of a column without an alias: the last name of its path. Keys inside JSON are joined by `__`. */
export function defaultColumnName(expression: Expression): string | null {
  if (expression.kind === 'alias') return expression.name.text;
  if (expression.kind === 'index' && expression.index.kind === 'string') {
    const before = pathInJson(expression.object);
    return before === null ? null : [...before, expression.index.value].join('__');
  }
  if (expression.kind !== 'field') return null;
  const inside = pathInJson(expression);
  if (inside !== null && inside.length > 0) return inside.join('__');
  return expression.path.at(-1)?.text ?? null;
}

/** The keys after `properties`, or null for other paths. */
function pathInJson(expression: Expression): readonly string[] | null {
  if (expression.kind === 'index' && expression.index.kind === 'string') {
    const before = pathInJson(expression.object);
    return before === null ? null : [...before, expression.index.value];
  }
  if (expression.kind !== 'field') return null;
  const names = expression.path.map(({ text }) => text);
  const at = names.indexOf('properties');
  return at === -1 ? null : names.slice(at + 1);
}
