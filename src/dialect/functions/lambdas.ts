import type { Call, Expression, Lambda } from '../ast.ts';
import type { Compiler } from '../compile/compiler.ts';
import {
  coerce,
  defaultOf,
  fromJson,
  itemTypeOf,
  postgresType,
  toCondition,
  toJsonItem,
} from '../compile/expressions/coerce.ts';
import { notText } from '../compile/expressions/readings.ts';
import type { Scope } from '../resolve/scope.ts';
import type { Statement } from '../resolve/statement.ts';
import { derive, type Value } from '../resolve/value.ts';
import { commaList, joinSql, rawSql, sql, type Sql } from '../sql.ts';
import {
  arrayOf,
  commonType,
  isNumber,
  mapOf,
  nameOfType,
  scalarType,
  type Type,
  withNull,
} from '../types.ts';
import {
  byCompiler,
  type FunctionDefinition,
  higherOrder,
  type LambdaEmitter,
  type LambdaItems,
} from './function_definition.ts';

type Body = (compiler: Compiler, lambda: Lambda, parameters: readonly Value[], scope: Scope) => Value;

/** The lambda is compiled twice, to find the type of the accumulator, so nested ones are compiled 2^depth times. */
const maxDepth = 6;

/**
 * Compiles `arrayFold((acc, x) -> …, array, initial)` to a recursive query over the items.
 * @throws DialectError if the lambda returns another type than the initial value
 */
function foldValue(compiler: Compiler, call: Call, scope: Scope, body: Body): Value {
  const { statement } = scope;
  const [lambda, ...others] = call.arguments;
  const last = others.at(-1);
  if (
    lambda?.kind !== 'lambda' ||
    last === undefined ||
    others.length < 2 ||
    lambda.parameters.length !== others.length
  )
    throw statement.error(
      `Function 'arrayFold' expects a lambda, arrays and an initial value.`,
      call,
      'Write arrayFold((acc, x) -> acc + x, array, 0).',
    );
  if (scope.lambdaDepth > maxDepth)
    throw statement.error(`Function 'arrayFold' can be nested in at most ${maxDepth} lambdas.`, call);
  const arrays = others.slice(0, -1).map((node) => {
    const value = compiler.value(node, scope);
    if (value.type.kind !== 'array')
      throw statement.error(`Function 'arrayFold' expects an array, found ${nameOfType(value.type)}.`, node);
    return value;
  });
  const initial = compiler.value(last, scope);
  const name = `fold${scope.lambdaDepth}`;
  const alias = rawSql(name);
  const resultOf = (type: Value['type']): Value => {
    const items = arrays.map((array, index): Value => {
      const item = itemTypeOf(array);
      const at = sql`${alias}.at::int4`;
      const fragment = fromJson(sql`(${array.sql} -> ${at})`, sql`(${array.sql} ->> ${at})`, item);
      return derive(`parameter ${name} item ${index + 1}`, [], item, fragment);
    });
    const accumulator = derive(`parameter ${name} of ${nameOfType(type)}`, [], type, sql`${alias}.acc`);
    return body(compiler, lambda, [accumulator, ...items], scope);
  };
  const widest = commonType(initial.type, resultOf(initial.type).type);
  const type = widest === null ? null : withNull(widest, true);
  const result = type === null ? null : resultOf(type);
  const common = type === null || result === null ? null : commonType(type, result.type);
  if (type === null || result === null || common?.kind !== type.kind)
    throw statement.error(
      `This lambda returns ${nameOfType(resultOf(initial.type).type)}, but the initial value is ${nameOfType(initial.type)}.`,
      lambda,
      'Convert one of them.',
    );
  const sqlType = type.kind === 'string' ? sql`text collate "default"` : postgresType(type);
  const [first] = arrays;
  const length = first === undefined ? sql`0` : sql`jsonb_array_length(${first.sql})`;
  const fragment = sql`(with recursive ${alias}(at, acc) as (select 0::int8, (${coerce(initial, type, statement)})::${sqlType}
    union all select ${alias}.at + 1, (${coerce(result, type, statement)})::${sqlType} from ${alias} where ${alias}.at < ${length})
    select ${alias}.acc from ${alias} order by ${alias}.at desc limit 1)`;
  const nullable = initial.type.nullable || result.type.nullable;
  return derive('arrayFold', [initial, ...arrays, result], withNull(type, nullable), fragment);
}

