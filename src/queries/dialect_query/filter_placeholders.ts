import type { Expression } from '../../dialect/ast.ts';
import { buildExpression, buildField, combineConditions, buildLiteral } from '../../dialect/ast_builders.ts';
import type { PlaceholderTable, PlaceholderValue } from '../../dialect/resolve/placeholders.ts';
import { momentLiteralIn } from '../dates/moment.ts';
import { filtersCondition, testAccountsCondition } from '../filters.ts';
import { QueryError } from '../query_errors.ts';
import type { QueryContext } from '../query_kind.ts';
import type { DialectQuery } from './schema.ts';

/** What the dates of filters are resolved against. */
export type FilterContext = Pick<QueryContext, 'project' | 'now'>;

/** The placeholder `{filters}`, and the two bounds of its dates, whose comparisons are true if the bound is missing. */
export function filterPlaceholders(
  filters: DialectQuery['filters'],
  context: FilterContext,
  attr: string,
): readonly (readonly [string, PlaceholderValue])[] {
  const { date_from, date_to } = filters?.dateRange ?? {};
  const bound = (text: string | null | undefined, field: string): Expression | null =>
    text ? momentLiteralIn(text, context, `${attr}__dateRange__${field}`) : null;
  const bounds = {
    from: date_from === 'all' ? null : bound(date_from, 'date_from'),
    to: bound(date_to, 'date_to'),
  };
  return [
    ['filters.dateRange.from', orUnset(bounds.from)],
    ['filters.dateRange.to', orUnset(bounds.to)],
    [
      'filters',
      { kind: 'condition', conditionOf: (rows) => condition(filters, bounds, rows, context, attr) },
    ],
  ];
}

const orUnset = (expression: Expression | null): PlaceholderValue =>
  expression === null ? { kind: 'unset' } : { kind: 'expression', expression };

const times = { events: 'timestamp', sessions: '$start_timestamp', groups: 'created_at' } as const;

/** The upper bound is exclusive, as in PostHog for this placeholder. */
function condition(
  filters: DialectQuery['filters'],
  bounds: { readonly from: Expression | null; readonly to: Expression | null },
  { table, name }: PlaceholderTable,
  { project }: FilterContext,
  attr: string,
): Expression {
  const time = buildField(name, times[table]);
  const excludesTestAccounts = filters?.filterTestAccounts === true;
  if (excludesTestAccounts && table !== 'events')
    throw new QueryError(
      'not_supported',
      `Test accounts can only be excluded from events, not from ${table}.`,
      {
        attr: `${attr}__filterTestAccounts`,
      },
    );
  return (
    combineConditions('and', [
      bounds.from && buildExpression('{time} >= {bound}', { time, bound: bounds.from }),
      bounds.to && buildExpression('{time} < {bound}', { time, bound: bounds.to }),
      filtersCondition(filters?.properties, {
        scope: table,
        relation: name,
        attr: `${attr}__properties`,
        ...(table === 'groups' && { groups: { index: null, key: buildField(name, 'key') } }),
      }),
      excludesTestAccounts ? testAccountsCondition(project, 'events', name) : null,
    ]) ?? buildLiteral(true)
  );
}
