/** A table and its versions, for people. */
import { bounds } from '../config/bounds.ts';
import { DestinationError } from '../destination/destination.ts';
import { type ReadingBudget, readingBudget } from '../destination/folder_store.ts';
import type { TableStore } from './table_store.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { foreignParser } from '../foreign_bytes/foreign_bytes.ts';
import { isShortLog, listLog, parseLog, readCommit, readLogBytes } from './log.ts';
import { shownText } from './metadata.ts';
import { describeLog, type TableContent } from './read_log.ts';

/** What a table is. */
export interface TableDescription extends TableContent {
  readonly location: string;
  readonly version: number;
  /** The version of the newest checkpoint; null without one. */
  readonly checkpoint: number | null;
}

const describedLog = foreignParser<typeof describeLog>('description of a table');

/** Describes the newest version of a table; null if there is none. The state of a long log stays in the process that reads it. */
export async function describeTable(
  store: TableStore,
  signal: AbortSignal,
): Promise<TableDescription | null> {
  const found = await readLogBytes(store, signal);
  if (!found) return null;
  const { version, checkpoint, log } = found;
  const content = await (isShortLog(log) ? describeLog(log) : parseLog(store, describedLog, log));
  return { location: store.name, version, checkpoint, ...content };
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
  const budget = readingBudget(bounds.tableLogBytes);
  for (let at = 0; at < wanted.length; at += maxReads)
    versions.push(
      ...(await Promise.all(
        wanted
          .slice(at, at + maxReads)
          .map(({ version, object }) => readVersion(store, version, object.modified_at, budget, signal)),
      )),
    );
  return versions.reverse();
}

async function readVersion(
  store: TableStore,
  version: number,
  writtenAt: Date,
  budget: ReadingBudget,
  signal: AbortSignal,
): Promise<TableVersion> {
  const known = { version, committed_at: writtenAt.toISOString() };
  const nothing = { description: null, run_id: null, generation: null, interval: null, adds: 0, removes: 0 };
  try {
    const found = await readCommit(store, version, signal, budget);
    if (!found) return { ...known, ...nothing, writer: 'unknown' };
    const { publication, repair_id, adds, removes, info } = found;
    if (publication)
      return {
        ...known,
        ...nothing,
        writer: 'run',
        ...publication,
        adds,
        removes,
        interval: info.interval ?? null,
      };
    if (repair_id !== null) return { ...known, ...nothing, writer: 'repair', adds, removes };
    const description = [info.engineInfo, info.operation].filter((part) => part !== undefined).join(', ');
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
