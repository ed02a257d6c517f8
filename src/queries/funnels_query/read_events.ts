import type { Expression, Select } from '@exportd/dialect/ast';
import {
  buildExpression,
  buildField,
  buildSelect,
  buildTable,
  combineConditions,
  type TemplateValues,
  withFrom,
} from '@exportd/dialect/ast_builders';
import { eventNames, seriesCondition } from '../nodes.ts';
import { breakdownExpression, normalizedUrl } from '../breakdowns.ts';
import {
  checkFilters,
  checkTestAccounts,
  filtersCondition,
  testAccountsCondition,
} from '../property_filters.ts';
import { rangeCondition, resolveRange } from '../dates.ts';
import type { DialectReader } from '../dialect_reader.ts';
import { parseExpressionAt } from '../expressions.ts';
import { QueryError } from '../query_errors.ts';
import type { QueryProject } from '../query_kind.ts';
import type { FunnelContext, FunnelPlan, PlannedExclusion } from './plan.ts';
import { type FunnelRows, passThrough, selectFrom, withAttribution, withEntryIntervals } from './rows.ts';

/**
 * The events of a funnel, one row each, with the columns `_actor`, `_at` and `_steps` (one bit for each definition that
 * the event matches, and one higher bit if it matches none), and if needed `_barred` (one bit for each step that the
 * event must not precede), `_id`, `_own` (the event's breakdown value, '' for none) and `_bucket` (its interval).
 * @throws QueryError
 */
function readEvents(plan: FunnelPlan, about: FunnelContext): Select {
  const { query, definitions, exclusions } = plan;
  const range = resolveRange(query.dateRange, query.interval, about);
  const conditionOf = ({ node, attr }: FunnelPlan['definitions'][number] | PlannedExclusion): Expression =>
    seriesCondition(node, attr, about.project) ?? buildExpression('true');
  const stepConditions = definitions.map(conditionOf);
  const exclusionConditions = exclusions.map(conditionOf);
  const actor = actorOf(plan);
  const columns = [
    '{actor} as _actor',
    'timestamp as _at',
    `${stepBitsSql(plan)} as _steps`,
    ...(plan.hasIds ? ['uuid as _id'] : []),
    ...(exclusionConditions.length === 0 ? [] : [`${barredBitsSql(plan)} as _barred`]),
    ...(plan.attribution === null ? [] : ['{own} as _own']),
    ...(plan.splitsByEntry ? [`${bucketSql[query.interval]} as _bucket`] : []),
  ];
  const parts: TemplateValues = {
    actor,
    ...Object.fromEntries(stepConditions.map((condition, index) => [`met${index}`, condition])),
    ...Object.fromEntries(exclusionConditions.map((condition, index) => [`barring${index}`, condition])),
    ...(plan.attribution !== null && { own: ownValue(plan) }),
    condition:
      combineConditions('and', [
        rangeCondition(range),
        buildExpression('{actor} is not null', { actor }),
        hasStringActor(plan) ? buildExpression("{actor} != ''", { actor }) : null,
        ...(plan.order === 'strict'
          ? []
          : [
              eventNameCondition(plan, about),
              combineConditions('or', [...stepConditions, ...exclusionConditions]),
            ]),
        plan.cohort === null
          ? null
          : buildExpression('person_id in cohort {cohort}', { cohort: { value: plan.cohort } }),
        filtersCondition(query.properties, { scope: 'events', attr: 'query__properties' }),
        query.filterTestAccounts ? testAccountsCondition(about.project, 'events') : null,
      ]) ?? buildExpression('true'),
  };
  // OFFSET keeps PostgreSQL from computing the columns after the sort, which would then carry whole events.
  const select = buildSelect(`select ${columns.join(', ')} from events where {condition} offset 0`, parts);
  return withFrom(select, buildTable('events', query.samplingFactor));
}

/** The condition that an event has one of the names, for the index; null if any name matches. */
function eventNameCondition(
  { definitions, exclusions }: FunnelPlan,
  { project }: FunnelContext,
): Expression | null {
  const names = [...definitions, ...exclusions].map(({ node, attr }) => eventNames(node, attr, project));
  const known = names.filter((one) => one !== null);
  if (known.length < names.length) return null;
  const different = [...new Set(known.flat())];
  const parts = Object.fromEntries(different.map((value, index) => [`name${index}`, { value }]));
  return buildExpression(`event in (${different.map((_, index) => `{name${index}}`).join(', ')})`, parts);
}

