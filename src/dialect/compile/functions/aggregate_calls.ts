import type { Call, Expression, Name, Window } from '../../ast.ts';
import type { Combinator } from '../../functions/combinators.ts';
import type { FunctionDefinition, ArgumentType } from '../../functions/function_definition.ts';
import type { FoundFunction } from '../../functions/registry.ts';
import type { Scope } from '../../resolve/scope.ts';
import { derive, identityOf, mergeTraits, noTraits, type Value } from '../../resolve/value.ts';
import { joinSql, sql, Sql } from '../../sql.ts';
import { scalar, type Type, withNull } from '../../types.ts';
import { toCondition } from '../coerce.ts';
import type { Compiler } from '../compiler.ts';
import { defaultOf } from '../json_values.ts';
import { orderItems } from '../order_items.ts';
import { type WindowSpecification, windowSql } from '../windows.ts';
import { comparable, gatheredBytes, withinMemory } from '../gathered_rows.ts';
import { checkDistinct, checkNulls, checkContext, rejectNested } from './aggregate_checks.ts';
import { fillTemplate } from './sql_templates.ts';
import { checkRanges } from './range_checks.ts';
import { applySignature, checkArity } from './signature.ts';
import type { AggregateCallSite, CallSite, Emitted } from './call_site.ts';

/** Compiles a call of an aggregate or window function. @throws DialectError */
export function aggregateValue(
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
  const operation = operationOf(call, definition, combinators, {
    arguments: argumentValues.length,
    filters: filters.length,
    parameters: parameterValues.length,
    order: order?.directions,
    window: window?.shape,
  });
  const parts = [...argumentValues, ...filters, ...(window?.values ?? []), ...(order?.values ?? [])];
  const traits = isWindow ? { ...mergeTraits(parts), window: call } : { ...noTraits, aggregate: call };
  const identity = identityOf(derive(operation, operands, scalar('null', true), sql``, { traits }));
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
    parameters: parameterValues,
    returnType,
  };
  const site: AggregateCallSite = {
    ...base,
    distinct,
    mayBeEmpty: isWindow || filters.length > 0 || scope.grouping?.mayBeEmpty === true,
    orderBy: orderBySql(order?.sql ?? ordinal),
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
function operationOf(
  { distinct, nulls, over }: Call,
  { name }: FunctionDefinition,
  combinators: readonly Combinator[],
  roles: Readonly<Record<string, unknown>>,
): string {
  const words = [
    over === null ? 'aggregate' : 'window function',
    ...[name, ...combinators],
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
