/** Which partitions suit an export. */
import { CommandRejected } from '../domain/errors.ts';
import { nominalLengthMs } from '../domain/intervals.ts';
import type { ExportedColumn } from '../source/row_selection.ts';
import { rejectField } from './formats.ts';
import { partitionColumnsOf } from './keys.ts';

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
