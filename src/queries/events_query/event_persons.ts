import type { DialectReader } from '../dialect_reader.ts';
import { readByIds } from '../read_by_ids.ts';

/** A person in results of events. */
export interface EventPerson {
  readonly uuid: string;
  readonly created_at: string;
  readonly properties: Readonly<Record<string, unknown>>;
}

type Row = readonly [id: string, createdAt: string, properties: EventPerson['properties'] | null];

const personsOfIds = 'select id, created_at, properties from persons where id in {ids}';

/** Finds the persons of events by their ids. Deleted persons are missing. */
export async function eventPersons(
  reader: DialectReader,
  ids: readonly (string | null)[],
): Promise<ReadonlyMap<string, EventPerson>> {
  const known = [...new Set(ids)].filter((id) => id !== null);
  const rows = (await readByIds(reader, personsOfIds, known)) as unknown as readonly Row[];
  return new Map(
    rows.map(([uuid, created_at, properties]) => [uuid, { uuid, created_at, properties: properties ?? {} }]),
  );
}
