import type { PropertyFilters } from '../../../src/filters/schema.ts';
import { matchesFilters, textOf } from '../filters/reference_filters.ts';
import type { JsonValue } from '../../../src/domain/event.ts';

// A reference implementation of ActorsQuery without a source, over persons in memory.

export interface ReferencePerson {
  readonly id: string;
  readonly properties: Readonly<Record<string, JsonValue>>;
  readonly created_at: string;
  readonly is_deleted: boolean;
  readonly distinct_ids: readonly string[];
}

export interface ReferenceQuery {
  readonly select: readonly string[];
  readonly search: string | null;
  readonly properties: PropertyFilters | null;
  readonly orderBy: readonly string[] | null;
  readonly limit: number;
  readonly offset: number;
}

const property = (person: ReferencePerson, key: string): string | null =>
  textOf(person.properties[key] ?? null);
const formatTime = (time: string): string => time.replace('.000Z', 'Z');

const formatPerson = ({ id, properties, created_at, distinct_ids }: ReferencePerson) => ({
  id,
  properties,
  is_identified: null,
  created_at: formatTime(created_at),
  distinct_ids: [...distinct_ids].sort(),
});

const displayName = (person: ReferencePerson): string => {
  const [name] = ['email', 'name']
    .map((key) => property(person, key))
    .filter((text) => text !== null && text !== '');
  return name ?? [...person.distinct_ids].sort()[0] ?? person.id;
};

/** The entries of `select` in random queries. */
const columns: Readonly<Record<string, (person: ReferencePerson) => unknown>> = {
  person: formatPerson,
  actor: formatPerson,
  id: ({ id }) => id,
  created_at: ({ created_at }) => formatTime(created_at),
  'person.$delete': () => 1,
  person_display_name: (person) => ({ display_name: displayName(person), id: person.id }),
  'properties.plan': (person) => property(person, 'plan'),
  'properties.name -- Name': (person) => property(person, 'name'),
  "concat(properties.plan, '!')": (person) => `${property(person, 'plan') ?? ''}!`,
  'person.properties.plan': (person) => property(person, 'plan'),
};
export const columnNames = Object.keys(columns);

/** The sort keys: one for each entry of `orderBy`; columns that show actors sort by the id. */
const keys: Readonly<Record<string, (person: ReferencePerson) => string | null>> = {
  person: (person) => property(person, 'email'),
  id: ({ id }) => id,
  created_at: ({ created_at }) => created_at,
  'properties.plan': (person) => property(person, 'plan'),
  'properties.name': (person) => property(person, 'name'),
};
export const orderNames = Object.keys(keys);

const ofColumns: Readonly<Record<string, (person: ReferencePerson) => string | null>> = {
  ...keys,
  person: ({ id }) => id,
  actor: ({ id }) => id,
  person_display_name: ({ id }) => id,
  'properties.name -- Name': (person) => property(person, 'name'),
  "concat(properties.plan, '!')": (person) => `${property(person, 'plan') ?? ''}!`,
  'person.properties.plan': (person) => property(person, 'plan'),
};

/** Compares strings by bytes, with nulls last in both directions. */
function compare(one: string | null, other: string | null, descending: boolean): number {
  if (one === null || other === null) return Number(one === null) - Number(other === null);
  const order = Buffer.compare(Buffer.from(one), Buffer.from(other));
  return descending ? -order : order;
}

type Order = readonly (readonly [key: (person: ReferencePerson) => string | null, descending: boolean])[];

function orderOf({ orderBy, select }: ReferenceQuery): Order {
  const byId = [({ id }: ReferencePerson) => id, false] as const;
  if (orderBy !== null)
    return [
      ...orderBy.map((text) => {
        const [name = '', direction] = text.split(' ');
        return [keys[name] ?? byId[0], direction === 'DESC'] as const;
      }),
      byId,
    ];
  if (select.includes('created_at')) return [[({ created_at }) => created_at, true], byId];
  const first = select.find((name) => name !== 'person.$delete');
  return first === undefined ? [byId] : [[ofColumns[first] ?? byId[0], false], byId];
}

const isFound = (person: ReferencePerson, search: string | null): boolean => {
  if (search === null) return true;
  const texts = [property(person, 'email'), property(person, 'name'), person.id, ...person.distinct_ids];
  return texts.some((text) => text?.toLowerCase().includes(search.toLowerCase()) === true);
};

/** The persons that match a query. */
const select = (
  persons: readonly ReferencePerson[],
  { search, properties }: ReferenceQuery,
): ReferencePerson[] =>
  persons.filter(
    (person) =>
      !person.is_deleted &&
      isFound(person, search) &&
      matchesFilters(
        {
          uuid: '',
          event: '',
          distinct_id: '',
          properties: {},
          person: person.properties,
          timestamp: new Date(0),
        },
        properties,
      ),
  );

/** The rows of a query without aggregates, and whether there are more. */
export function referenceActors(
  persons: readonly ReferencePerson[],
  query: ReferenceQuery,
): { readonly results: readonly (readonly unknown[])[]; readonly hasMore: boolean } {
  const order = orderOf(query);
  const sorted = select(persons, query).sort((one, other) =>
    order.reduce((so, [key, descending]) => so || compare(key(one), key(other), descending), 0),
  );
  const page = sorted.slice(query.offset, query.offset + query.limit);
  return {
    results: page.map((person) => query.select.map((name) => columns[name]?.(person))),
    hasMore: sorted.length > query.offset + query.limit,
  };
}

/** The number of persons for each plan, in descending order, then by plan. */
export function referenceCounts(
  persons: readonly ReferencePerson[],
  query: ReferenceQuery,
): readonly (readonly [string | null, number])[] {
  const counts = new Map<string | null, number>();
  for (const person of select(persons, query)) {
    const plan = property(person, 'plan');
    counts.set(plan, (counts.get(plan) ?? 0) + 1);
  }
  return [...counts].sort(([plan, count], [other, more]) => more - count || compare(plan, other, false));
}
