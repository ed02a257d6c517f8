import type { FileKeeper } from '../export/publish_target.ts';
import { filesOf } from '../tables/files.ts';
import { readSnapshot } from '../tables/log.ts';
import { tableOf } from '../tables/table_store.ts';

/** A file that a table has stays: its export may write to another place now. Each table is read once. */
export function createTableKeeper(signal: AbortSignal): FileKeeper {
  const tables = new Map<string, Promise<ReadonlySet<string>>>();
  return async ({ model, key }, location) => {
    const store = tableOf(location, model);
    if (!store) return null;
    const read = async (): Promise<ReadonlySet<string>> => {
      const snapshot = await readSnapshot(store, signal);
      return new Set(snapshot ? filesOf(store, snapshot.state).map((file) => file.key) : []);
    };
    const reading = tables.get(store.location) ?? read();
    tables.set(store.location, reading);
    return (await reading).has(key)
      ? 'The table still has a file of an older generation: nothing was committed to it since.'
      : null;
  };
}
