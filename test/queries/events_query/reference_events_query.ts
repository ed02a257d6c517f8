import type { JsonValue } from '../../../src/domain/json_value.ts';
import type { PropertyFilters } from '../../../src/queries/filters/schema.ts';
import { meets, textOf as textOfValue, type PlainEvent } from '../filters/reference_filters.ts';

// What the kind EventsQuery means, written down a second time: over rows in memory.

type Cell = string | number | null;

/** A column of one event, by the text that a query asks for it with. */
export const plainColumns = {
  event: ({ event }) => event,
  distinct_id: ({ distinct_id }) => distinct_id,
  uuid: ({ uuid }) => uuid,
  timestamp: ({ timestamp }) => shownTime(timestamp),
  'properties.plan': ({ properties }) => textOf(properties.plan),
  'toFloat(properties.amount) AS number': ({ properties }) => numberOf(properties.amount),
  'person.properties.plan -- Plan': ({ person }) => textOf(person?.plan),
} satisfies Readonly<Record<string, (event: PlainEvent) => Cell>>;

/** A column of many events. */
export const plainAggregates = {
  'count()': (events) => events.length,
  'uniq(distinct_id)': (events) => new Set(events.map(({ distinct_id }) => distinct_id)).size,
  "countIf(event = 'bought')": (events) => events.filter(({ event }) => event === 'bought').length,
  // Over nothing it is the beginning of time.
  'max(timestamp) AS latest': (events) =>
    events
      .map(({ timestamp }) => shownTime(timestamp))
      .reduce((one, other) => (one > other ? one : other), '1970-01-01T00:00:00Z'),
} satisfies Readonly<Record<string, (events: readonly PlainEvent[]) => Cell>>;

export const plainConditions = {
  "event != 'bought'": ({ event }) => event !== 'bought',
  "distinct_id in ('d1', 'd2', 'd7')": ({ distinct_id }) => ['d1', 'd2', 'd7'].includes(distinct_id),
  "properties.plan = 'a' or properties.amount is null": ({ properties }) =>
    properties.plan === 'a' || textOf(properties.amount) === null,
} satisfies Readonly<Record<string, (event: PlainEvent) => boolean>>;

export interface PlainQuery {
  readonly columns: readonly (keyof typeof plainColumns)[];
  readonly aggregates: readonly (keyof typeof plainAggregates)[];
  readonly conditions: readonly (keyof typeof plainConditions)[];
  readonly isOften: boolean;
  readonly properties: PropertyFilters | null;
  readonly event: string | null;
  readonly after: Date;
  readonly before: Date;
  readonly limit: number;
  readonly offset: number;
}

/** Rows and whether there are more. */
export function plainAnswer(
  events: readonly PlainEvent[],
  query: PlainQuery,
): { readonly results: readonly (readonly Cell[])[]; readonly hasMore: boolean } {
  const { columns, aggregates, conditions, isOften, properties, event, limit, offset } = query;
  const found = events.filter(
    (one) =>
      one.timestamp > query.after &&
      one.timestamp < query.before &&
      (event === null || one.event === event) &&
      meets(one, properties) &&
      conditions.every((condition) => plainConditions[condition](one)),
  );
  const rows =
    aggregates.length === 0 && !isOften
      ? eachOf(found, columns)
      : groupsOf(found, columns, aggregates, isOften);
  return { results: rows.slice(offset, offset + limit), hasMore: rows.length > offset + limit };
}

function eachOf(events: readonly PlainEvent[], columns: PlainQuery['columns']): readonly (readonly Cell[])[] {
  const at = columns.indexOf('timestamp');
  const by = Math.max(at, 0);
  return events
    .map((event) => ({ event, row: columns.map((column) => plainColumns[column](event)) }))
    .sort(
      (one, other) =>
        compare(one.row[by] ?? null, other.row[by] ?? null, at !== -1) ||
        compare(one.event.uuid, other.event.uuid),
    )
    .map(({ row }) => row);
}

function groupsOf(
  events: readonly PlainEvent[],
  columns: PlainQuery['columns'],
  aggregates: PlainQuery['aggregates'],
  isOften: boolean,
): readonly (readonly Cell[])[] {
  const groups = new Map<string, { readonly keys: readonly Cell[]; readonly members: PlainEvent[] }>();
  if (columns.length === 0) groups.set('[]', { keys: [], members: [] });
  for (const event of events) {
    const keys = columns.map((column) => plainColumns[column](event));
    const group = groups.get(JSON.stringify(keys)) ?? { keys, members: [] };
    group.members.push(event);
    groups.set(JSON.stringify(keys), group);
  }
  const counted = Math.max(aggregates.indexOf('count()'), 0);
  const time = columns.indexOf('timestamp');
  const by = aggregates.length > 0 ? columns.length + counted : Math.max(time, 0);
  const isDescending = aggregates.length > 0 || time !== -1;
  return [...groups.values()]
    .filter(({ members }) => !isOften || members.length > 1)
    .map(({ keys, members }) => [...keys, ...aggregates.map((name) => plainAggregates[name](members))])
    .sort((one, other) => {
      const first = compare(one[by] ?? null, other[by] ?? null, isDescending);
      return first || columns.reduce((less, _, at) => less || compare(one[at] ?? null, other[at] ?? null), 0);
    });
}

/** Nothing is last, whatever the direction. */
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

/** As answers in UTC show times of whole seconds. */
const shownTime = (time: Date): string => time.toISOString().replace('.000Z', 'Z');
