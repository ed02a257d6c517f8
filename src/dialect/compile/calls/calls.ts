import type { Call, Comparison, Expression, Logical, Name, Window } from '../../ast.ts';
import { buildExpression } from '../../ast_builders.ts';
import type {
  AggregateCallSite,
  ArgumentType,
  CallSite,
  Emitted,
  FunctionDefinition,
} from '../../functions/function_definition.ts';
import { higherOrderValue, itemOf, rowsOf } from '../../functions/lambdas.ts';
import {
  arrayFunctionOf,
  type Combinator,
  findFunction,
  type FoundFunction,
  suggestFunction,
  unsupportedHint,
} from '../../functions/registry.ts';
import { parseExpression } from '../../parser/queries.ts';
import type { Scope } from '../../resolve/scope.ts';
import type { Statement } from '../../resolve/statement.ts';
import { derive, identityOf, mergeTraits, noTraits, type Value } from '../../resolve/value.ts';
import { joinSql, Sql, sql } from '../../sql.ts';
import { nameOfType, type ScalarKind, scalarType, type Type, withNull } from '../../types.ts';
import { orderItems } from '../clauses/query_expressions.ts';
import { comparable, gatheredBytes, withinMemory } from '../clauses/select_items.ts';
import { readsLambdaParameter, type WindowSpecification, windowSql } from '../clauses/windows.ts';
import type { Compiler, ExpressionUse } from '../compiler.ts';
import { castOperation } from '../expressions/casts.ts';
import { defaultOf, postgresType, spacedValue, textDetails, toCondition } from '../expressions/coerce.ts';
import { operationOf, subqueryOf } from '../expressions/comparisons.ts';
import { arrayJoinCall } from '../joins/array_joins.ts';
import { actionValue } from './actions.ts';
import { applySignature, argumentTypeAt, checkArity, checkRanges, fillTemplate } from './signature.ts';

/** @throws DialectError if DISTINCT is not supported */
function checkDistinct(
  { distinct, isWindow, statement, name, node }: AggregateCallSite,
  definition: FunctionDefinition,
): void {
  if (!distinct) return;
  if (definition.distinct === 'unsupported')
    throw statement.error(
      `Function '${name}' does not support DISTINCT.`,
      node,
      'Use SELECT DISTINCT in a subquery.',
    );
  if (isWindow && definition.distinct === 'without_over')
    throw statement.error(
      `Function '${name}' does not support DISTINCT with OVER.`,
      node,
      'Use length(groupUniqArray(…) OVER (…)).',
    );
}

/** @throws DialectError for IGNORE or RESPECT NULLS with other than the default behavior */
function checkNulls({ nulls, name }: Call, definition: FunctionDefinition, statement: Statement): void {
  if (nulls === null || definition.name === 'first_value' || definition.name === 'last_value') return;
  if (definition.kind === 'window' ? nulls === 'respect' : nulls === 'ignore') return;
  throw statement.error(
    `Function '${name.text}' does not support ${nulls.toUpperCase()} NULLS.`,
    name,
    definition.kind === 'window' ? 'Filter out nulls in a subquery.' : 'Use argMin(tuple(x), time).1.',
  );
}

/** @throws DialectError for a call that is not allowed in its context */
function checkContext(call: Call, definition: FunctionDefinition, scope: Scope): void {
  const { statement, context } = scope;
  const name = call.name.text;
  if (definition.kind === 'window' && call.over === null)
    throw statement.error(
      `Function '${name}' requires OVER (...).`,
      call,
      `Write ${name}(...) OVER (ORDER BY ...).`,
    );
  if (definition.kind === 'scalar' || definition.kind === 'higher_order')
    throw statement.error(`Function '${name}' is not an aggregate and does not support OVER.`, call);
  if (context === 'select') return;
  const what = call.over === null ? 'Aggregation' : 'Window function';
  if (context === 'aggregate')
    throw statement.error(
      `${what} '${name}' cannot be nested inside another aggregation '${scope.enclosingAggregate ?? ''}'.`,
      call,
    );
  // An aggregate that does not read the lambda's parameters is a column of the groups.
  const isOfGroup = context === 'lambda' && scope.grouping !== null && call.over === null;
  if (isOfGroup && !readsLambdaParameter(call, scope)) return;
  if (context === 'lambda') throw statement.error(`${what} '${name}' is not allowed in a lambda.`, call);
  const suggestion =
    context === 'WHERE'
      ? `Use ${call.over === null ? 'HAVING' : 'QUALIFY'}.`
      : call.over === null
        ? null
        : 'Compute it in a subquery in FROM.';
  throw statement.error(`${what} '${name}' is not allowed in ${context}.`, call, suggestion);
}

