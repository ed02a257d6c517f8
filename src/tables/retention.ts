/** What a table forgets: the log before its last checkpoints, and in a checkpoint the files that were removed long ago. */
import type { TableStore } from './table_store.ts';
import { listLog, readSnapshot, type Snapshot, writeCheckpoint } from './log.ts';
import { logRetentionMs, requireProtocol } from './metadata.ts';

/** Whether a version is one after which the log is to be maintained. */
export const isMaintained = ({ settings }: TableStore, version: number): boolean =>
  version > 0 && version % settings.EXPORTD_TABLE_CHECKPOINT_INTERVAL === 0;

/**
 * Makes the newest version quick to read, and deletes what is older than the retention of the log.
 * @returns the newest version; null if there is no table
 */
export async function maintainLog(store: TableStore, signal: AbortSignal): Promise<Snapshot | null> {
  const snapshot = await readSnapshot(store, signal);
  if (!snapshot) return null;
  requireProtocol(store, snapshot.state);
  if (snapshot.version !== snapshot.checkpoint) await writeCheckpoint(store, snapshot, signal);
  await deleteOldLog(store, snapshot.version, signal);
  return snapshot;
}

/** The checkpoint before the newest one stays too: a reader may have started with it. */
async function deleteOldLog(store: TableStore, version: number, signal: AbortSignal): Promise<void> {
  const before = Date.now() - logRetentionMs;
  const needed = version - 2 * store.settings.EXPORTD_TABLE_CHECKPOINT_INTERVAL;
  const { commits, checkpoints } = await listLog(store, signal);
  for (const { version: old, object } of [...commits, ...checkpoints])
    if (old < needed && object.modified_at.getTime() < before) await store.delete(object.name, signal);
}
