/**
 * The partitions of files: columns that are in the keys of files. Date and hour are those of the interval. A file of events may
 * have those of one name alone.
 */

/** What files can be partitioned by, in the order of their folders. */
export const partitionColumns = ['date', 'hour', 'event'] as const;
export type PartitionColumn = (typeof partitionColumns)[number];

/** The columns that readers find. That of the event has another name: its files keep `event`, which others may differ in. */
export const partitionNames = ['date', 'hour', 'event_partition'] as const;
type PartitionName = (typeof partitionNames)[number];

export const partitionNamesOf = (columns: readonly PartitionColumn[]): readonly PartitionName[] =>
  columns.map((column) => (column === 'event' ? 'event_partition' : column));

/** The values of partitions, as manifests have them: `{date: '2026-11-01', hour: '07', event_partition: '$pageview'}`. */
type Partition = Readonly<Partial<Record<PartitionName, string>>>;

/** The folders of the partitions that all files of an interval have, with variables of a prefix: its start in UTC. */
export const partitionFolders = (columns: readonly PartitionColumn[]): string[] =>
  columns.flatMap((column) => (column === 'event' ? [] : [`${column}=${templates[column]}`]));
const templates = { date: '{year}-{month}-{day}', hour: '{hour}' };

/** The partition of events whose names have none of their own, and of those without a name. */
export const [otherEvents, namelessEvents] = ['__other__', '__HIVE_DEFAULT_PARTITION__'];
/** Bytes of a folder. File systems allow 255. */
export const maxEventFolder = 240;

/** The folder of an event, escaped as in a URL, which readers of Hive partitions undo. */
export const eventFolder = (event: string): string =>
  `event_partition=${encodeURIComponent(event).replaceAll(/[!'()*~]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)}`;

/** Whether an event can have a partition of its own: its name fits in a folder, and means nothing else there. */
export const isPartitionable = (event: string): boolean =>
  event !== otherEvents &&
  event !== namelessEvents &&
  event.isWellFormed() &&
  eventFolder(event).length <= maxEventFolder;

/** The partitions of a stored config, or of one of a request that was validated. Those of former versions have none. */
export const partitionColumnsOf = (config: Readonly<Record<string, unknown>>): readonly PartitionColumn[] =>
  (config as { partition_by?: readonly PartitionColumn[] | null }).partition_by ?? [];

/** The values of the partitions of an interval. @param start its start, ISO 8601 */
export function partitionOf(start: string, columns: readonly PartitionColumn[]): Partition {
  const time = new Date(start).toISOString();
  const values: Partition = { date: time.slice(0, 10), hour: time.slice(11, 13) };
  return Object.fromEntries(
    columns.flatMap((column) => (column === 'event' ? [] : [[column, values[column]]])),
  );
}

/** The values of partitions that a key of a file has; none for a file from before its export had them. */
export const partitionIn = (key: string, columns: readonly PartitionColumn[]): Partition =>
  Object.fromEntries(
    partitionNamesOf(columns).flatMap((name) => {
      const segment = key.split('/').find((part) => part.startsWith(`${name}=`));
      return segment === undefined ? [] : [[name, unescaped(segment.slice(name.length + 1))]];
    }),
  );

/** The partition of events that a key of a file has; undefined without one. */
export const eventPartitionOf = (key: string): string | undefined =>
  partitionIn(key, ['event']).event_partition;

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * The values of the partitions of a file, as tables have them: an hour is a number, and no name is null.
 * @param start that of its interval, ISO 8601; undefined if only its key says it
 */
export const partitionValuesOf = (
  key: string,
  start: string | undefined,
  columns: readonly PartitionColumn[],
): Readonly<Record<string, string | null>> =>
  Object.fromEntries(
    Object.entries({
      ...(start !== undefined && partitionOf(start, columns)),
      ...partitionIn(key, columns),
    }).map(([name, value]) => [
      name,
      name === 'hour' ? String(Number(value)) : value === namelessEvents ? null : value,
    ]),
  );