/** @throws DialectError for nested aggregates or window functions */
function rejectNested(call: Call, parts: readonly Value[], isWindow: boolean, scope: Scope): void {
  const { aggregate, window } = mergeTraits(parts);
  if (window !== null || (aggregate !== null && !isWindow))
    throw scope.statement.error(
      `${isWindow ? 'Window functions' : 'Aggregations'} cannot be nested.`,
      window ?? aggregate ?? call,
    );
}

/** Compiles a call of an aggregate or window function. @throws DialectError */
function aggregateValue(
  compiler: Compiler,
  call: Call,
  { definition, combinators }: FoundFunction,
  outer: Scope,
): Value {
  const name = call.name.text;
  const isWindow = call.over !== null;
  const windowSubquery = isWindow ? outer.windowSubquery : undefined;
  const scope: Scope = windowSubquery === undefined ? outer : { ...outer, windowSubquery: undefined };
  const { statement } = scope;
  checkContext(call, definition, scope);
  const hasIfCombinator = combinators.includes('If');
  const { rest, conditions } = splitConditions(call, hasIfCombinator);
  const nodes = rest.filter((node) => node.kind !== 'star');
  const parameters: readonly ArgumentType[] = hasIfCombinator
    ? ['boolean', ...definition.argumentTypes]
    : definition.argumentTypes;
  checkArity(name, parameters, nodes.length + (hasIfCombinator ? 1 : 0), call, statement);
  const inner: Scope = isWindow
    ? scope
    : { ...scope, context: 'aggregate', enclosingAggregate: name, grouping: null };
  const argumentValues = nodes.map((node) => compiler.value(node, inner));
  const filters = conditions.map((node) => {
    const value = compiler.value(node, inner, 'filter');
    return { ...value, sql: toCondition(value, node, statement) };
  });
  const parameterValues = (call.parameters ?? []).map((node) => compiler.value(node, scope));
  if (definition.parameterTypes.length > 0 || parameterValues.length > 0)
    checkArity(name, definition.parameterTypes, parameterValues.length, call, statement, 'parameter');
  const rangeChecked = { values: parameterValues, nodes: call.parameters ?? [], what: 'parameter' } as const;
  checkRanges(name, definition.parameterRanges, rangeChecked, statement);
  checkRanges(
    name,
    definition.argumentRanges,
    { values: argumentValues, nodes, what: 'argument' },
    statement,
  );
  const order = call.orderBy.length === 0 ? null : orderItems(compiler, call.orderBy, inner, argumentValues);
  rejectNested(call, [...argumentValues, ...filters], isWindow, scope);
  const { values, returnType } = applySignature(definition, name, argumentValues, nodes, statement);
  const window = call.over === null ? null : windowOf(compiler, call.over, scope);
  const operands = [
    ...argumentValues,
    ...filters,
    ...parameterValues,
    ...(order?.values ?? []),
    ...(window?.values ?? []),
  ];
  const operation = aggregateOperation(call, definition, combinators, {
    arguments: argumentValues.length,
    filters: filters.length,
    parameters: parameterValues.length,
    order: order?.directions,
    window: window?.shape,
  });
  const parts = [...argumentValues, ...filters, ...(window?.values ?? []), ...(order?.values ?? [])];
  const traits = isWindow ? { ...mergeTraits(parts), window: call } : { ...noTraits, aggregate: call };
  const identity = identityOf(derive(operation, operands, scalarType('null', true), sql``, { traits }));
  let columnCount = 0;
  /** The identity of the next PostgreSQL aggregate of this call. */
  const nextIdentity = (): string => {
    columnCount += 1;
    return `${identity} ${columnCount}`;
  };
  const conditionsSql = filters.map((filter) => filter.sql);
  const ordinal = order === null ? sourceOrdinal(call, definition, combinators, scope) : null;
  const distinct = call.distinct || combinators.includes('Distinct');
  const { grouping } = scope;
  grouping?.addRowValues([
    ...[...values, ...argumentValues, ...(order?.values ?? [])].map((value) => value.sql),
    ...conditionsSql,
    ...(ordinal === null ? [] : [ordinal]),
  ]);
  const kept = (size: Sql): Sql | null => {
    if (window !== null) return keptOfPartition(window, { identity, size, call }, scope);
    const isSet = distinct || definition.gathers === 'distinct';
    const distinctBy = isSet ? [...values.map(comparable), ...conditionsSql] : null;
    return grouping?.gather(identity, { size, distinctBy }) ?? null;
  };
  const keptBytes = definition.gathers === null ? null : kept(gatheredBytes(values, conditionsSql));
  const limit = keptBytes === null ? [] : [withinMemory(keptBytes)];
  const over = (fragment: Sql, ...more: readonly Sql[]): Sql => {
    const all = [...conditionsSql, ...more, ...limit];
    const filtered = all.length === 0 ? fragment : sql`${fragment} filter (where ${joinSql(all, ' and ')})`;
    if (window !== null) {
      const whole = sql`${filtered} over ${window.sql}`;
      return windowSubquery === undefined ? whole : windowSubquery.column(nextIdentity(), whole);
    }
    return scope.grouping === null ? filtered : scope.grouping.aggregate(nextIdentity(), filtered);
  };
  const base: CallSite = {
    compiler,
    scope,
    statement,
    node: call,
    name,
    nodes,
    values,
    given: argumentValues,
    parameters: parameterValues,
    returnType,
  };
  const site: AggregateCallSite = {
    ...base,
    distinct,
    mayBeEmpty:
      isWindow || filters.length > 0 || scope.grouping?.mayBeEmpty === true || scope.aggregatesItems === true,
    orderBy: orderBySql(order?.sql ?? ordinal),
    ordinal,
    isWindow,
    over,
  };
  checkDistinct(site, definition);
  checkNulls(call, definition, statement);
  const emitted = withEmptyValue(emit(site, definition), site, combinators);
  return derive(operation, operands, emitted.type, emitted.sql, { traits });
}

