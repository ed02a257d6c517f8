import { homedir } from 'node:os';
import { join } from 'node:path';

/** A folder of what can be made again, kept from clone to clone in the user's cache: built servers, compiled programs. */
export const cacheFolder = (name: 'servers' | 'compiled'): string =>
  join(process.env.EXPORTD_CACHE_DIR ?? join(homedir(), '.cache', 'exportd'), name);
