import type { DialectReader } from '../dialect_reader.ts';
import { readByIds } from '../read_by_ids.ts';

/** A person in results of events. */
export interface EventPerson {
  readonly uuid: string;
  readonly created_at: string;
  readonly properties: Readonly<Record<string, unknown>>;
}

/** The actor of an event: its distinct id and the person that the event names. */
export type EventActor = readonly [distinctId: string, personId: string | null];

/**
 * Finds the persons of events: the current owner of the distinct id, else the person that the event names. Keyed by
 * distinct id.
 */
export async function eventPersons(
  reader: DialectReader,
  actors: readonly EventActor[],
): Promise<ReadonlyMap<string, EventPerson>> {
  const found = new Map<string, EventPerson>();
  const distinctIds = [...new Set(actors.map(([distinctId]) => distinctId))];
  const ofDistinctId = await findBy(
    reader,
    `select distinct_id, person.id, person.created_at, person.properties
     from person_distinct_ids where distinct_id in {ids}`,
    distinctIds,
  );
  for (const [distinctId, person] of ofDistinctId) found.set(distinctId, person);
  const others = actors.filter(([distinctId]) => !found.has(distinctId));
  const ids = [...new Set(others.flatMap(([, id]) => (id === null ? [] : [id])))];
  const named = new Map(
    await findBy(
      reader,
      'select toString(id), id, created_at, properties from persons where id in {ids}',
      ids,
    ),
  );
  for (const [distinctId, id] of others) {
    const person = id === null ? undefined : named.get(id);
    if (person !== undefined) found.set(distinctId, person);
  }
  return found;
}

type Row = readonly [
  key: string,
  uuid: string,
  createdAt: string | null,
  properties: EventPerson['properties'] | null,
];

/** Persons by the key of the lookup. Rows without a time are of deleted persons. */
async function findBy(
  reader: DialectReader,
  query: string,
  ids: readonly string[],
): Promise<readonly (readonly [string, EventPerson])[]> {
  const rows = (await readByIds(reader, query, ids)) as unknown as readonly Row[];
  return rows.flatMap(([key, uuid, created_at, properties]): (readonly [string, EventPerson])[] =>
    created_at === null ? [] : [[key, { uuid, created_at, properties: properties ?? {} }]],
  );
}
