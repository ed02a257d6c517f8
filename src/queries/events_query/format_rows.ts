import type { DialectReader } from '../dialect_reader.ts';
import { displayName } from '../persons/display_name.ts';
import { eventPersons, type EventActor, type EventPerson } from './event_persons.ts';
import type { EventEntry } from './select_entries.ts';
import { formatEvent, starType } from './star.ts';

type Row = readonly unknown[];

/** Converts rows of the statement to rows of the response, in which an event or a person is a single value. */
export async function formatRows(
  reader: DialectReader,
  entries: readonly EventEntry[],
  rows: readonly Row[],
): Promise<readonly Row[]> {
  const ofPersons = columnRanges(entries).filter(
    ({ format }) => format === 'person' || format === 'display_name',
  );
  const actors = ofPersons.flatMap(({ from }) => rows.map((row) => actorAt(row, from)));
  const persons = actors.length === 0 ? new Map<string, EventPerson>() : await eventPersons(reader, actors);
  return rows.map((row) =>
    columnRanges(entries).map(({ format, from, to }) => {
      if (format === 'value') return row[from];
      if (format === 'event') return formatEvent(row.slice(from, to));
      const [distinct_id] = actorAt(row, from);
      const person = persons.get(distinct_id);
      if (format === 'person') return person ? { ...person, distinct_id } : { distinct_id };
      const display_name = displayName(person?.properties ?? {}, [distinct_id], distinct_id);
      return { display_name, id: person?.uuid ?? null };
    }),
  );
}

/** The types of the response's columns, derived from those of the statement. */
export const columnTypes = (entries: readonly EventEntry[], types: readonly string[]): readonly string[] =>
  columnRanges(entries).map(({ format, from, to }) => {
    switch (format) {
      case 'value':
        return types[from] ?? '';
      case 'event':
        return starType(types.slice(from, to));
      case 'person':
        return 'JSON';
      case 'display_name':
        return 'Tuple(display_name String, id Nullable(UUID))';
    }
  });

const actorAt = (row: Row, at: number): EventActor => [row[at] as string, row[at + 1] as string | null];

/** The statement columns of each entry. */
function columnRanges(
  entries: readonly EventEntry[],
): readonly { readonly format: EventEntry['format']; readonly from: number; readonly to: number }[] {
  let at = 0;
  return entries.map(({ format, expressions }) => {
    const from = at;
    at += expressions.length;
    return { format, from, to: at };
  });
}
