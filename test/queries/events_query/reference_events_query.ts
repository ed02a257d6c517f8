import type { JsonValue } from '../../../src/domain/event.ts';
import type { PropertyFilters } from '../../../src/filters/schema.ts';
import { matchesFilters, textOf as textOfValue, type ReferenceEvent } from '../filters/reference_filters.ts';

// A reference implementation of EventsQuery over rows in memory.

type Cell = string | number | null;

/** Columns of one event, by their text in the query. */
export const referenceColumns = {
  event: ({ event }) => event,
  distinct_id: ({ distinct_id }) => distinct_id,
  uuid: ({ uuid }) => uuid,
  timestamp: ({ timestamp }) => formatTime(timestamp),
  'properties.plan': ({ properties }) => textOf(properties.plan),
  'toFloat(properties.amount) AS number': ({ properties }) => numberOf(properties.amount),
  'person.properties.plan -- Plan': ({ person }) => textOf(person?.plan),
} satisfies Readonly<Record<string, (event: ReferenceEvent) => Cell>>;

/** Aggregates of events. */
export const referenceAggregates = {
  'count()': (events) => events.length,
  'uniq(distinct_id)': (events) => new Set(events.map(({ distinct_id }) => distinct_id)).size,
  "countIf(event = 'bought')": (events) => events.filter(({ event }) => event === 'bought').length,
  // Without events it is the epoch.
  'max(timestamp) AS latest': (events) =>
    events
      .map(({ timestamp }) => formatTime(timestamp))
      .reduce((one, other) => (one > other ? one : other), '1970-01-01T00:00:00Z'),
} satisfies Readonly<Record<string, (events: readonly ReferenceEvent[]) => Cell>>;

export const referenceConditions = {
  "event != 'bought'": ({ event }) => event !== 'bought',
  "distinct_id in ('d1', 'd2', 'd7')": ({ distinct_id }) => ['d1', 'd2', 'd7'].includes(distinct_id),
  "properties.plan = 'a' or properties.amount is null": ({ properties }) =>
    properties.plan === 'a' || textOf(properties.amount) === null,
} satisfies Readonly<Record<string, (event: ReferenceEvent) => boolean>>;

export interface ReferenceQuery {
  readonly columns: readonly (keyof typeof referenceColumns)[];
  readonly aggregates: readonly (keyof typeof referenceAggregates)[];
  readonly conditions: readonly (keyof typeof referenceConditions)[];
  readonly isOften: boolean;
  readonly properties: PropertyFilters | null;
  readonly event: string | null;
  readonly after: Date;
  readonly before: Date;
  readonly limit: number;
  readonly offset: number;
}

/** Rows, and whether there are more. */
export function referenceResult(
  events: readonly ReferenceEvent[],
  query: ReferenceQuery,
): { readonly results: readonly (readonly Cell[])[]; readonly hasMore: boolean } {
  const { columns, aggregates, conditions, isOften, properties, event, limit, offset } = query;
  const found = events.filter(
    (one) =>
      one.timestamp > query.after &&
      one.timestamp < query.before &&
      (event === null || one.event === event) &&
      matchesFilters(one, properties) &&
      conditions.every((condition) => referenceConditions[condition](one)),
  );
  const rows =
    aggregates.length === 0 && !isOften
      ? eachOf(found, columns)
      : groupsOf(found, columns, aggregates, isOften);
  return { results: rows.slice(offset, offset + limit), hasMore: rows.length > offset + limit };
}

function eachOf(
  events: readonly ReferenceEvent[],
  columns: ReferenceQuery['columns'],
): readonly (readonly Cell[])[] {
  const at = columns.indexOf('timestamp');
  const by = Math.max(at, 0);
  return events
    .map((event) => ({ event, row: columns.map((column) => referenceColumns[column](event)) }))
    .sort(
      (one, other) =>
        compare(one.row[by] ?? null, other.row[by] ?? null, at !== -1) ||
        compare(one.event.uuid, other.event.uuid),
    )
    .map(({ row }) => row);
}

function groupsOf(
  events: readonly ReferenceEvent[],
  columns: ReferenceQuery['columns'],
  aggregates: ReferenceQuery['aggregates'],
  isOften: boolean,
): readonly (readonly Cell[])[] {
  const groups = new Map<string, { readonly keys: readonly Cell[]; readonly fields: ReferenceEvent[] }>();
  if (columns.length === 0) groups.set('[]', { keys: [], fields: [] });
  for (const event of events) {
    const keys = columns.map((column) => referenceColumns[column](event));
    const group = groups.get(JSON.stringify(keys)) ?? { keys, fields: [] };
    group.fields.push(event);
    groups.set(JSON.stringify(keys), group);
  }
  const counted = Math.max(aggregates.indexOf('count()'), 0);
  const time = columns.indexOf('timestamp');
  const by = aggregates.length > 0 ? columns.length + counted : Math.max(time, 0);
  const isDescending = aggregates.length > 0 || time !== -1;
  return [...groups.values()]
    .filter(({ fields }) => !isOften || fields.length > 1)
    .map(({ keys, fields }) => [...keys, ...aggregates.map((name) => referenceAggregates[name](fields))])
    .sort((one, other) => {
      const first = compare(one[by] ?? null, other[by] ?? null, isDescending);
      return first || columns.reduce((less, _, at) => less || compare(one[at] ?? null, other[at] ?? null), 0);
    });
}

/** Nulls are last in both directions. */
function compare(one: Cell, other: Cell, isDescending = false): number {
  if (one === other) return 0;
  if (one === null || other === null) return one === null ? 1 : -1;
  return one < other === isDescending ? 1 : -1;
}

const textOf = (value: JsonValue | undefined): string | null => textOfValue(value ?? null);

const numberOf = (value: JsonValue | undefined): number | null => {
  const text = textOf(value);
  return text !== null && /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : null;
};

/** Formats a time with whole seconds in UTC. */
const formatTime = (time: Date): string => time.toISOString().replace('.000Z', 'Z');
