import { buildExpression } from '../../ast_builders.ts';
import type { Call, Expression } from '../../ast.ts';
import { itemOf, rowsOf } from '../../functions/lambdas.ts';
import {
  arrayFunctionOf,
  type Combinator,
  findFunction,
  type FoundFunction,
} from '../../functions/registry.ts';
import { parseExpression } from '../../parser/queries.ts';
import type { Scope } from '../../resolve/scope.ts';
import type { Statement } from '../../resolve/statement.ts';
import { derive, type Value } from '../../resolve/value.ts';
import { sql } from '../../sql.ts';
import { nameOfType, type ScalarKind, scalarType } from '../../types.ts';
import type { Compiler } from '../compiler.ts';
import { argumentTypeAt } from './signature.ts';

/**
 * What an aggregate with a combinator means, in terms of `list`, the gathered arguments of all rows, and `reduced`, the
 * aggregate without the combinator. Each is one aggregate of the group, however often the template names it.
 */
const templates: Readonly<Partial<Record<Combinator, string>>> = {
  Array: `arrayReduce({reduced}, arrayFlatten({list}))`,
  ForEach: `arrayMap(i -> arrayReduce({reduced}, arrayMap(a -> a[i], arrayFilter(a -> length(a) >= i, {list}))),
    range(1, arrayMax(a -> length(a), {list}) + 1))`,
  Map: `mapFromArrays(arraySort(arrayDistinct(arrayFlatten(arrayMap(m -> mapKeys(m), {list})))),
    arrayMap(k -> arrayReduce({reduced}, arrayMap(m -> m[k], arrayFilter(m -> mapContains(m, k), {list}))),
      arraySort(arrayDistinct(arrayFlatten(arrayMap(m -> mapKeys(m), {list}))))))`,
  ArgMin: `arrayReduce({reduced}, arrayMap(p -> p.1, arrayFilter(p -> p.2 = {key}, {list})))`,
  ArgMax: `arrayReduce({reduced}, arrayMap(p -> p.1, arrayFilter(p -> p.2 = {key}, {list})))`,
};

/**
 * Rewrites an aggregate with the combinators Array, ForEach, Map, ArgMin or ArgMax to functions of arrays: `sumArray(x)`
 * becomes `arraySum(arrayFlatten(groupArray(x)))`. Null if it has none of them.
 * @throws DialectError for combinations and arguments that are not supported
 */
export function combinatorCall(
  call: Call,
  { definition, combinators }: FoundFunction,
  statement: Statement,
): Expression | null {
  const [rewritten, another] = combinators.filter((one) => Object.hasOwn(templates, one));
  if (rewritten === undefined) return null;
  const unsupported = (suggestion: string): Error =>
    statement.error(`Unsupported function call '${call.name.text}(...)'.`, call.name, suggestion);
  const hasIf = combinators.includes('If');
  if (another !== undefined || combinators.length > (hasIf ? 2 : 1))
    throw unsupported('Combine it with If alone.');
  const ofItems = rewritten === 'Array' ? arrayFunctionOf(definition.name) : null;
  if (call.over !== null && ofItems === null)
    throw statement.error(`Function '${call.name.text}' does not support OVER.`, call);
  const aggregate = (name: string, given: readonly Expression[]): Call => ({
    ...call,
    name: { ...call.name, text: hasIf ? `${name}If` : name },
    parameters: null,
    arguments: hasIf ? [...given, ...call.arguments.slice(-1)] : given,
  });
  const values = hasIf ? call.arguments.slice(0, -1) : call.arguments;
  const [value, key, ...more] = values;
  const expected = rewritten.startsWith('Arg') ? 2 : 1;
  if (value === undefined || values.length !== expected || more.length > 0)
    throw statement.error(
      `Function '${call.name.text}' expects ${expected} argument${expected === 1 ? '' : 's'}, found ${values.length}`,
      call,
    );
  if (ofItems !== null)
    return buildExpression(`${ofItems}(arrayFlatten({list}))`, { list: aggregate('groupArray', [value]) });
  const gathered = key === undefined ? value : buildExpression('tuple({value}, {key})', { value, key });
  const parameters = (call.parameters ?? []).map((parameter) =>
    parameter.kind === 'number' ? parameter.text : '',
  );
  const reduced = `${definition.name}${parameters.length === 0 ? '' : `(${parameters.join(', ')})`}`;
  return buildExpression(templates[rewritten] ?? '', {
    list: aggregate('groupArray', [gathered]),
    reduced: { value: reduced },
    ...(key !== undefined && { key: aggregate(rewritten === 'ArgMin' ? 'min' : 'max', [key]) }),
  });
}