/** The bytes that a gathering window function keeps of its largest partition; null if its frames are short. */
function keptOfPartition(
  { hasShortFrames, partitionBy }: WindowSpecification,
  { identity, size, call }: { readonly identity: string; readonly size: Sql; readonly call: Call },
  { windowSizes, lambdaDepth, statement }: Scope,
): Sql | null {
  if (hasShortFrames || windowSizes === undefined) return null;
  // The sizes are computed outside the lambda.
  if (lambdaDepth > 0)
    throw statement.error(`Function '${call.name.text}' with OVER is not allowed in a lambda.`, call);
  return windowSizes.add(identity, size, partitionBy);
}

/** A call without the values that it reads: their numbers by role, sort directions and the window. */
function aggregateOperation(
  { distinct, nulls, over }: Call,
  { name }: FunctionDefinition,
  combinators: readonly Combinator[],
  roles: Readonly<Record<string, unknown>>,
): string {
  const words = [
    over === null ? 'aggregate' : 'window function',
    name,
    ...combinators,
    ...(distinct ? ['distinct'] : []),
    ...(nulls === null ? [] : [`${nulls} nulls`]),
  ];
  const used = Object.entries(roles).filter(([, role]) => role !== undefined && role !== 0);
  const isPlain = used.every(([role]) => role === 'arguments');
  return isPlain ? words.join(' ') : `${words.join(' ')} ${JSON.stringify(Object.fromEntries(used))}`;
}

const orderBySql = (order: Sql | null): Sql => (order === null ? sql`` : sql` order by ${order}`);

/** The number of a row of a sorted subquery, whose order ClickHouse preserves in array aggregates. */
function sourceOrdinal(
  { over, distinct }: Call,
  { isOrderSensitive }: FunctionDefinition,
  combinators: readonly Combinator[],
  { relations }: Scope,
): Sql | null {
  const [only, another] = relations;
  const isSet = over !== null || distinct || combinators.includes('Distinct');
  if (isSet || !isOrderSensitive || another !== undefined || only?.ordinal === undefined) return null;
  return only.ordinal();
}

/**
 * Applies OrNull and OrDefault: null or the type's default if there was no row. Nullable arguments always yield
 * null.
 */
function withEmptyValue(
  emitted: Emitted,
  site: AggregateCallSite,
  combinators: readonly Combinator[],
): { readonly sql: Sql; readonly type: Type } {
  const result = emitted instanceof Sql ? { sql: emitted, type: site.returnType } : emitted;
  const isNull = combinators.includes('OrNull');
  const isDefault = combinators.includes('OrDefault') && !site.values.some(({ type }) => type.nullable);
  if (!isNull && !isDefault) return result;
  const given = site.values.filter(({ type }) => type.nullable).map((value) => sql`${value.sql} is not null`);
  const some = sql`${site.over(sql`count(*)`, ...given)} > 0`;
  const type = withNull(result.type, isNull);
  return { sql: sql`(case when ${some} then ${result.sql} else ${defaultOf(type)} end)`, type };
}

