import type { DialectReader } from '../dialect_reader.ts';
import { displayName } from '../persons/display_name.ts';
import { findPersons, type ShownPerson } from '../persons/find_persons.ts';
import type { SelectEntry } from './select_entries.ts';

type Row = readonly unknown[];

/** Rows with persons in the place of their ids; the actor's id stands behind the columns. */
export async function showActors(
  reader: DialectReader,
  entries: readonly SelectEntry[],
  rows: readonly Row[],
): Promise<{ readonly results: readonly Row[]; readonly missing_actors_count: number }> {
  const idOf = (row: Row): string | null => (row[entries.length] ?? null) as string | null;
  const ids = rows.map(idOf).filter((id) => id !== null && isUuid.test(id)) as string[];
  const persons = await findPersons(reader, ids);
  const withDistinctIds = entries.findIndex(({ column }) => column === 'event_distinct_ids');
  const results = rows.map((row) => {
    const id = idOf(row);
    const person = id === null ? undefined : persons.get(id);
    const distinctIds = withDistinctIds === -1 ? [] : (row[withDistinctIds] as readonly string[]);
    return entries.map(({ shows }, index) => {
      if (shows === 'person') return person ?? unknownPerson(id, distinctIds);
      if (shows === 'display_name') return displayed(id, person, distinctIds);
      return row[index];
    });
  });
  const missing = rows.filter((row) => !persons.has(idOf(row) ?? '')).length;
  return { results, missing_actors_count: missing };
}

/** Sources of the dialect may call anything an id. */
const isUuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const unknownPerson = (id: string | null, distinctIds: readonly string[]) =>
  distinctIds.length > 0 ? { id, distinct_ids: distinctIds } : { id };

const displayed = (id: string | null, person: ShownPerson | undefined, distinctIds: readonly string[]) => ({
  display_name:
    id === null ? null : displayName(person?.properties ?? {}, person?.distinct_ids ?? distinctIds, id),
  id,
});
