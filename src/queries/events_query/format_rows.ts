import type { DialectReader } from '../dialect_reader.ts';
import { displayName } from '../persons/display_name.ts';
import { eventPersons } from './event_persons.ts';
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
  const ids = ofPersons.flatMap(({ from }) => rows.map((row) => actorAt(row, from).personId));
  const persons = await eventPersons(reader, ids);
  return rows.map((row) =>
    columnRanges(entries).map(({ format, from, to }) => {
      if (format === 'value') return row[from];
      if (format === 'event') return formatEvent(row.slice(from, to));
      const { distinctId: distinct_id, personId } = actorAt(row, from);
      const person = personId === null ? undefined : persons.get(personId);
      if (format === 'person') return person ? { ...person, distinct_id } : { distinct_id };
      const display_name = displayName(person?.properties ?? {}, [distinct_id], distinct_id);
      return { display_name, id: personId };
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

/** The distinct id and the person of an event. */
const actorAt = (
  row: Row,
  at: number,
): { readonly distinctId: string; readonly personId: string | null } => ({
  distinctId: row[at] as string,
  personId: row[at + 1] as string | null,
});

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
