import type { Call, Lambda } from '../../ast.ts';
import { coerce } from '../../compile/coerce.ts';
import type { Compiler } from '../../compile/compiler.ts';
import { fromJson, postgresType } from '../../compile/json_values.ts';
import type { Scope } from '../../resolve/scope.ts';
import { derive, type Value } from '../../resolve/value.ts';
import { rawSql, sql } from '../../sql.ts';
import { commonType, nameOfType, withNull } from '../../types.ts';
import { itemTypeOf } from './array_items.ts';

type Body = (compiler: Compiler, lambda: Lambda, parameters: readonly Value[], scope: Scope) => Value;

/** The lambda is compiled twice, to find the type of the accumulator, so nested ones are compiled 2^depth times. */
const maxDepth = 6;

/**
 * Compiles `arrayFold((acc, x) -> …, array, initial)` to a recursive query over the items.
 * @throws DialectError if the lambda returns another type than the initial value
 */
export function foldValue(compiler: Compiler, call: Call, scope: Scope, body: Body): Value {
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
