import type { ArrayJoin, Call, Expression } from '../../ast.ts';
import { printExpression } from '../../print.ts';
import type { Scope } from '../../resolve/scope.ts';
import { columnOperation, derive, identityOf, type Value } from '../../resolve/value.ts';
import { commaList, identifier, sql, type Sql } from '../../sql.ts';
import { isComposite, nameOfType, type Type } from '../../types.ts';
import type { Compiler } from '../compiler.ts';
import { defaultOf, fromJson } from '../expressions/coerce.ts';
import { defaultColumnName } from '../expressions/field_access.ts';

/** The columns of ARRAY JOIN: one row per index of the parallel arrays. @throws DialectError */
export function compileArrayJoin(
  compiler: Compiler,
  arrayJoin: ArrayJoin,
  scope: Scope,
): ReadonlyMap<string, Value> {
  const arrays = arrayJoin.items.map((item) => ({
    name: defaultColumnName(item) ?? printExpression(item),
    node: item,
    ...arrayOf(compiler, item, { ...scope, context: 'ARRAY JOIN' }),
  }));
  const rows = commaList(arrays.map(({ value }) => sql`jsonb_array_elements(${value.sql})`));
  const names = commaList(arrays.map((_, index) => identifier(`v${index + 1}`)));
  const alias = scope.lateralJoins.add(
    `${arrayJoin.start}`,
    () => scope.statement.uniqueName('joined'),
    (name) =>
      arrayJoin.left
        ? sql` left join lateral rows from (${rows}) as ${name}(${names}) on true`
        : sql` cross join lateral rows from (${rows}) as ${name}(${names})`,
  );
  return new Map(
    arrays.map(({ name, value, item, node }, index) => {
      const json = sql`${alias}.${identifier(`v${index + 1}`)}`;
      const operation = columnOperation(`array join ${arrayJoin.start}.${index + 1}`);
      return [name, itemValue(operation, json, item, value, { optional: arrayJoin.left, node })];
    }),
  );
}

/** `arrayJoin(array)`: one row per item, anywhere in a query. */
export function arrayJoinCall(compiler: Compiler, call: Call, scope: Scope): Value {
  const [only, ...more] = call.arguments;
  const { statement } = scope;
  if (only === undefined || more.length > 0)
    throw statement.error(`Function 'arrayJoin' expects 1 argument, found ${call.arguments.length}`, call);
  if (scope.context === 'lambda' || scope.context === 'JOIN' || scope.context === 'LIMIT')
    throw statement.error('arrayJoin() is not allowed here.', call, 'Use ARRAY JOIN.');
  const ofGroups = scope.grouping === null ? null : arrayOf(compiler, only, scope);
  if (ofGroups !== null && ofGroups.value.traits.aggregate !== null)
    return arrayJoinOfGroups(call, ofGroups, scope);
  const { value, item } = arrayOf(compiler, only, { ...scope, grouping: null });
  const alias = scope.lateralJoins.add(
    identityOf(value),
    () => statement.uniqueName('joined'),
    (name) => sql` cross join lateral jsonb_array_elements(${value.sql}) as ${name}(v1)`,
  );
  const operation = columnOperation(`arrayJoin ${identityOf(value)}`);
  return itemValue(operation, sql`${alias}.v1`, item, value, { optional: false, node: call });
}

/** `arrayJoin(groupArray(x))`: one row per item of each group's array, before HAVING. */
function arrayJoinOfGroups(
  call: Call,
  { value, item }: { readonly value: Value; readonly item: Type },
  { statement, groupJoins }: Scope,
): Value {
  if (groupJoins === undefined)
    throw statement.error(
      'arrayJoin() of an aggregate is not supported WITH TOTALS.',
      call,
      'Aggregate in a subquery.',
    );
  const alias = groupJoins.add(
    identityOf(value),
    () => statement.uniqueName('joined'),
    (name) => sql` cross join lateral jsonb_array_elements(${value.sql}) as ${name}(v1)`,
  );
  const json = sql`${alias}.v1`;
  const operation = columnOperation(`arrayJoin ${identityOf(value)}`);
  const { traits } = value;
  return derive(operation, [value], item, fromJson(json, sql`(${json} #>> '{}')`, item), { traits });
}

function arrayOf(
  compiler: Compiler,
  node: Expression,
  scope: Scope,
): { readonly value: Value; readonly item: Type } {
  const value = compiler.value(node, scope);
  if (value.type.kind === 'array') return { value, item: value.type.item };
  throw scope.statement.error(`ARRAY JOIN requires an array, found ${nameOfType(value.type)}.`, node);
}

/** An item of an array, which varies like a column. */
function itemValue(
  operation: string,
  json: Sql,
  item: Type,
  array: Value,
  { optional, node }: { readonly optional: boolean; readonly node: Expression },
): Value {
  const text = sql`(${json} #>> '{}')`;
  const fragment = fromJson(json, text, item);
  const whole =
    optional && !item.nullable && !isComposite(item)
      ? sql`coalesce(${fragment}, ${defaultOf(item)})`
      : fragment;
  return derive(operation, [array], item, whole, { traits: { ...array.traits, column: node } });
}
