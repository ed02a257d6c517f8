import { homedir } from 'node:os';
import { join } from 'node:path';

/** A folder in the user's cache, shared by all clones: servers, programs of the tests, or compiled modules. */
export const cacheFolder = (name: 'servers' | 'programs' | 'compiled'): string =>
  join(process.env.EXPORTD_CACHE_DIR ?? join(homedir(), '.cache', 'exportd'), name);