function emit(site: AggregateCallSite, definition: FunctionDefinition): Emitted {
  if (definition.emitAggregate !== null) return definition.emitAggregate(site);
  if (definition.template === null)
    throw site.statement.error(`The function '${site.name}' is not supported yet.`, site.node.name);
  if (site.distinct || site.node.orderBy.length > 0)
    throw site.statement.error(`Function '${site.name}' does not support DISTINCT or ORDER BY.`, site.node);
  const call = site.over(fillTemplate(definition.template, site.values));
  // The number or rank of a row, without arguments, is never null.
  return { sql: call, type: { ...site.returnType, nullable: site.values.length > 0 } };
}

/** Splits the conditions of `sumIf(x, c)` and FILTER from the arguments. */
function splitConditions(
  call: Call,
  hasIfCombinator: boolean,
): { readonly rest: readonly Expression[]; readonly conditions: readonly Expression[] } {
  const filters = call.filter === null ? [] : [call.filter];
  const last = call.arguments.at(-1);
  if (!hasIfCombinator || last === undefined) return { rest: call.arguments, conditions: filters };
  return { rest: call.arguments.slice(0, -1), conditions: [last, ...filters] };
}

function windowOf(compiler: Compiler, over: Window | Name, scope: Scope): WindowSpecification {
  if (over.kind === 'window') return windowSql(compiler, over, scope);
  const named = scope.windows.get(over.text);
  if (named === undefined) throw scope.statement.error(`Unknown window \`${over.text}\`.`, over);
  return windowSql(compiler, named, scope);
}

const comparisons: Readonly<Record<string, Comparison['operator']>> = {
  equals: '=',
  notEquals: '!=',
  less: '<',
  greater: '>',
  lessOrEquals: '<=',
  greaterOrEquals: '>=',
  in: 'in',
  notIn: 'not in',
  like: 'like',
  ilike: 'ilike',
  notLike: 'not like',
  notILike: 'not ilike',
};

const arithmetic: Readonly<Record<string, '+' | '-' | '*' | '/' | '%'>> = {
  plus: '+',
  minus: '-',
  multiply: '*',
  divide: '/',
  modulo: '%',
};

/** Compiles functions that are operators, and those with special arguments; undefined for all others. */
function specialCall(compiler: Compiler, call: Call, scope: Scope, use: ExpressionUse): Value | undefined {
  const name = call.name.text;
  const { start, end } = call;
  if (call.over !== null || call.parameters !== null || call.distinct) return undefined;
  const [first, second, ...more] = call.arguments;
  if (name === 'arrayJoin') return arrayJoinCall(compiler, call, scope);
  if (name === 'arrayReduce') return arrayReduceValue(compiler, call, scope);
  if (first === undefined) return undefined;
  if (second === undefined) return oneArgument(compiler, call, first, scope, use);
  const lower = name.toLowerCase();
  if (lower === 'and' || lower === 'or') {
    const operator: Logical['operator'] = lower;
    return compiler.value({ kind: 'logical', operator, operands: call.arguments, start, end }, scope, use);
  }
  if (more.length > 0) return undefined;
  const known = Object.hasOwn(comparisons, name)
    ? comparisons[name]
    : comparisons[lower === 'like' || lower === 'ilike' || lower === 'in' ? lower : ''];
  if (known !== undefined)
    return compiler.value(
      { kind: 'comparison', operator: known, left: first, right: second, start, end },
      scope,
      use,
    );
  const sign = Object.hasOwn(arithmetic, name) ? arithmetic[name] : undefined;
  if (sign === undefined) return undefined;
  return compiler.value(
    { kind: 'arithmetic', operator: sign, left: first, right: second, start, end },
    scope,
  );
}

function oneArgument(
  compiler: Compiler,
  call: Call,
  only: Expression,
  scope: Scope,
  use: ExpressionUse,
): Value | undefined {
  const { start, end } = call;
  switch (call.name.text.toLowerCase()) {
    case 'not':
      return compiler.value({ kind: 'unary', operator: 'not', operand: only, start, end }, scope, use);
    case 'exists': {
      if (only.kind !== 'subquery') return undefined;
      const query = subqueryOf(compiler, only.query, scope);
      return derive(`exists ${operationOf(query)}`, [], scalarType('boolean'), sql`exists (${query.sql})`, {
        query: query.typed,
      });
    }
    case 'isnull':
    case 'isnotnull': {
      const negated = call.name.text.toLowerCase() === 'isnotnull';
      return compiler.value({ kind: 'is_null', operand: only, negated, start, end }, scope);
    }
    default:
      return undefined;
  }
}

