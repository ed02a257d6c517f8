import type { Expression, Select } from '../../dialect/ast.ts';
import {
  expressionOf,
  fieldOf,
  joined,
  reading,
  selectOf,
  tableNamed,
  type TemplateParts,
} from '../../dialect/build.ts';
import { rangeCondition, resolveRange } from '../dates/date_range.ts';
import { filtersCondition, testAccountsCondition } from '../filters/condition.ts';
import { seriesCondition } from '../series/condition.ts';
import { readExpression } from '../dialect_texts.ts';
import { brokenDownBy, normalizedUrl } from '../breakdowns/broken_down_by.ts';
import type { FunnelAbout } from './about.ts';
import type { FunnelPlan } from './plan.ts';

/**
 * The events that a funnel looks at, one row each, with columns `_actor`, `_at`, `_steps` (a bit for each definition that
 * the event meets, and one more than all of them where it meets none), and where they are needed `_barred` (a bit for
 * each step that the event must not stand before), `_id`, `_own` (the event's value of the breakdown, '' for none) and
 * `_bucket` (the interval that it lies in).
 * @throws QueryInvalid
 */
export function readEvents(plan: FunnelPlan, about: FunnelAbout): Select {
  const { query, definitions, exclusions } = plan;
  const range = resolveRange(query.dateRange, query.interval, about);
  const met = definitions.map(({ node, attr }) => seriesCondition(node, attr) ?? expressionOf('true'));
  const barring = exclusions.map(({ node, attr }) => seriesCondition(node, attr) ?? expressionOf('true'));
  const actor = actorOf(plan);
  const columns = [
    '{actor} as _actor',
    'timestamp as _at',
    `${stepsText(plan)} as _steps`,
    ...(plan.hasIds ? ['uuid as _id'] : []),
    ...(barring.length === 0 ? [] : [`${barredText(plan)} as _barred`]),
    ...(plan.attribution === null ? [] : ['{own} as _own']),
    ...(plan.byEntrance ? [`${bucketTexts[query.interval]} as _bucket`] : []),
  ];
  const parts: TemplateParts = {
    actor,
    ...Object.fromEntries(met.map((condition, index) => [`met${index}`, condition])),
    ...Object.fromEntries(barring.map((condition, index) => [`barring${index}`, condition])),
    ...(plan.attribution !== null && { own: ownValue(plan) }),
    wanted:
      joined('and', [
        rangeCondition(range),
        expressionOf('{actor} is not null', { actor }),
        isText(plan) ? expressionOf("{actor} != ''", { actor }) : null,
        ...(plan.order === 'strict' ? [] : [isNamed(plan), joined('or', [...met, ...barring])]),
        filtersCondition(query.properties, { scope: 'events', attr: 'query__properties' }),
        query.filterTestAccounts ? testAccountsCondition(about.project, 'events') : null,
      ]) ?? expressionOf('true'),
  };
  // OFFSET keeps PostgreSQL from computing the columns only behind the sort, which would carry whole events.
  const select = selectOf(`select ${columns.join(', ')} from events where {wanted} offset 0`, parts);
  return reading(select, tableNamed('events', query.samplingFactor));
}

/** That an event has one of the names that are asked for, which an index finds; null where any name will do. */
function isNamed({ definitions, exclusions }: FunnelPlan): Expression | null {
  const names = [...definitions, ...exclusions].map(({ node }) =>
    node.kind === 'EventsNode' ? (node.event ?? null) : null,
  );
  if (names.includes(null)) return null;
  const different = [...new Set(names)];
  const parts = Object.fromEntries(different.map((value, index) => [`name${index}`, { value }]));
  return expressionOf(`event in (${different.map((_, index) => `{name${index}}`).join(', ')})`, parts);
}

/** The first moment of an interval, in the project's zone. */
const bucketTexts = {
  minute: 'toStartOfMinute(timestamp)',
  hour: 'toStartOfHour(timestamp)',
  day: 'toStartOfDay(timestamp)',
  week: 'toDateTime(toStartOfWeek(timestamp))',
  month: 'toDateTime(toStartOfMonth(timestamp))',
} as const;

const isText = ({ query }: FunnelPlan): boolean =>
  query.aggregation_group_type_index !== null || query.funnelsFilter.funnelAggregateByHogQL !== null;

/** Who goes through the funnel. */
export function actorOf({ query }: FunnelPlan): Expression {
  const { aggregation_group_type_index: group } = query;
  if (group !== null) return fieldOf(`$group_${group}`);
  const text = query.funnelsFilter.funnelAggregateByHogQL;
  if (text === null) return fieldOf('person_id');
  const expression = readExpression(text, 'query__funnelsFilter__funnelAggregateByHogQL');
  return expressionOf('toString({expression})', { expression });
}

function stepsText({ definitions, isExclusive }: FunnelPlan): string {
  const none = 2 ** definitions.length;
  if (isExclusive)
    return `multiIf(${definitions.map((_, index) => `{met${index}}, ${2 ** index}`).join(', ')}, ${none})`;
  return definitions.map((_, index) => `if({met${index}}, ${2 ** index}, 0)`).join(' + ');
}

/** Bit n stands for step n. */
function barredText({ exclusions }: FunnelPlan): string {
  return exclusions
    .map(
      ({ before }, index) =>
        `if({barring${index}}, ${before.reduce((bits, step) => bits + 2 ** step, 0)}, 0)`,
    )
    .reduce((one, other) => `bitOr(${one}, ${other})`);
}

/** One value as text; several as a JSON list, or '' where all of them are. */
function ownValue({ breakdowns }: FunnelPlan): Expression {
  const values = breakdowns.map((breakdown) => {
    const text = expressionOf("ifNull(toString({value}), '')", { value: brokenDownBy(breakdown) });
    return breakdown.normalize_url
      ? expressionOf("{text} = '' ? '' : {url}", { text, url: normalizedUrl(text) })
      : text;
  });
  const [first, ...others] = values;
  if (first !== undefined && others.length === 0) return first;
  const names = values.map((_, index) => `{v${index}}`).join(', ');
  const parts = Object.fromEntries(values.map((value, index) => [`v${index}`, value]));
  return expressionOf(`concat(${names}) = '' ? '' : toJSONString([${names}])`, parts);
}
