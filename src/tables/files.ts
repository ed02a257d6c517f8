/** The files of a table as exportd knows them: keys of the bucket, and the intervals that they were added for. */
import { type PartitionColumn, partitionOf } from '../destination/partitions.ts';
import type { TableStore } from './table_store.ts';
import type { CompletedFile } from '../domain/exported_files.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { type AddAction, encodePath } from './actions.ts';
import { statisticsColumn } from './schema.ts';
import type { TableState } from './state.ts';
import { tableError } from './table_error.ts';

/** A file of a table. */
export interface TableFile {
  readonly key: string;
  /** What the log says of it. */
  readonly add: AddAction;
  /** The interval that it was added for; null if exportd did not add it. */
  readonly interval: DataInterval | null;
}

/** A file that a table has to have. */
export interface WantedFile extends Pick<CompletedFile, 'key' | 'rows' | 'bytes' | 'first' | 'last'> {
  readonly generation: number;
  readonly interval: DataInterval;
  /** Whether `first` and `last` are the sort keys of columns that the file has. */
  readonly hasKeys: boolean;
}

/** The files of a table. */
export const filesOf = ({ root }: Pick<TableStore, 'root'>, { live }: TableState): TableFile[] =>
  [...live].map(([path, add]) => ({ key: `${root}/${path}`, add, interval: intervalOf(add.tags) }));

/** Tags of files that exportd added: their interval. */
const [startTag, endTag] = ['exportd_interval_start', 'exportd_interval_end'];

function intervalOf(tags: AddAction['tags']): DataInterval | null {
  const [start, end] = [tags?.[startTag], tags?.[endTag]];
  return typeof start === 'string' && typeof end === 'string' ? { start, end } : null;
}

/**
 * The action that adds a file.
 * @param now milliseconds since 1970
 * @throws DestinationError `TableChanged` when the file is not below the folder of the table
 */
export function addOf(store: TableStore, file: WantedFile, now: number): AddAction {
  const { key, bytes, generation, interval } = file;
  if (!key.startsWith(`${store.root}/`))
    throw tableError('TableChanged', `The file ${key} is not in the folder of the table ${store.name}.`);
  return {
    path: encodePath(key.slice(store.root.length + 1)),
    partitionValues: partitionValuesOf(interval.start, store.partitionColumns),
    size: bytes,
    modificationTime: now,
    dataChange: true,
    stats: statisticsOf(file),
    tags: {
      [startTag]: interval.start,
      [endTag]: interval.end,
      exportd_generation: String(generation),
    },
  };
}

/** The values of partitions as tables have them: an hour is a number. */
const partitionValuesOf = (
  start: string,
  columns: readonly PartitionColumn[],
): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(partitionOf(start, columns)).map(([name, value]) => [
      name,
      name === 'hour' ? String(Number(value)) : value,
    ]),
  );

const usualTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

/** The statistics of a file. Its rows are sorted by insertion time, so readers skip it by that. */
function statisticsOf({ rows, first, last, hasKeys }: WantedFile): string {
  const isUsual = first && last && usualTime.test(first.inserted_at) && usualTime.test(last.inserted_at);
  if (!hasKeys || !isUsual) return JSON.stringify({ numRecords: rows });
  return JSON.stringify({
    numRecords: rows,
    minValues: { [statisticsColumn]: first.inserted_at },
    maxValues: { [statisticsColumn]: last.inserted_at },
    nullCount: { [statisticsColumn]: 0 },
  });
}

/** How many rows the statistics of a file say that it has; null if they do not. */
export function rowsIn(statistics: string | null | undefined): number | null {
  try {
    const { numRecords } = JSON.parse(statistics ?? '{}') as { readonly numRecords?: unknown };
    return typeof numRecords === 'number' ? numRecords : null;
  } catch {
    return null;
  }
}
