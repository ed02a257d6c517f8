/** The partitions of files: their columns and values, and which suit an export. */
import { CommandRejected } from '../domain/errors.ts';
import { nominalLengthMs } from '../domain/intervals.ts';
import type { ExportedColumn } from '../source/row_selection.ts';
import { rejectField } from './config_fields.ts';

/** The columns that files can be partitioned by, in the order of their folders. They depend on the interval alone. */
export const partitionColumns = ['date', 'hour'] as const;
export type PartitionColumn = (typeof partitionColumns)[number];

/** The values of partitions, as keys and manifests have them: `{date: '2026-11-01', hour: '07'}`. */
type Partition = Readonly<Partial<Record<PartitionColumn, string>>>;

/** Their values in the template of a folder: the start of the interval in UTC. */
export const partitionTemplates = { date: '{year}-{month}-{day}', hour: '{hour}' };

/** The partitions of a stored config, or of one of a request that was validated. Those of former versions have none. */
export const partitionColumnsOf = (config: Readonly<Record<string, unknown>>): readonly PartitionColumn[] =>
  (config as { partition_by?: readonly PartitionColumn[] | null }).partition_by ?? [];

/** The values of the partitions of an interval. @param start its start, ISO 8601 */
export function partitionOf(start: string, columns: readonly PartitionColumn[]): Partition {
  const time = new Date(start).toISOString();
  const values = { date: time.slice(0, 10), hour: time.slice(11, 13) };
  return Object.fromEntries(columns.map((column) => [column, values[column]]));
}

/** The values of partitions that a key of a file has; none for a file from before its export had them. */
export const partitionIn = (key: string, columns: readonly PartitionColumn[]): Partition =>
  Object.fromEntries(
    columns.flatMap((column) => {
      const segment = key.split('/').find((part) => part.startsWith(`${column}=`));
      return segment === undefined ? [] : [[column, segment.slice(column.length + 1)]];
    }),
  );

/** The longest interval that a partition can tell from others, in milliseconds, and its name. */
const longestIntervals = { date: [86_400_000, 'a day'], hour: [3_600_000, 'an hour'] } as const;

/**
 * Rejects partitions that do not suit an export: its intervals are longer, or its files have a column of that name.
 * @throws CommandRejected with the field
 */
export function rejectPartitions(
  config: Readonly<Record<string, unknown>>,
  {
    interval,
    columns,
    hasQuery,
  }: { interval: string; columns: readonly ExportedColumn[]; hasQuery: boolean },
): void {
  for (const partition of partitionColumnsOf(config)) {
    const [longest, name] = longestIntervals[partition];
    if (nominalLengthMs(interval) > longest)
      throw rejectField(
        'partition_by',
        `The partition ${partition} needs intervals of at most ${name}, and those of the export are a ${interval}: all rows of one would be in the partition of its start. ${partition === 'hour' ? "Use ['date'], or a shorter interval." : 'Use a shorter interval, or no partitions.'}`,
      );
    const taken = columns.find((column) => column.name.toLowerCase() === partition);
    if (!taken) continue;
    const detail = `The files have a column ${taken.name}, which is the name of a partition: readers would find two. ${hasQuery ? `Rename the column in the query, such as ${taken.name} as ${taken.name}_1` : 'Leave the column out with a query'}, or remove the partition from partition_by.`;
    throw hasQuery
      ? new CommandRejected('invalid_input', detail, 'dialect_query')
      : rejectField('partition_by', detail);
  }
}
