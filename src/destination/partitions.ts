/** The partitions of files: columns that are in the keys of files instead of in them. They depend on the interval alone. */

/** The columns that files can be partitioned by, in the order of their folders. */
export const partitionColumns = ['date', 'hour'] as const;
export type PartitionColumn = (typeof partitionColumns)[number];

/** Their values as variables of a prefix: the start of the interval in UTC. */
export const partitionTemplates: Readonly<Record<PartitionColumn, string>> = {
  date: '{year}-{month}-{day}',
  hour: '{hour}',
};

/** The values of the partitions of an interval, as its keys have them: `{date: '2026-11-01', hour: '07'}`. */
type Partition = Readonly<Partial<Record<PartitionColumn, string>>>;

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
