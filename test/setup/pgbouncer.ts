import { spawn } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { assignPorts } from '../../src/local_stack/ports.ts';
import { programPath } from './programs.ts';
import { waitFor } from './wait_for.ts';

/** A PgBouncer before a database. */
interface Pgbouncer {
  /** The URL of the database through it. */
  readonly url: string;
  close(): Promise<void>;
}

/** PgBouncer does not run as root. */
const nobody = 65_534;

/** The program, or a copy of it where only root can enter its folder: the cache of root. */
function readableByAll(program: string, folder: string): string {
  if (!existsSync(`${program}.bin`)) return program;
  const copy = join(folder, 'program');
  cpSync(dirname(program), copy, { recursive: true });
  chmodSync(copy, 0o755);
  return join(copy, 'pgbouncer');
}

/**
 * Starts PgBouncer before a database.
 * @param settings more of its settings, such as `ignore_startup_parameters`
 */
export async function startPgbouncer(
  databaseUrl: string,
  mode: 'session' | 'transaction' | 'statement',
  settings: Readonly<Record<string, string>> = {},
): Promise<Pgbouncer> {
  const installed = await programPath('pgbouncer');
  const folder = mkdtempSync(join(tmpdir(), 'exportd-pgbouncer-'));
  const command = readableByAll(installed, folder);
  const { pgbouncer: port } = await assignPorts(join(folder, 'ports.json'), ['pgbouncer']);
  const { hostname, port: serverPort, username, password, pathname } = new URL(databaseUrl);
  const server = { host: hostname, port: serverPort, user: username, ...(password && { password }) };
  const all = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'any',
    pool_mode: mode,
    ...settings,
  };
  const lines = (values: object, separator: string): string =>
    Object.entries(values)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => `${name}=${String(value)}`)
      .join(separator);
  const file = join(folder, 'pgbouncer.ini');
  writeFileSync(file, `[databases]\n* = ${lines(server, ' ')}\n[pgbouncer]\n${lines(all, '\n')}\n`);
  chmodSync(folder, 0o755);
  chmodSync(file, 0o644);
  const child = spawn(command, [file], {
    stdio: ['ignore', 'ignore', 'pipe'],
    ...(process.getuid?.() === 0 && { uid: nobody, gid: nobody }),
  });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const listens = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true));
      socket.once('error', () => resolve(false)).once('connect', () => socket.destroy());
    });
  await waitFor(
    async () => {
      if (child.exitCode !== null) throw new Error(`PgBouncer ended: ${log}`);
      return listens();
    },
    () => `PgBouncer listens: ${log}`,
    30_000,
  );
  return {
    url: `postgres://${username}@127.0.0.1:${port}${pathname}`,
    close: async () => {
      child.kill('SIGKILL');
      await exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