/** Compiles a function call. @throws DialectError for an unknown function or wrong arguments */
export function callValue(compiler: Compiler, call: Call, scope: Scope, use: ExpressionUse): Value {
  const { statement } = scope;
  const name = call.name.text;
  if (name === 'matchesAction') return actionValue(compiler, call, scope, use);
  const special = specialCall(compiler, call, scope, use);
  if (special !== undefined) return special;
  const found = findFunction(name);
  if (found === undefined)
    throw statement.error(
      `Unsupported function call '${name}(...)'.`,
      call.name,
      unsupportedHint(name) ?? suggestFunction(name),
    );
  const { definition } = found;
  if (definition.unsupported !== null)
    throw statement.error(`Function '${name}' is not supported.`, call.name, definition.unsupported);
  if (definition.kind === 'aggregate' || definition.kind === 'window' || call.over !== null) {
    const rewritten = combinatorCall(call, found, statement);
    return rewritten === null
      ? aggregateValue(compiler, call, found, scope)
      : compiler.value(rewritten, scope);
  }
  rejectAggregateClauses(call, scope);
  checkArity(name, definition.argumentTypes, call.arguments.length, call, statement);
  if (definition.kind === 'higher_order') return higherOrderValue(compiler, call, definition, scope);
  return scalarValue(compiler, call, definition, scope);
}

function rejectAggregateClauses(call: Call, scope: Scope): void {
  const name = call.name.text;
  const unsupported = (what: string): Error =>
    scope.statement.error(`Function '${name}' is not an aggregate and does not support ${what}.`, call);
  if (call.distinct) throw unsupported('DISTINCT');
  if (call.filter !== null) throw unsupported('FILTER');
  if (call.orderBy.length > 0) throw unsupported('ORDER BY');
  if (call.parameters !== null) throw unsupported('a second pair of parentheses');
  if (call.nulls !== null) throw unsupported('IGNORE or RESPECT NULLS');
}

function scalarValue(compiler: Compiler, call: Call, definition: FunctionDefinition, scope: Scope): Value {
  const { statement } = scope;
  const name = call.name.text;
  const argumentValues = call.arguments.map((node) => compiler.value(node, scope));
  const rangeChecked = { values: argumentValues, nodes: call.arguments, what: 'argument' } as const;
  checkRanges(name, definition.argumentRanges, rangeChecked, statement);
  const { values, returnType } = applySignature(definition, name, argumentValues, call.arguments, statement);
  const site: CallSite = {
    compiler,
    scope,
    statement,
    node: call,
    name,
    nodes: call.arguments,
    values: ignoresBlanks.test(definition.name) ? values.map(spacedValue) : values,
    given: argumentValues,
    parameters: [],
    returnType,
  };
  if (definition.emit === null && definition.template === null)
    throw statement.error(`Function '${name}' does not support these arguments.`, call.name);
  const emitted = definition.emit?.(site) ?? fromTemplate(definition.template ?? '', site.values, returnType);
  const { sql: fragment, type } = emitted instanceof Sql ? { sql: emitted, type: returnType } : emitted;
  const [text] = argumentValues;
  const isText = definition.name === 'toString' && text?.type.kind === 'string';
  return derive(
    callOperation(definition.name, argumentValues.length),
    argumentValues,
    type,
    fragment,
    isText ? textDetails(text) : {},
  );
}

/** Functions that give the same for all arrays and objects. */
const ignoresBlanks =
  /^(to(Int|Float|Decimal|Bool|UUID|Date)|parseDateTime|(isN|isNotN)ull$|(notE|e)mpty$|domain|protocol$|port$)/;

/** Functions that mean the same as syntax of the dialect. */
const operations: Readonly<Record<string, string>> = {
  ifNull: 'coalesce',
  if: 'case',
  multiIf: 'case',
  toString: castOperation(scalarType('string')),
};

/** The operation of a call. Syntax and functions that mean the same have one. */
function callOperation(name: string, argumentCount: number): string {
  const unit = /^toInterval(\w+)$/.exec(name)?.[1];
  if (unit !== undefined) return `interval ${unit.toLowerCase()}`;
  const known = argumentCount > 1 && name === 'toString' ? undefined : operations[name];
  return known ?? name;
}

/** Fills the SQL template and casts the result to the declared type. */
function fromTemplate(template: string, values: readonly Value[], returnType: Type): Sql {
  const filled = fillTemplate(template, values);
  return returnType.kind === 'null' ? filled : sql`(${filled})::${postgresType(returnType)}`;
}

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
function combinatorCall(
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
function arrayReduceValue(compiler: Compiler, call: Call, scope: Scope): Value {
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