/**
 * Compiles `arrayReduce('quantile(0.9)', array)`: the aggregate over the items of arrays.
 * @throws DialectError unless the first argument names an aggregate
 */
export function arrayReduceValue(compiler: Compiler, call: Call, scope: Scope): Value {
  const { statement } = scope;
  const [named, ...nodes] = call.arguments;
  const wrong = (message: string): Error =>
    statement.error(message, named ?? call, "Write arrayReduce('sum', array).");
  if (named?.kind !== 'string' || nodes.length === 0)
    throw wrong(`Function 'arrayReduce' expects the name of an aggregate as a string, and arrays.`);
  const written = aggregateNamed(named.value);
  const aggregate = written && findFunction(written.name.text);
  if (written === null || aggregate?.definition.kind !== 'aggregate')
    throw wrong(`'${named.value}' is not an aggregate.`);
  const arrays = nodes.map((node) => {
    const value = compiler.value(node, scope);
    if (value.type.kind === 'array') return value;
    throw statement.error(`Function 'arrayReduce' expects an array, found ${nameOfType(value.type)}.`, node);
  });
  const depth = scope.lambdaDepth;
  const { argumentTypes } = aggregate.definition;
  const items = arrays.map((array, index): readonly [string, Value] => [
    `item ${depth} ${index}`,
    itemOf(withTypeOfNulls(array, argumentTypeAt(argumentTypes, index)), `x${depth}_${index}`),
  ]);
  const inside: Scope = {
    ...scope,
    context: 'select',
    grouping: null,
    aggregatesItems: true,
    lambdaDepth: depth + 1,
    lambdaParameters: new Map([...scope.lambdaParameters, ...items]),
  };
  const reduced: Call = {
    ...call,
    name: { ...call.name, text: written.name.text },
    parameters: written.parameters,
    arguments: items.map(([text]) => ({
      kind: 'field',
      path: [{ ...call.name, kind: 'name', text }],
      start: call.start,
      end: call.end,
    })),
  };
  const result = compiler.value(reduced, inside);
  const fragment = sql`(select ${result.sql} from ${rowsOf(arrays, depth)})`;
  return derive(`arrayReduce ${named.value}`, arrays, result.type, fragment);
}

const typesOfNulls: Readonly<Record<string, ScalarKind>> = {
  number: 'float',
  integer: 'integer',
  boolean: 'boolean',
  date_or_datetime: 'datetime',
  string: 'string',
  any: 'string',
  T: 'string',
};

/**
 * Gives an array that has nothing but nulls a type of items that the aggregate accepts. As constants they would make it an
 * aggregate of another query: PostgreSQL goes by the columns that it reads.
 */
function withTypeOfNulls(array: Value, argumentType: string): Value {
  const kind = typesOfNulls[argumentType];
  if (array.type.kind !== 'array' || array.type.item.kind !== 'null' || kind === undefined) return array;
  return { ...array, type: { ...array.type, item: scalarType(kind, true) } };
}

/** The call in the name of an aggregate such as `sum` or `quantile(0.9)`; null if it is none. */
function aggregateNamed(text: string): Call | null {
  try {
    const call = parseExpression(`${text}(x)`);
    return call.kind === 'call' ? call : null;
  } catch {
    return null;
  }
}
