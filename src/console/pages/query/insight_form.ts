import type { AnyQuery } from './query_run.ts';

/** A property filter of a form. */
export interface FilterForm {
  readonly owner: 'event' | 'person';
  readonly key: string;
  readonly operator: string;
  /** Several values of `exact` and `is_not` are separated by commas. */
  readonly value: string;
}

/** A series of a trend, or a step of a funnel. */
export interface SeriesForm {
  /** Empty for all events. */
  readonly event: string;
  readonly math: string;
  readonly mathProperty: string;
  readonly filters: readonly FilterForm[];
}

/** A TrendsQuery or a FunnelsQuery, as people fill it in. */
export interface InsightForm {
  readonly kind: 'TrendsQuery' | 'FunnelsQuery';
  readonly series: readonly SeriesForm[];
  readonly filters: readonly FilterForm[];
  readonly breakdown: { readonly owner: 'event' | 'person'; readonly property: string };
  /** Relative, such as `-7d`, or a date. */
  readonly dateFrom: string;
  /** A date; empty until now. */
  readonly dateTo: string;
  readonly interval: string;
  readonly display: string;
  readonly windowLength: string;
  readonly windowUnit: string;
}

/** What a series counts, and whether of the values of a property. */
export const maths: Readonly<Record<string, { readonly label: string; readonly isOfProperty: boolean }>> = {
  total: { label: 'events', isOfProperty: false },
  dau: { label: 'people', isOfProperty: false },
  weekly_active: { label: 'people within 7 days', isOfProperty: false },
  monthly_active: { label: 'people within 30 days', isOfProperty: false },
  unique_session: { label: 'sessions', isOfProperty: false },
  first_time_for_user: { label: 'people, the first time', isOfProperty: false },
  sum: { label: 'sum of', isOfProperty: true },
  avg: { label: 'average of', isOfProperty: true },
  min: { label: 'minimum of', isOfProperty: true },
  max: { label: 'maximum of', isOfProperty: true },
  median: { label: 'median of', isOfProperty: true },
  p75: { label: '75th percentile of', isOfProperty: true },
  p90: { label: '90th percentile of', isOfProperty: true },
  p95: { label: '95th percentile of', isOfProperty: true },
  p99: { label: '99th percentile of', isOfProperty: true },
};

/** The operators of a filter, and whether each has a value. */
export const operators: Readonly<Record<string, { readonly label: string; readonly hasValue: boolean }>> = {
  exact: { label: 'is', hasValue: true },
  is_not: { label: 'is not', hasValue: true },
  icontains: { label: 'contains', hasValue: true },
  not_icontains: { label: 'does not contain', hasValue: true },
  regex: { label: 'matches', hasValue: true },
  not_regex: { label: 'does not match', hasValue: true },
  gt: { label: '>', hasValue: true },
  gte: { label: '≥', hasValue: true },
  lt: { label: '<', hasValue: true },
  lte: { label: '≤', hasValue: true },
  is_set: { label: 'is set', hasValue: false },
  is_not_set: { label: 'is not set', hasValue: false },
};

export const displays: Readonly<Record<string, string>> = {
  ActionsLineGraph: 'lines',
  ActionsBar: 'bars',
  ActionsLineGraphCumulative: 'lines that add up',
  ActionsBarValue: 'one number for the whole time',
};

export const intervals = ['minute', 'hour', 'day', 'week', 'month'] as const;
export const windowUnits = ['second', 'minute', 'hour', 'day', 'week', 'month'] as const;

/** Ranges of time that end now. */
export const ranges: Readonly<Record<string, string>> = {
  '-24h': 'last 24 hours',
  '-7d': 'last 7 days',
  '-14d': 'last 14 days',
  '-30d': 'last 30 days',
  '-90d': 'last 90 days',
  '-180d': 'last 180 days',
  '-12m': 'last 12 months',
  mStart: 'this month',
  yStart: 'this year',
};

export const emptyFilter: FilterForm = { owner: 'event', key: '', operator: 'exact', value: '' };
export const emptySeries: SeriesForm = { event: '', math: 'total', mathProperty: '', filters: [] };

