import { homedir } from 'node:os';
import { join } from 'node:path';

/** A folder in the user's cache, shared by all clones: built servers or compiled programs. */
export const cacheFolder = (name: 'servers' | 'compiled'): string =>
  join(process.env.EXPORTD_CACHE_DIR ?? join(homedir(), '.cache', 'exportd'), name);
