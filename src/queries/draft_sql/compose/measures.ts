import type { Expression } from '../../../dialect/ast.ts';
import { buildExpression, type TemplateValues } from '../../../dialect/ast_builders.ts';
import type { Measure } from '../draft.ts';
import type { QueryTable } from './query_table.ts';

interface Template {
  readonly name: string;
  readonly unconditional: string;
  /** Only over rows that match `{condition}`. */
  readonly conditional: string;
}

const ofNumber = (name: string, call: string): Template => {
  const [aggregate = '', setting = ''] = call.split(/(?=\()/);
  return {
    name,
    unconditional: `${aggregate}${setting}(toFloat({property}))`,
    conditional: `${aggregate}If${setting}(toFloat({property}), {condition})`,
  };
};

const ofSession = (name: string, aggregate: string): Template => ({
  name,
  unconditional: `${aggregate}($session_duration)`,
  conditional: `${aggregate}If($session_duration, {condition})`,
});

const templates: Readonly<Record<Measure['kind'], Template>> = {
  count: { name: 'total', unconditional: 'count()', conditional: 'countIf({condition})' },
  users: { name: 'users', unconditional: 'uniq(person_id)', conditional: 'uniqIf(person_id, {condition})' },
  sessions: {
    name: 'sessions',
    unconditional: 'uniq($session_id)',
    conditional: 'uniqIf($session_id, {condition})',
  },
  per_user: {
    name: 'per_user',
    unconditional: 'count() / nullIf(uniq(person_id), 0)',
    conditional: 'countIf({condition}) / nullIf(uniqIf(person_id, {condition}), 0)',
  },
  per_session: {
    name: 'per_session',
    unconditional: 'countIf($session_id is not null) / nullIf(uniq($session_id), 0)',
    conditional:
      'countIf($session_id is not null and {condition}) / nullIf(uniqIf($session_id, {condition}), 0)',
  },
  sessions_per_user: {
    name: 'sessions_per_user',
    unconditional: 'uniq($session_id) / nullIf(uniqIf(person_id, $session_id is not null), 0)',
    conditional:
      'uniqIf($session_id, {condition}) / nullIf(uniqIf(person_id, $session_id is not null and {condition}), 0)',
  },
  session_duration: ofSession('average_seconds', 'avg'),
  session_median: ofSession('median_seconds', 'median'),
  session_longest: ofSession('longest_seconds', 'max'),
  session_shortest: ofSession('shortest_seconds', 'min'),
  bounce_rate: {
    name: 'bounce_rate',
    unconditional: 'countIf($is_bounce) / nullIf(count(), 0)',
    conditional: 'countIf($is_bounce and {condition}) / nullIf(countIf({condition}), 0)',
  },
  average: ofNumber('average', 'avg'),
  sum: ofNumber('sum', 'sum'),
  minimum: ofNumber('minimum', 'min'),
  maximum: ofNumber('maximum', 'max'),
  median: ofNumber('median', 'median'),
  p90: ofNumber('p90', 'quantile(0.9)'),
  p95: ofNumber('p95', 'quantile(0.95)'),
  p99: ofNumber('p99', 'quantile(0.99)'),
  unique: {
    name: 'unique_values',
    unconditional: 'uniq({property})',
    conditional: 'uniqIf({property}, {condition})',
  },
};

/** The column name of a measure. */
export const measureName = ({ kind }: Measure): string => templates[kind].name;

/** A measure over all rows of a group, or over those that match a condition. */
export function measureOf(measure: Measure, table: QueryTable, condition: Expression | null): Expression {
  const { unconditional, conditional } = templates[measure.kind];
  const parts: TemplateValues = {
    ...('property' in measure ? { property: table.property(measure.property) } : {}),
    ...(condition === null ? {} : { condition }),
  };
  return buildExpression(condition === null ? unconditional : conditional, parts);
}
