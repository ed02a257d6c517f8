import type { Expression } from '../../dialect/ast.ts';
import { buildSelect } from '../../dialect/ast_builders.ts';
import type { DialectReader } from '../dialect_reader.ts';
import { checkFilters, checkTestAccounts } from '../filters.ts';
import { QueryError } from '../query_errors.ts';
import type { QueryProject } from '../query_kind.ts';
import { breakdownExpression } from '../breakdowns/breakdown_expression.ts';
import type { FunnelPlan } from './plan.ts';
import { actorOf } from './read_events.ts';

/**
 * Compiles each expression of a query separately, so that an error names its field rather than a generated statement.
 * @throws QueryError
 */
export function checkExpressions(plan: FunnelPlan, project: QueryProject, reader: DialectReader): void {
  const { query } = plan;
  checkFilters(query.properties, 'query__properties', reader);
  if (query.filterTestAccounts) checkTestAccounts(project, reader);
  const nodes = [
    ...query.series.map((node, index) => ({ node, attr: `query__series__${index}` })),
    ...plan.exclusions,
  ];
  for (const { node, attr } of nodes) {
    checkFilters(node.properties, `${attr}__properties`, reader);
    checkFilters(node.fixedProperties, `${attr}__fixedProperties`, reader);
  }
  const check = (value: Expression, attr: string): void => {
    // In WHERE, so that aggregates are rejected: the value is that of one event.
    reader.compile(buildSelect('select 1 from events where {value} is not null', { value }), { attr });
  };
  if (query.funnelsFilter.funnelAggregateByHogQL !== null)
    check(actorOf(plan), 'query__funnelsFilter__funnelAggregateByHogQL');
  for (const breakdown of plan.breakdowns) {
    if (breakdown.bins !== null)
      throw new QueryError(
        'not_supported',
        'Funnels do not support histogram bins. Omit the number of bins, or break down by an expression that rounds.',
        { attr: breakdown.attr },
      );
    check(breakdownExpression(breakdown), breakdown.attr);
  }
}
