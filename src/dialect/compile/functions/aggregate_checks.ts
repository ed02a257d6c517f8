import type { Call } from '../../ast.ts';
import type { FunctionDefinition } from '../../functions/function_definition.ts';
import type { Scope } from '../../resolve/scope.ts';
import type { Statement } from '../../resolve/statement.ts';
import { mergeTraits, type Value } from '../../resolve/value.ts';
import { readsLambdaParameter } from '../window_subquery_values.ts';
import type { AggregateCallSite } from './call_site.ts';

/** @throws DialectError if DISTINCT is not supported */
export function checkDistinct(
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
export function checkNulls(
  { nulls, name }: Call,
  definition: FunctionDefinition,
  statement: Statement,
): void {
  if (nulls === null || definition.name === 'first_value' || definition.name === 'last_value') return;
  if (definition.kind === 'window' ? nulls === 'respect' : nulls === 'ignore') return;
  throw statement.error(
    `Function '${name.text}' does not support ${nulls.toUpperCase()} NULLS.`,
    name,
    definition.kind === 'window' ? 'Filter out nulls in a subquery.' : 'Use argMin(tuple(x), time).1.',
  );
}

/** @throws DialectError for a call that is not allowed in its context */
export function checkContext(call: Call, definition: FunctionDefinition, scope: Scope): void {
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
export function rejectNested(call: Call, parts: readonly Value[], isWindow: boolean, scope: Scope): void {
  const { aggregate, window } = mergeTraits(parts);
  if (window !== null || (aggregate !== null && !isWindow))
    throw scope.statement.error(
      `${isWindow ? 'Window functions' : 'Aggregations'} cannot be nested.`,
      window ?? aggregate ?? call,
    );
}