/** The form of a new query. */
export const newForm = (kind: InsightForm['kind'], event = ''): InsightForm => ({
  kind,
  series: kind === 'FunnelsQuery' ? [{ ...emptySeries, event }, emptySeries] : [{ ...emptySeries, event }],
  filters: [],
  breakdown: { owner: 'event', property: '' },
  dateFrom: '-7d',
  dateTo: '',
  interval: 'day',
  display: 'ActionsLineGraph',
  windowLength: '14',
  windowUnit: 'day',
});

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const objectIn = (value: unknown): Readonly<Record<string, unknown>> => (isObject(value) ? value : {});
const listIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const textIn = (value: unknown, otherwise: string): string =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : otherwise;
const ownerIn = (type: unknown): 'event' | 'person' => (type === 'person' ? 'person' : 'event');

/** Operators that compare with any of several values. */
const ofLists: ReadonlySet<string> = new Set(['exact', 'is_not']);
const ofNumbers: ReadonlySet<string> = new Set(['gt', 'gte', 'lt', 'lte']);
const isNumber = (text: string): boolean => text.trim() !== '' && Number.isFinite(Number(text));

/** The query that a form stands for. Filters without a property are left out. */
export function toQuery(form: InsightForm): AnyQuery {
  const { kind, series, filters, breakdown, dateFrom, dateTo, interval, display } = form;
  const isFunnel = kind === 'FunnelsQuery';
  return {
    kind,
    series: series.map(({ event, math, mathProperty, filters: own }) => ({
      kind: 'EventsNode',
      event: event === '' ? null : event,
      ...(!isFunnel && { math }),
      ...(!isFunnel && maths[math]?.isOfProperty && { math_property: mathProperty }),
      ...(own.length > 0 && { properties: toFilters(own) }),
    })),
    dateRange: { date_from: dateFrom, ...(dateTo !== '' && { date_to: dateTo }) },
    ...(!isFunnel && { interval }),
    ...(filters.length > 0 && { properties: toFilters(filters) }),
    ...(breakdown.property !== '' && {
      breakdownFilter: { breakdown: breakdown.property, breakdown_type: breakdown.owner },
    }),
    ...(isFunnel
      ? {
          funnelsFilter: {
            funnelWindowInterval: isNumber(form.windowLength) ? Number(form.windowLength) : form.windowLength,
            funnelWindowIntervalUnit: form.windowUnit,
          },
        }
      : { trendsFilter: { display } }),
  };
}

const toFilters = (filters: readonly FilterForm[]): readonly unknown[] =>
  filters.map(({ owner, key, operator, value }) => ({
    type: owner,
    key,
    operator,
    ...(operators[operator]?.hasValue !== false && { value: valueOf(operator, value) }),
  }));

function valueOf(operator: string, text: string): unknown {
  if (ofNumbers.has(operator) && isNumber(text)) return Number(text);
  if (!ofLists.has(operator) || !text.includes(',')) return text;
  return text.split(',').map((one) => one.trim());
}

/** What a form shows of a query, or the first field of the query that it cannot show. */
type ShownForm = { readonly form: InsightForm } | { readonly unshown: string };

/** The form of a query. */
export function toForm(query: AnyQuery): ShownForm {
  if (query.kind !== 'TrendsQuery' && query.kind !== 'FunnelsQuery') return { unshown: 'kind' };
  const base = newForm(query.kind);
  const { date_from, date_to } = objectIn(query.dateRange);
  const breakdown = objectIn(objectIn(reduced(query)).breakdownFilter);
  const [first] = listIn(breakdown.breakdowns).map(objectIn);
  const funnel = objectIn(query.funnelsFilter);
  const form: InsightForm = {
    ...base,
    series: listIn(query.series).map((value) => {
      const { event, math, math_property, properties } = objectIn(value);
      const known = textIn(math, 'total');
      return {
        event: textIn(event, ''),
        math: known in maths ? known : 'total',
        mathProperty: textIn(math_property, ''),
        filters: filtersOf(properties),
      };
    }),
    filters: filtersOf(query.properties),
    breakdown: { owner: ownerIn(first?.type), property: textIn(first?.property, '') },
    dateFrom: textIn(date_from, base.dateFrom),
    dateTo: /^\d{4}-\d\d-\d\d$/.test(textIn(date_to, '')) ? textIn(date_to, '') : '',
    interval: textIn(query.interval, base.interval),
    display: textIn(objectIn(query.trendsFilter).display, base.display),
    windowLength: textIn(funnel.funnelWindowInterval, base.windowLength),
    windowUnit: textIn(funnel.funnelWindowIntervalUnit, base.windowUnit),
  };
  if (form.dateTo !== '' && !/^\d{4}-\d\d-\d\d$/.test(form.dateFrom))
    return { unshown: 'dateRange.date_from' };
  const unshown =
    form.display in displays
      ? firstDifference(reduced(query), reduced(toQuery(form)), '')
      : 'trendsFilter.display';
  return unshown === null ? { form } : { unshown };
}