/** Compiles a function that takes a lambda. @throws DialectError */
export function higherOrderValue(
  compiler: Compiler,
  call: Call,
  { name, emitLambda, argumentTypes }: FunctionDefinition,
  scope: Scope,
): Value {
  if (emitLambda === null) return foldValue(compiler, call, scope, lambdaBodyValue);
  const items = itemsOf(compiler, call, scope, argumentTypes.includes('map'));
  const { sql: fragment, type } = emitLambda(items, scope);
  return derive(name, [...items.arrays, items.result], type, fragment);
}

/** The keys and the values of a map, as parallel arrays. */
function keysAndValues(value: Value, node: Expression, call: Call, statement: Statement): readonly Value[] {
  const { type } = value;
  if (type.kind !== 'map')
    throw statement.error(
      `Function '${call.name.text}' expects a map, found ${nameOfType(type)}.`,
      node,
      `Write ${call.name.text}((k, v) -> …, map).`,
    );
  const list = (column: Sql): Sql =>
    sql`(select coalesce(jsonb_agg(${column}), '[]'::jsonb) from jsonb_each(${value.sql}) as entry)`;
  return [
    derive('mapKeys', [value], arrayOf(scalarType('string')), list(sql`entry.key`)),
    derive('mapValues', [value], arrayOf(type.value), list(sql`entry.value`)),
  ];
}

function itemsOf(compiler: Compiler, call: Call, scope: Scope, ofMaps: boolean): LambdaItems {
  const { statement } = scope;
  const [first, ...others] = call.arguments;
  const lambda = first?.kind === 'lambda' ? first : null;
  const nodes = lambda === null ? call.arguments : others;
  const arrays = nodes.flatMap((node): readonly Value[] => {
    const value = compiler.value(node, scope);
    if (ofMaps) return keysAndValues(value, node, call, statement);
    if (value.type.kind !== 'array')
      throw statement.error(
        `Function '${call.name.text}' expects an array, found ${nameOfType(value.type)}.`,
        node,
        lambda === null && nodes.length > 1 ? `Write ${call.name.text}(x -> …, array).` : null,
      );
    return [value];
  });
  if (arrays.length === 0) throw statement.error(`Function '${call.name.text}' expects an array.`, call);
  if (lambda !== null && lambda.parameters.length !== arrays.length)
    throw statement.error(
      ofMaps
        ? `The lambda of '${call.name.text}' takes a key and a value.`
        : `This lambda has ${lambda.parameters.length} parameters, but the call has ${arrays.length} arrays.`,
      lambda,
    );
  const depth = scope.lambdaDepth;
  const parameters = arrays.map((array, index) => itemOf(array, `x${depth}_${index}`));
  const [item] = parameters;
  if (item === undefined) throw statement.error(`Function '${call.name.text}' expects an array.`, call);
  const result = lambda === null ? item : lambdaBodyValue(compiler, lambda, parameters, scope);
  const head = rawSql(`x${depth}_0`);
  return {
    rows: rowsOf(arrays, depth),
    at: sql`${head}.at`,
    item,
    json: sql`${head}.v`,
    result,
    arrays,
    body: lambda?.body ?? call,
  };
}

/** An item of an array, as a value of the FROM item `name`. */
export function itemOf(array: Value, name: string): Value {
  const type: Type = array.type.kind === 'array' ? array.type.item : scalarType('null', true);
  const alias = rawSql(name);
  return derive(`parameter ${name}`, [], type, fromJson(sql`${alias}.v`, sql`(${alias}.v #>> '{}')`, type));
}

/** FROM items with a row for each index of parallel arrays: `x<depth>_0`, `x<depth>_1` and so on. */
export function rowsOf(arrays: readonly Value[], depth: number): Sql {
  const tables = arrays.map((array, index) => {
    const alias = rawSql(`x${depth}_${index}`);
    return sql`jsonb_array_elements(${array.sql}) with ordinality as ${alias}(v, at)`;
  });
  return tables.slice(1).reduce(
    (joined, table, index) => {
      const [first, next] = [rawSql(`x${depth}_0`), rawSql(`x${depth}_${index + 1}`)];
      return sql`${joined} join ${table} on ${next}.at = ${first}.at`;
    },
    tables[0] ?? sql``,
  );
}

