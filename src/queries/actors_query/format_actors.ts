import type { DialectReader } from '../dialect_reader.ts';
import type { ActorKind } from './actor_kinds/actor_kind.ts';
import type { SelectEntry } from './select_entries.ts';

type Row = readonly unknown[];

/** Replaces ids in rows by their actors. The last column of each row is the actor's id. */
export async function formatActors(
  reader: DialectReader,
  kind: ActorKind,
  entries: readonly SelectEntry[],
  rows: readonly Row[],
): Promise<{ readonly results: readonly Row[]; readonly missing_actors_count: number }> {
  const ids = rows.map((row) => (row[entries.length] ?? null) as string | null);
  const found = await kind.find(
    reader,
    ids.filter((id) => id !== null),
  );
  const actors = ids.map((id) => (id === null ? undefined : found.get(id)));
  const withDistinctIds = entries.findIndex(({ column }) => column === 'event_distinct_ids');
  const results = rows.map((row, at) => {
    const distinctIds = withDistinctIds === -1 ? [] : (row[withDistinctIds] as readonly string[]);
    return entries.map(({ actorEntry: entry }, index) =>
      entry === null ? row[index] : entry.format(ids[at] ?? null, actors[at], distinctIds),
    );
  });
  return { results, missing_actors_count: actors.filter((actor) => actor === undefined).length };
}
