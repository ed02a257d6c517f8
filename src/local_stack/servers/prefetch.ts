// Brings the servers of the local stack while npm installs the packages: bootstrap.mjs runs it in a fresh clone. It may
// import modules of Node and of this folder only.
import { LaunchError } from '../data_folder.ts';
import { findServer, type ServerProgram } from './find_server.ts';
import { objectStoreServer } from './object_store.ts';
import { temporalServer } from './temporal.ts';

/** Puts a server into the cache unless the environment names a running one. */
async function prefetch(server: ServerProgram): Promise<void> {
  if (process.env[server.addressVariable]) return;
  try {
    await findServer(server, (line) => process.stdout.write(`${line}\n`));
  } catch (error) {
    // The start tries again and reports why no source works.
    if (!(error instanceof LaunchError)) throw error;
  }
}

// A build ends with this process, in its `exit` event, which a signal alone does not cause.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
await Promise.all([temporalServer, objectStoreServer].map(prefetch));