/** Compiles the body of a lambda with its parameters bound. */
function lambdaBodyValue(
  compiler: Compiler,
  lambda: Lambda,
  parameters: readonly Value[],
  scope: Scope,
): Value {
  const lambdaParameters = new Map(scope.lambdaParameters);
  lambda.parameters.forEach((name, index) => {
    const parameter = parameters[index];
    if (parameter !== undefined) lambdaParameters.set(name.text, parameter);
  });
  const inside: Scope = {
    ...scope,
    lambdaParameters,
    lambdaDepth: scope.lambdaDepth + 1,
    context: 'lambda',
  };
  return compiler.value(lambda.body, inside);
}

/** The value of the entry whose key is the item. */
const entryValue = ({ lambdaDepth }: Scope): Sql => sql`${rawSql(`x${lambdaDepth}_1`)}.v`;

const holds = ({ result, body }: LambdaItems, scope: Scope): Sql =>
  sql`(${toCondition(result, body, scope.statement)}) is true`;

const collect = (value: Sql, items: LambdaItems, where: Sql = sql``, order: Sql = items.at): Sql =>
  sql`(select coalesce(jsonb_agg(${value} order by ${order}), '[]'::jsonb) from ${items.rows}${where})`;

const one = (value: Sql, items: LambdaItems, rest: Sql): Sql =>
  sql`(select ${value} from ${items.rows}${rest})`;

const sorted =
  (descending: boolean): LambdaEmitter =>
  (items) => {
    const key =
      items.result.type.kind === 'string' ? sql`(${items.result.sql}) collate "C"` : items.result.sql;
    const down = descending ? sql` desc` : sql``;
    return {
      sql: collect(items.json, items, sql``, commaList([sql`${key}${down} nulls last`, items.at])),
      type: items.arrays[0]?.type ?? arrayOf(items.item.type),
    };
  };

/** The first or last item that satisfies the lambda, else a default of its type. */
const found =
  (order: 'asc' | 'desc'): LambdaEmitter =>
  (items, scope) => {
    const where = sql` where ${holds(items, scope)} order by ${items.at} ${rawSql(order)} limit 1`;
    const { type } = items.item;
    return { sql: sql`coalesce(${one(items.item.sql, items, where)}, ${defaultOf(type)})`, type };
  };

const indexOfItem =
  (order: 'asc' | 'desc'): LambdaEmitter =>
  (items, scope) => {
    const where = sql` where ${holds(items, scope)} order by ${items.at} ${rawSql(order)} limit 1`;
    return { sql: sql`coalesce(${one(items.at, items, where)}, 0)`, type: scalarType('integer') };
  };

const numbers = (items: LambdaItems, scope: Scope): Sql => {
  const { type, sql: fragment } = notText(items.result, scope.statement);
  if (type.kind === 'boolean') return sql`(${fragment})::int4`;
  if (type.kind === 'null') return sql`(${fragment})::int8`;
  if (isNumber(type)) return fragment;
  throw scope.statement.error(`Expected numbers, found ${nameOfType(type)}.`, items.body);
};

const numberType = ({ result }: LambdaItems): Type =>
  isNumber(result.type) ? withNull(result.type, false) : scalarType('integer');

/**
 * Computes values from the items in a subquery: an aggregate over outer columns alone would belong to the outer
 * query.
 */
const computedItems = (value: Sql, { rows, at }: LambdaItems): Sql =>
  sql`(select ${value} as v, ${at} as at from ${rows}) as made`;

const aggregated = (aggregate: Sql, value: Sql, items: LambdaItems): Sql =>
  sql`(select ${aggregate}(made.v) from ${computedItems(value, items)})`;

const extreme =
  (order: 'asc' | 'desc'): LambdaEmitter =>
  (items) => {
    const { type, sql: fragment } = items.result;
    const key = type.kind === 'string' ? sql`made.v collate "C"` : sql`made.v`;
    const plain = withNull(type, false);
    const value = sql`(select made.v from ${computedItems(fragment, items)} where made.v is not null order by ${key} ${rawSql(order)} limit 1)`;
    return { sql: sql`coalesce(${value}, ${defaultOf(plain)})`, type: plain };
  };

