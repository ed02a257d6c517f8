/** Repairs of a table: one version more, which makes it what the current manifests say. */
import type { TableStore } from './table_store.ts';
import type { ExportedColumn } from '../source/row_selection.ts';
import { type NewCommit, newCommit } from './commit.ts';
import { addOf, type TableFile, type WantedFile } from './files.ts';
import {
  readCommit,
  readFirstState,
  readSnapshot,
  type Snapshot,
  versionMissing,
  writeCheckpoint,
} from './log.ts';
import { definitionOf, requireWritable } from './metadata.ts';

/** A commit that makes a table what the manifests say. */
interface TableRepair {
  readonly batch_export_id: string;
  readonly repair_id: string;
  /** The columns of the files that are added. */
  readonly columns: readonly ExportedColumn[];
  readonly adds: readonly WantedFile[];
  readonly removes: readonly TableFile[];
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** What a repair did. */
export interface TableRepairOutcome {
  /** The version that it wrote; null if the table is what its manifests say. */
  readonly version: number | null;
  readonly adds: number;
  readonly removes: number;
}

/**
 * The commit of a repair.
 * @param snapshot null for a table that does not exist or cannot be read: the repair has all of its files then
 * @throws DestinationError `TableProtocol`, `TableOfAnother`, `TableColumnConflict`
 */
export function repairOf(
  store: TableStore,
  snapshot: Snapshot | null,
  version: number,
  repair: TableRepair,
): NewCommit {
  const { batch_export_id, repair_id, adds, removes, now } = repair;
  if (snapshot) requireWritable(store, snapshot.state, batch_export_id);
  return newCommit(version, repair, {
    info: { operation: 'REPAIR', repair_id },
    definition: definitionOf(store, snapshot?.state ?? null, repair),
    adds: adds.map((file) => addOf(store, file, now)),
    removes: removes.map(({ add }) => add),
  });
}

/** Writes the checkpoint that makes a repair readable whatever the log before it is. */
export async function finishRepair(store: TableStore, version: number, signal: AbortSignal): Promise<void> {
  const found = await readCommit(store, version, signal);
  if (!found) throw versionMissing(store, version);
  // It has the whole table.
  if (found.startsLog) {
    const state = await readFirstState(store, version, signal);
    await writeCheckpoint(store, { version, state }, signal);
    return;
  }
  const snapshot = await readSnapshot(store, signal);
  if (snapshot) await writeCheckpoint(store, snapshot, signal);
}