/** The start of an event's interval in the project's zone. */
const bucketSql = {
  minute: 'toStartOfMinute(timestamp)',
  hour: 'toStartOfHour(timestamp)',
  day: 'toStartOfDay(timestamp)',
  week: 'toDateTime(toStartOfWeek(timestamp))',
  month: 'toDateTime(toStartOfMonth(timestamp))',
} as const;

const hasStringActor = ({ query }: FunnelPlan): boolean =>
  query.aggregation_group_type_index !== null || query.funnelsFilter.funnelAggregateByHogQL !== null;

/** The expression of the funnel's actor. */
function actorOf({ query }: FunnelPlan): Expression {
  const { aggregation_group_type_index: group } = query;
  if (group !== null) return buildField(`$group_${group}`);
  const text = query.funnelsFilter.funnelAggregateByHogQL;
  if (text === null) return buildField('person_id');
  const expression = parseExpressionAt(text, 'query__funnelsFilter__funnelAggregateByHogQL');
  return buildExpression('toString({expression})', { expression });
}

function stepBitsSql({ definitions, isExclusive }: FunnelPlan): string {
  const none = 2 ** definitions.length;
  if (isExclusive)
    return `multiIf(${definitions.map((_, index) => `{met${index}}, ${2 ** index}`).join(', ')}, ${none})`;
  return definitions.map((_, index) => `if({met${index}}, ${2 ** index}, 0)`).join(' + ');
}

/** Bit n stands for step n. */
function barredBitsSql({ exclusions }: FunnelPlan): string {
  return exclusions
    .map(
      ({ before }, index) =>
        `if({barring${index}}, ${before.reduce((bits, step) => bits + 2 ** step, 0)}, 0)`,
    )
    .reduce((one, other) => `bitOr(${one}, ${other})`);
}

/** One value as a string; several as a JSON list, or '' if all of them are empty. */
function ownValue({ breakdowns }: FunnelPlan): Expression {
  const values = breakdowns.map((breakdown) => {
    const text = buildExpression("ifNull(toString({value}), '')", { value: breakdownExpression(breakdown) });
    return breakdown.normalize_url
      ? buildExpression("{text} = '' ? '' : {url}", { text, url: normalizedUrl(text) })
      : text;
  });
  const [first, ...others] = values;
  if (first !== undefined && others.length === 0) return first;
  const names = values.map((_, index) => `{v${index}}`).join(', ');
  const parts = Object.fromEntries(values.map((value, index) => [`v${index}`, value]));
  return buildExpression(`concat(${names}) = '' ? '' : toJSONString([${names}])`, parts);
}

/** The events of a funnel, partitioned into walks. @throws QueryError */
export function funnelRows(plan: FunnelPlan, about: FunnelContext): FunnelRows {
  const read = readEvents(plan, about);
  const extraColumns = [
    ...(plan.exclusions.length === 0 ? [] : ['_barred']),
    ...(plan.attribution === null ? [] : ['_own']),
    ...(plan.splitsByEntry ? ['_bucket'] : []),
  ];
  const ids = plan.hasIds ? ['_id'] : [];
  const rows: FunnelRows = plan.isExclusive
    ? { select: read, keys: ['_actor'], order: ['_at', '_steps', ...ids], extraColumns }
    : {
        select: selectFrom(read, [
          ...passThrough(['_actor', '_at', '_steps', ...ids, ...extraColumns]),
          `r._steps = 0 ? ${2 ** plan.definitions.length} : bitAnd(r._steps, -r._steps) as _low`,
        ]),
        keys: ['_actor'],
        order: ['_at', '_low', ...ids],
        extraColumns: ['_steps', ...extraColumns],
      };
  const attributed = withAttribution(plan, rows);
  return plan.walksByEntry ? withEntryIntervals(plan, attributed) : attributed;
}

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
    seriesCondition(node, attr, project);
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