/** Multiplies step by step; PostgreSQL would fail on overflow and underflow. Without items 0, as in ClickHouse. */
const product: LambdaEmitter = (items, scope) => {
  const value = sql`(${numbers(items, scope)})::float8`;
  const size = sql`ln(abs(run.v)) + ln(abs(made.v))`;
  const next = sql`case when made.v = 0 or run.v = 0 then 0 when abs(run.v) = 'Infinity' or abs(made.v) = 'Infinity' then run.v * made.v
    when ${size} > 709.78 then sign(run.v) * sign(made.v) * 'Infinity'::float8 when ${size} < -744 then 0 else run.v * made.v end`;
  return {
    sql: sql`(with recursive run(at, v) as (select 0::int8, 1::float8 union all
      select made.at, ${next} from run join ${computedItems(value, items)} on made.at = run.at + 1)
      select case when run.at = 0 then 0 else run.v end from run order by run.at desc limit 1)`,
    type: scalarType('float'),
  };
};

/** Splits where a lambda holds, before the item or after it. */
const split =
  (isBefore: boolean): LambdaEmitter =>
  (items, scope) => {
    const frame = isBefore ? sql`` : sql` rows between unbounded preceding and 1 preceding`;
    const groups = sql`count(*) filter (where ${holds(items, scope)}${isBefore ? sql` and ${items.at} > 1` : sql``}) over (order by ${items.at}${frame})`;
    return {
      sql: sql`(select coalesce(jsonb_agg(piece.v order by piece.g), '[]'::jsonb) from (select jsonb_agg(run.v order by run.at) as v, run.g from
        (select ${items.json} as v, ${items.at} as at, ${groups} as g from ${items.rows}) as run group by run.g) as piece)`,
      type: arrayOf(items.arrays[0]?.type ?? arrayOf(items.item.type)),
    };
  };

/** The entries that a lambda makes of a key and a value, as tuples. */
const mapEntries: LambdaEmitter = (items, { statement }) => {
  const { type } = items.result;
  const [key, value] = type.kind === 'tuple' ? type.items : [];
  if (type.kind !== 'tuple' || key === undefined || value === undefined || type.items.length !== 2)
    throw statement.error(
      `The lambda must return a tuple of a key and a value, found ${nameOfType(type)}.`,
      items.body,
    );
  return {
    sql: sql`(select coalesce(jsonb_object_agg(made.v ->> 0, made.v -> 1), '{}'::jsonb) from ${computedItems(items.result.sql, items)})`,
    type: mapOf(value),
  };
};

