import type { Expression } from '../ast.ts';
import type { Scope } from '../resolve/scope.ts';
import { derive, type Value } from '../resolve/value.ts';
import { commaList, generatedName, joinSql, sql } from '../sql.ts';
import { arrayOf, commonTypeOf, mapOf, nameOfType, scalar, tupleOf } from '../types.ts';
import { coerce, unify } from './coerce.ts';
import type { Compiler } from './compiler.ts';
import { toJsonItem } from './json_values.ts';
import { toStringSql } from './to_string.ts';

export function arrayValue(compiler: Compiler, nodes: readonly Expression[], scope: Scope): Value {
  const items = nodes.map((item) => compiler.value(item, scope));
  const { type, fragments } = unify(items, nodes, scope.statement, 'The items of this array');
  const json = fragments.map((fragment) => toJsonItem(fragment, type));
  const built = nodes.length === 0 ? sql`'[]'::jsonb` : sql`jsonb_build_array(${commaList(json)})`;
  return derive('array', items, arrayOf(type), built, { items });
}

export function tupleValue(items: readonly Value[]): Value {
  const json = items.map(({ sql: fragment, type }) => toJsonItem(fragment, type));
  const built = items.length === 0 ? sql`'[]'::jsonb` : sql`jsonb_build_array(${commaList(json)})`;
  return derive('tuple', items, tupleOf(items.map(({ type }) => type)), built, { items });
}

export function dictionaryValue(
  compiler: Compiler,
  entries: readonly { readonly key: Expression; readonly value: Expression }[],
  scope: Scope,
): Value {
  const keys = entries.map(({ key }) => compiler.value(key, scope));
  const values = entries.map(({ value }) => compiler.value(value, scope));
  const type = commonTypeOf(values.map((one) => one.type)) ?? scalar('json', true);
  const parts = keys.flatMap((key, index) => {
    const value = values[index];
    if (value === undefined) return [];
    const fragment =
      type.kind === 'json'
        ? toJsonItem(value.sql, value.type)
        : toJsonItem(coerce(value, type, scope.statement), type);
    return [toStringSql(key, scope.statement), fragment];
  });
  const operands = keys.flatMap((key, index) => [key, ...values.slice(index, index + 1)]);
  return derive('map', operands, mapOf(type), sql`jsonb_build_object(${commaList(parts)})`);
}

/** `a[2:3]`: the second and third item. */
export function sliceValue(
  compiler: Compiler,
  node: Extract<Expression, { kind: 'slice' }>,
  scope: Scope,
): Value {
  const object = compiler.value(node.object, scope);
  if (object.type.kind !== 'array')
    throw scope.statement.error(`Only arrays can be sliced, found ${nameOfType(object.type)}.`, node);
  const bound = (one: Expression | null): Value | null => {
    if (one === null) return null;
    const value = compiler.value(one, scope);
    if (value.type.kind === 'integer') return value;
    throw scope.statement.error('Slice bounds must be integers.', one);
  };
  const [from, to] = [bound(node.from), bound(node.to)];
  const name = generatedName('slice');
  const conditions = [
    ...(from === null ? [] : [sql`${name}.at >= ${from.sql}`]),
    ...(to === null ? [] : [sql`${name}.at <= ${to.sql}`]),
  ];
  const where = conditions.length === 0 ? sql`` : sql` where ${joinSql(conditions, ' and ')}`;
  const fragment = sql`(select coalesce(jsonb_agg(${name}.v order by ${name}.at), '[]'::jsonb)
    from jsonb_array_elements(${object.sql}) with ordinality as ${name}(v, at)${where})`;
  const bounds = [from, to].filter((one) => one !== null);
  const operation = `slice${from === null ? '' : ' from'}${to === null ? '' : ' to'}`;
  return derive(operation, [object, ...bounds], object.type, fragment);
}
