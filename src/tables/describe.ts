/** A table and its versions, for people. */
import { bounds } from '../config/bounds.ts';
import { DestinationError } from '../destination/destination.ts';
import type { TableStore } from '../destination/table_store.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { rowsIn } from './files.ts';
import { listLog, readActions, type Snapshot, summaryOf } from './log.ts';
import { shownText } from './metadata.ts';
import { fieldsOf } from './schema.ts';

/** What a table is. */
export interface TableDescription {
  readonly location: string;
  readonly version: number;
  readonly files: number;
  /** Null if not every file says how many it has. */
  readonly rows: number | null;
  readonly bytes: number;
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly partition_columns: readonly string[];
  readonly protocol: { readonly reader: number; readonly writer: number };
  /** The version of the newest checkpoint; null without one. */
  readonly checkpoint: number | null;
}

/** Describes the newest version of a table. */
export function describeTable(
  { name }: TableStore,
  { version, checkpoint, state }: Snapshot,
): TableDescription {
  let bytes = 0;
  let rows: number | null = 0;
  for (const { size, stats } of state.live.values()) {
    bytes += size;
    const counted = rowsIn(stats);
    rows = rows === null || counted === null ? null : rows + counted;
  }
  const columns = fieldsOf(state.metaData?.schemaString ?? '');
  return {
    location: name,
    version,
    checkpoint,
    files: state.live.size,
    rows,
    bytes,
    columns: columns.slice(0, bounds.queryColumns.max).map((column) => ({
      name: shownText(column.name),
      type: typeof column.type === 'string' ? shownText(column.type) : 'structure',
    })),
    partition_columns: (state.metaData?.partitionColumns ?? [])
      .map(shownText)
      .slice(0, bounds.queryColumns.max),
    protocol: {
      reader: state.protocol?.minReaderVersion ?? 0,
      writer: state.protocol?.minWriterVersion ?? 0,
    },
  };
}

/** A version of a table. */
export interface TableVersion {
  readonly version: number;
  /** When its object was written. */
  readonly committed_at: string;
  /** What wrote it; `unknown` if its object cannot be read. */
  readonly writer: 'run' | 'repair' | 'other' | 'unknown';
  /** What another writer calls itself and what it did. */
  readonly description: string | null;
  readonly run_id: string | null;
  readonly generation: number | null;
  readonly interval: DataInterval | null;
  readonly adds: number;
  readonly removes: number;
}

/** Commits that are read at a time. */
const maxReads = 8;

/** Reads versions, the newest first. @param page `before`: only versions before this one */
export async function readHistory(
  store: TableStore,
  { before, limit }: { readonly before: number | null; readonly limit: number },
  signal: AbortSignal,
): Promise<TableVersion[]> {
  const { commits } = await listLog(store, signal);
  const wanted = commits.filter(({ version }) => before === null || version < before).slice(-limit);
  const versions: TableVersion[] = [];
  for (let at = 0; at < wanted.length; at += maxReads)
    versions.push(
      ...(await Promise.all(
        wanted
          .slice(at, at + maxReads)
          .map(({ version, object }) => readVersion(store, version, object.modified_at, signal)),
      )),
    );
  return versions.reverse();
}

async function readVersion(
  store: TableStore,
  version: number,
  writtenAt: Date,
  signal: AbortSignal,
): Promise<TableVersion> {
  const known = { version, committed_at: writtenAt.toISOString() };
  const nothing = { description: null, run_id: null, generation: null, interval: null, adds: 0, removes: 0 };
  try {
    const found = await readActions(store, version, signal);
    if (!found) return { ...known, ...nothing, writer: 'unknown' };
    const { publication, repair_id, adds, removes } = summaryOf(found.actions);
    const info = found.actions.find(({ commitInfo }) => commitInfo)?.commitInfo;
    if (publication)
      return {
        ...known,
        ...nothing,
        writer: 'run',
        ...publication,
        adds,
        removes,
        interval: info?.interval ?? null,
      };
    if (repair_id !== null) return { ...known, ...nothing, writer: 'repair', adds, removes };
    const description = [info?.engineInfo, info?.operation].filter((part) => part !== undefined).join(', ');
    return {
      ...known,
      ...nothing,
      writer: 'other',
      adds,
      removes,
      description: description === '' ? null : shownText(description),
    };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof DestinationError) || error.transient) throw error;
    return { ...known, ...nothing, writer: 'unknown', description: error.message };
  }
}