/** Array functions that take a lambda. Those whose first argument is `any` also take only the array. */
export const lambdaFunctions: readonly FunctionDefinition[] = [
  higherOrder('arraySort(any, array(any)...): array(T)', 'The array in ascending order.', sorted(false)),
  higherOrder(
    'arrayReverseSort(any, array(any)...): array(T)',
    'The array in descending order.',
    sorted(true),
  ),
  higherOrder(
    'arrayMap(lambda, array(T), array(any)...): array(any)',
    'The results of a lambda for each item.',
    (items) => ({
      sql: collect(toJsonItem(items.result.sql, items.result.type), items),
      type: arrayOf(items.result.type),
    }),
  ),
  higherOrder(
    'arrayFilter(lambda, array(T), array(any)...): array(T)',
    'The items that satisfy a lambda.',
    (items, scope) => ({
      sql: collect(items.json, items, sql` where ${holds(items, scope)}`),
      type: items.arrays[0]?.type ?? arrayOf(items.item.type),
    }),
  ),
  higherOrder(
    'arrayExists(any, array(any)...): boolean',
    'Whether any item satisfies a lambda.',
    (items, scope) => ({
      sql: sql`exists (select from ${items.rows} where ${holds(items, scope)})`,
      type: scalarType('boolean'),
    }),
  ),
  higherOrder(
    'arrayAll(any, array(any)...): boolean',
    'Whether all items satisfy a lambda.',
    (items, scope) => ({
      sql: sql`(not exists (select from ${items.rows} where not (${holds(items, scope)})))`,
      type: scalarType('boolean'),
    }),
  ),
  higherOrder(
    'arrayFirst(lambda, array(T), array(any)...): T',
    'The first item that satisfies a lambda.',
    found('asc'),
  ),
  higherOrder(
    'arrayLast(lambda, array(T), array(any)...): T',
    'The last item that satisfies a lambda.',
    found('desc'),
  ),
  higherOrder(
    'arrayFirstIndex(lambda, array(T), array(any)...): integer',
    'The index of the first item that satisfies a lambda.',
    indexOfItem('asc'),
  ),
  higherOrder(
    'arrayLastIndex(lambda, array(T), array(any)...): integer',
    'The index of the last item that satisfies a lambda.',
    indexOfItem('desc'),
  ),
  higherOrder(
    'arrayCount(any, array(any)...): integer',
    'Number of items that satisfy a lambda.',
    (items, scope) => ({
      sql: one(sql`count(*)`, items, sql` where ${holds(items, scope)}`),
      type: scalarType('integer'),
    }),
  ),
  higherOrder('arraySum(any, array(any)...): number', 'The sum of the items.', (items, scope) => {
    const type = numberType(items);
    const sum = aggregated(sql`sum`, numbers(items, scope), items);
    return { sql: sql`coalesce(${type.kind === 'integer' ? sql`(${sum})::int8` : sum}, 0)`, type };
  }),
  higherOrder('arrayAvg(any, array(any)...): float', 'The mean of the items.', (items, scope) => ({
    sql: sql`coalesce(${aggregated(sql`avg`, sql`(${numbers(items, scope)})::float8`, items)}, 0)`,
    type: scalarType('float'),
  })),
  higherOrder('arrayMin(any, array(any)...): any', 'The smallest item.', extreme('asc')),
  higherOrder('arrayMax(any, array(any)...): any', 'The largest item.', extreme('desc')),
  higherOrder('arrayProduct(any, array(any)...): float', 'The product of the items.', product),
  higherOrder('arrayCumSum(any, array(any)...): array(number)', 'The running sums.', (items, scope) => {
    const type = numberType(items);
    const running = sql`sum(${numbers(items, scope)}) over (order by ${items.at})`;
    return {
      sql: sql`(select coalesce(jsonb_agg(run.v order by run.at), '[]'::jsonb) from (select ${running} as v, ${items.at} as at from ${items.rows}) as run)`,
      type: arrayOf(type),
    };
  }),
  higherOrder(
    'arrayFold(lambda, array(any), any, any...): any',
    'The result of applying a lambda to all items in turn.',
    byCompiler,
  ),
  higherOrder(
    'arraySplit(lambda, array(T), array(any)...): array(any)',
    'The array split before each item that satisfies a lambda.',
    split(true),
  ),
  higherOrder(
    'arrayReverseSplit(lambda, array(T), array(any)...): array(any)',
    'The array split after each item that satisfies a lambda.',
    split(false),
  ),
  higherOrder(
    'mapFilter(lambda, map): map',
    'The entries of a map whose key and value satisfy a lambda.',
    (items, scope) => ({
      sql: sql`(select coalesce(jsonb_object_agg(${items.item.sql}, ${entryValue(scope)}), '{}'::jsonb) from ${items.rows} where ${holds(items, scope)})`,
      type: mapOf(itemTypeOf(items.arrays[1] ?? items.item)),
    }),
  ),
  higherOrder(
    'mapApply(lambda, map): map',
    'The map of the keys and values that a lambda returns as tuples.',
    mapEntries,
  ),
  higherOrder(
    'arrayFill(lambda, array(T), array(any)...): array(T)',
    'The array with items that do not satisfy a lambda replaced by the preceding one.',
    (items, scope) => {
      const groups = sql`count(*) filter (where ${holds(items, scope)} or ${items.at} = 1) over (order by ${items.at})`;
      const first = joinSql([sql`first_value(run.v) over (partition by run.g order by run.at)`], '');
      return {
        sql: sql`(select coalesce(jsonb_agg(filled.v order by filled.at), '[]'::jsonb) from (select ${first} as v, run.at from (select ${items.json} as v, ${items.at} as at, ${groups} as g from ${items.rows}) as run) as filled)`,
        type: items.arrays[0]?.type ?? arrayOf(items.item.type),
      };
    },
  ),
];