const filtersOf = (properties: unknown): readonly FilterForm[] =>
  listIn(reduced(properties)).map((item) => {
    const { type, key, operator, value } = objectIn(item);
    const known = textIn(operator, 'exact');
    return {
      owner: ownerIn(type),
      key: textIn(key, ''),
      operator: known in operators ? known : 'exact',
      value: Array.isArray(value) ? value.join(', ') : textIn(value, ''),
    };
  });

/** Fields that no result depends on. */
const ignored: ReadonlySet<string> = new Set(['response', 'version', 'tags', 'modifiers']);
/** Values that mean the same as none. */
const defaults: Readonly<Record<string, unknown>> = {
  math: 'total',
  interval: 'day',
  operator: 'exact',
  display: 'ActionsLineGraph',
  date_from: '-7d',
  funnelVizType: 'steps',
  funnelOrderType: 'ordered',
  funnelWindowInterval: 14,
  funnelWindowIntervalUnit: 'day',
  filterTestAccounts: false,
  explain: false,
  optionalInFunnel: false,
};

/**
 * A query without what changes nothing: nulls, empty lists and objects, defaults, groups of filters that a list says as well,
 * lists of one value, and one notation of breakdowns.
 */
function reduced(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reduced);
  if (!isObject(value)) return value;
  if (value.type === 'AND' && Array.isArray(value.values)) return conjunction(value.values);
  const { breakdown, breakdown_type, ...rest } = value;
  const hasBreakdown = typeof breakdown === 'string' && breakdown !== '';
  const fields = hasBreakdown
    ? { ...rest, breakdowns: [{ property: breakdown, type: breakdown_type }] }
    : value;
  const kept = Object.entries(fields).flatMap(([name, inner]): [string, unknown][] => {
    const isName = name === 'name' && inner === value.event;
    const isEvent = name === 'type' && inner === 'event';
    const isNode = name === 'kind' && inner === 'EventsNode';
    if (ignored.has(name) || isName || isEvent || isNode || inner === defaults[name]) return [];
    const small: unknown = name === 'value' && listIn(inner).length === 1 ? listIn(inner)[0] : reduced(inner);
    const isEmpty =
      small === null || small === undefined || (typeof small === 'object' && Object.keys(small).length === 0);
    return isEmpty ? [] : [[name, small]];
  });
  return Object.fromEntries(kept);
}

/** The filters of a group, all of which must match. */
const conjunction = (values: readonly unknown[]): readonly unknown[] =>
  values.flatMap((value): readonly unknown[] => {
    const inner = reduced(value);
    return Array.isArray(inner) ? listIn(inner) : [inner];
  });

/** The path of the first field of one value that the other has not, or has otherwise; null if they are equal. */
function firstDifference(one: unknown, other: unknown, path: string): string | null {
  if (Array.isArray(one) && Array.isArray(other)) {
    for (let index = 0; index < Math.max(one.length, other.length); index++) {
      const found = firstDifference(one[index], other[index], `${path}[${index}]`);
      if (found !== null) return found;
    }
    return null;
  }
  if (isObject(one ?? other) && isObject(other ?? one)) {
    const [left, right] = [objectIn(one), objectIn(other)];
    for (const name of new Set([...Object.keys(left), ...Object.keys(right)])) {
      const found = firstDifference(left[name], right[name], path === '' ? name : `${path}.${name}`);
      if (found !== null) return found;
    }
    return null;
  }
  return one === other ? null : path;
}
