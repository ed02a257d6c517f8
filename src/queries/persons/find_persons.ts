import type { DialectReader } from '../dialect_reader.ts';
import { readByIds } from '../read_by_ids.ts';

/** A person in results. */
export interface PersonValue {
  readonly id: string;
  readonly properties: Readonly<Record<string, unknown>>;
  /** Not stored, therefore null. */
  readonly is_identified: null;
  readonly created_at: string;
  readonly distinct_ids: readonly string[];
}

const personsOfIds = 'select id, properties, created_at from persons where id in {ids}';
const distinctIdsOfIds = `select person_id, arraySort(groupArray(distinct_id)) from person_distinct_ids
  where person_id in {ids} group by person_id`;

/** Finds persons by their ids. Deleted and unknown persons are missing. */
export async function findPersons(
  reader: DialectReader,
  ids: readonly string[],
): Promise<ReadonlyMap<string, PersonValue>> {
  const uniqueIds = [...new Set(ids)];
  const persons = await readByIds(reader, personsOfIds, uniqueIds);
  const distinctIds = await readByIds(reader, distinctIdsOfIds, uniqueIds);
  const ofPerson = new Map(distinctIds as readonly (readonly [string, readonly string[]])[]);
  return new Map(
    persons.map((row) => {
      const [id, properties, created_at] = row as readonly [string, Record<string, unknown> | null, string];
      return [
        id,
        {
          id,
          properties: properties ?? {},
          is_identified: null,
          created_at,
          distinct_ids: ofPerson.get(id) ?? [],
        },
      ];
    }),
  );
}
