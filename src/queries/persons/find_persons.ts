import type { DialectReader, ReadOptions } from '../dialect_reader.ts';

/** A person as answers show it. */
export interface ShownPerson {
  readonly id: string;
  readonly properties: Readonly<Record<string, unknown>>;
  /** Not known here. */
  readonly is_identified: null;
  readonly created_at: string;
  readonly distinct_ids: readonly string[];
}

/** So many are looked up by one statement. */
const personsAtOnce = 2_000;

const personsOfIds = 'select id, properties, created_at from persons where id in {ids}';
const distinctIdsOfIds = `select person_id, arraySort(groupArray(distinct_id)) from person_distinct_ids
  where person_id in {ids} group by person_id`;

/** Persons by their ids; who is deleted or unknown has none. */
export async function findPersons(
  reader: DialectReader,
  ids: readonly string[],
): Promise<ReadonlyMap<string, ShownPerson>> {
  const found = new Map<string, ShownPerson>();
  const wanted = [...new Set(ids)];
  for (let at = 0; at < wanted.length; at += personsAtOnce) {
    const value = wanted.slice(at, at + personsAtOnce);
    // A value is put in behind the parser, which would read so many of them slowly.
    const options: ReadOptions = {
      placeholders: new Map([['ids', { kind: 'value', value }]]),
      rows: { fallback: value.length, most: value.length },
    };
    const persons = await reader.read(personsOfIds, options);
    const distinctIds = await reader.read(distinctIdsOfIds, options);
    const ofPerson = new Map(distinctIds.rows as readonly (readonly [string, readonly string[]])[]);
    for (const row of persons.rows) {
      const [id, properties, created_at] = row as readonly [string, Record<string, unknown> | null, string];
      found.set(id, {
        id,
        properties: properties ?? {},
        is_identified: null,
        created_at,
        distinct_ids: ofPerson.get(id) ?? [],
      });
    }
  }
  return found;
}
