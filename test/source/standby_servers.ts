import { execFileSync } from 'node:child_process';
import { appendFileSync, chownSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { createChildProcesses, waitUntilReady } from '../../src/local_stack/child_processes.ts';
import { openDataFolder } from '../../src/local_stack/data_folder.ts';
import { assignPorts } from '../../src/local_stack/ports.ts';
import {
  isPostgresqlReady,
  postgresqlProgram,
  postgresqlUrl,
} from '../../src/local_stack/servers/postgresql.ts';
import { migrateSource } from '../../src/migrate/migrate.ts';
import { fromSetUp } from '../setup/environment.ts';

const password = 'standby';

/** A primary with the source's relations, and a standby that replays its log. */
export interface StandbyServers {
  readonly primaryUrl: string;
  readonly standbyUrl: string;
  /** Restarts the primary, which terminates all connections. */
  restartPrimary(): Promise<void>;
  /** Makes the standby a primary. Its connections stay open. */
  promoteStandby(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a PostgreSQL server in a separate folder. */
async function startServer(path: string, port: number, isReady: () => Promise<boolean>) {
  const folder = openDataFolder(path);
  const children = createChildProcesses(folder);
  await waitUntilReady(children.start(await postgresqlProgram(folder, port, password, false)), isReady);
  return children;
}

/** Creates both servers. The standby is a copy of the primary's data, taken while it is stopped. */
export async function startStandbyServers(): Promise<StandbyServers> {
  const path = join(fromSetUp('EXPORTD_TEST_FOLDER'), `standby-${process.pid}`);
  const [primaryPath, standbyPath] = [join(path, 'primary'), join(path, 'standby')];
  const ports = await assignPorts(join(openDataFolder(path).path, 'ports.json'), ['primary', 'standby']);
  const primaryUrl = postgresqlUrl(ports.primary, password);
  const startPrimary = () =>
    startServer(primaryPath, ports.primary, () => isPostgresqlReady(ports.primary, password));

  const first = await startPrimary();
  await migrateSource(primaryUrl);
  await first.stopAll();

  // Other servers may subscribe to the primary.
  appendFileSync(join(primaryPath, 'postgresql', 'postgresql.auto.conf'), 'wal_level = logical\n');
  openDataFolder(standbyPath);
  const data = join(standbyPath, 'postgresql');
  execFileSync('cp', ['-a', join(primaryPath, 'postgresql'), data]);
  const { uid, gid } = statSync(data);
  writeFileSync(join(data, 'standby.signal'), '');
  chownSync(join(data, 'standby.signal'), uid, gid);
  appendFileSync(
    join(data, 'postgresql.auto.conf'),
    `primary_conninfo = 'host=127.0.0.1 port=${ports.primary} user=postgres password=${password}'\n`,
  );
  let primary = await startPrimary();
  const standby = await startServer(standbyPath, ports.standby, () =>
    isPostgresqlReady(ports.standby, password),
  );
  return {
    primaryUrl,
    standbyUrl: postgresqlUrl(ports.standby, password),
    async restartPrimary() {
      await primary.stopAll();
      primary = await startPrimary();
    },
    async promoteStandby() {
      const client = new pg.Client({ connectionString: postgresqlUrl(ports.standby, password) });
      await client.connect();
      await client.query('select pg_promote()');
      await client.end();
    },
    async stop() {
      await standby.stopAll();
      await primary.stopAll();
    },
  };
}
