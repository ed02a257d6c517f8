import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import type pg from 'pg';
import { readSettings } from '../../../src/config/settings.ts';
import { cacheFolder } from '../../../src/local_stack/data_folder.ts';
import { findOnPath } from '../../../src/local_stack/servers/find_server.ts';
import { createSource } from '../../../src/source/postgres_source.ts';
import { connectToScratch, sessionOptions } from '../events.ts';
import { benchApplicationName, type ScratchStack } from '../scratch.ts';

/** A measurement of moving all rows. */
export interface Moved {
  readonly seconds: number;
  readonly cpu_seconds: number;
}

/** A measurement of a program that writes the rows. */
export interface Written extends Moved {
  readonly bytes: number;
  readonly peak_memory_bytes: number | null;
  readonly s3_requests: number | null;
}

/** Statements that read the same columns and rows of events as exportd, in the same order. */
interface ExportStatements {
  /** The rows in order, as a query. */
  readonly rows: string;
  /** The rows as binary COPY, as exportd reads them. */
  readonly copyBinary: string;
  /** The rows as JSON lines with the same fields as those of exportd. */
  readonly copyJson: string;
}

/** Exported columns that have another name in the relation. */
const relationColumns: Readonly<Record<string, string>> = { _inserted_at: 'inserted_at' };

/** The statements for the rows of an interval, with the columns of exportd's source. */
export async function exportStatements(
  databaseUrl: string,
  teamId: number,
  interval: { readonly start: string; readonly end: string },
): Promise<ExportStatements> {
  const source = createSource({
    sourceUrl: databaseUrl,
    settings: readSettings({ DATABASE_URL: databaseUrl }),
  });
  try {
    const columns = source.columns('events');
    const selected = columns.map(({ name }) => `${relationColumns[name] ?? name} as "${name}"`).join(', ');
    const rows = `select ${selected} from public.events where team_id = ${String(teamId)}
      and inserted_at >= '${interval.start}' and inserted_at < '${interval.end}' order by inserted_at, uuid`;
    return {
      rows,
      copyBinary: `copy (${rows}) to stdout (format binary)`,
      copyJson: `copy (select row_to_json(exported) from (${rows}) as exported) to stdout`,
    };
  } finally {
    await source.close();
  }
}

/** Methods that pg calls on a query object. */
interface CopyQuery extends pg.Submittable {
  callback: (error?: Error | null) => void;
  handleCopyData: (message: { chunk: Buffer }) => void;
  handleCommandComplete: () => void;
  handleReadyForQuery: () => void;
  handleError: (error: Error) => void;
}

/** Runs a COPY and discards its rows. @returns The number of bytes. */
export async function discardCopy(databaseUrl: string, copy: string): Promise<number> {
  const client = await connectToScratch(databaseUrl);
  try {
    return await new Promise<number>((resolve, reject) => {
      let bytes = 0;
      const query: CopyQuery = {
        callback: (error) => (error ? reject(error) : resolve(bytes)),
        submit: (wire) => wire.query(copy),
        handleCopyData: ({ chunk }) => (bytes += chunk.length),
        handleCommandComplete: () => undefined,
        handleReadyForQuery: () => query.callback(),
        handleError: (error) => query.callback(error),
      };
      client.query(query);
    });
  } finally {
    await client.end();
  }
}

/** The environment that makes psql connect to a database without a secret in its arguments. */
function psqlEnvironment(databaseUrl: string): NodeJS.ProcessEnv {
  const url = new URL(databaseUrl);
  const sslMode = url.searchParams.get('sslmode');
  return {
    ...process.env,
    PGHOST: url.searchParams.get('host') ?? url.hostname,
    PGPORT: url.port || '5432',
    PGUSER: decodeURIComponent(url.username),
    PGPASSWORD: decodeURIComponent(url.password),
    PGDATABASE: decodeURIComponent(url.pathname.slice(1)),
    PGAPPNAME: benchApplicationName,
    PGOPTIONS: sessionOptions,
    ...(sslMode !== null && { PGSSLMODE: sslMode }),
  };
}

/** The client of the floor: psql, the fastest, or without it the driver of exportd. */
export const floorClient = (): 'psql' | 'pg' =>
  findOnPath('psql') !== undefined && findOnPath('bash') !== undefined ? 'psql' : 'pg';

/** Reads all rows in order as binary COPY and discards them. */
export async function measureFloor(
  databaseUrl: string,
  copyBinary: string,
  signal: AbortSignal,
): Promise<Moved> {
  if (floorClient() === 'psql') {
    const environment = { ...psqlEnvironment(databaseUrl), COPY: copyBinary };
    return runTimed('psql --no-psqlrc --quiet --command "$COPY" > /dev/null', environment, signal);
  }
  const [startedAt, usage] = [performance.now(), process.cpuUsage()];
  await discardCopy(databaseUrl, copyBinary);
  const { user, system } = process.cpuUsage(usage);
  return { seconds: (performance.now() - startedAt) / 1_000, cpu_seconds: (user + system) / 1e6 };
}

/** Why the pipeline cannot run on this machine; undefined when it can. */
export function pipelineObstacle(): string | undefined {
  const missing = ['bash', 'psql', 'gzip'].filter((program) => findOnPath(program) === undefined);
  return missing.length === 0 ? undefined : `Not on PATH: ${missing.join(', ')}.`;
}

/** Exports the rows with a shell pipeline: psql, gzip and an upload. Memory is that of the upload, its largest program. */
export async function measurePipeline(
  target: ScratchStack,
  copyJson: string,
  signal: AbortSignal,
): Promise<Written> {
  const { objectStore } = target;
  const environment = {
    ...psqlEnvironment(target.databaseUrl),
    COPY: copyJson,
    NODE: process.execPath,
    UPLOAD: join(import.meta.dirname, 'upload_program.ts'),
    BUCKET: target.bucket,
    KEY: 'pipeline.jsonl.gz',
    S3_ENDPOINT: objectStore.endpoint,
    AWS_REGION: objectStore.region,
    AWS_ACCESS_KEY_ID: objectStore.accessKeyId,
    AWS_SECRET_ACCESS_KEY: objectStore.secretAccessKey,
  };
  const script = 'psql --no-psqlrc --quiet --command "$COPY" | gzip -6 | "$NODE" "$UPLOAD"';
  const { output, ...measured } = await runTimed(script, environment, signal);
  return { ...measured, ...(JSON.parse(output) as Omit<Written, keyof Moved>) };
}

/** A peer's measurement. */
export interface MeasuredPeer extends Written {
  readonly version: string;
}

/** Writes the rows of a query in their order to a local file, and deletes it. */
export type Peer = (rows: string) => Promise<MeasuredPeer>;

const duckDbPackage = '@duckdb/node-api';
/** A package of PyPI that contains the signed extension, for machines that cannot reach DuckDB's own server. */
const extensionPackage = 'duckdb-extension-postgres-scanner';

/** Prepares a DuckDB that can read PostgreSQL and tries it. @returns why it cannot run on this machine, if so. */
export async function prepareDuckDb(
  { databaseUrl, folder }: Pick<ScratchStack, 'databaseUrl' | 'folder'>,
  signal: AbortSignal,
): Promise<Peer | string> {
  const version = duckDbVersion();
  if (version === undefined)
    return `The package ${duckDbPackage}, a development dependency, is not installed.`;
  const create = async (extension: NodeJS.ProcessEnv): Promise<Peer> => {
    const measure: Peer = async (rows) => {
      const FILE = folder.inside('duckdb.parquet');
      const PROGRAM = join(import.meta.dirname, 'duckdb_program.ts');
      const settings = { NODE: process.execPath, PROGRAM, FILE, ROWS: rows, ...extension };
      try {
        const environment = { ...psqlEnvironment(databaseUrl), ...settings };
        const { output } = await runTimed('"$NODE" "$PROGRAM"', environment, signal);
        return JSON.parse(output) as MeasuredPeer;
      } finally {
        rmSync(FILE, { force: true });
      }
    };
    await measure('select 1 as one');
    return measure;
  };
  try {
    return await create({}).catch(async () =>
      create({ EXTENSION: await bringPostgresExtension(version, signal) }),
    );
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ShellFailed) return `Its postgres extension is not available. ${error.message}`;
    throw error;
  }
}

/** The version of the installed DuckDB, such as `1.5.5`; undefined without it. */
function duckDbVersion(): string | undefined {
  try {
    const { resolve } = createRequire(import.meta.url);
    const { version } = JSON.parse(readFileSync(resolve(`${duckDbPackage}/package.json`), 'utf8')) as {
      version: string;
    };
    return version.replace(/-.*/, '');
  } catch {
    return undefined;
  }
}

/**
 * Brings DuckDB's postgres extension as a Python package into the cache.
 * @returns its file
 * @throws ShellFailed when pip does not find it
 */
async function bringPostgresExtension(version: string, signal: AbortSignal): Promise<string> {
  const target = join(cacheFolder('programs'), `duckdb-${version}`);
  const file = join(
    target,
    `${extensionPackage.replaceAll('-', '_')}/extensions/v${version}/postgres_scanner.duckdb_extension`,
  );
  if (!existsSync(file)) {
    mkdirSync(target, { recursive: true });
    const environment = { ...process.env, TARGET: target, PACKAGE: `${extensionPackage}==${version}` };
    const pip = 'python3 -m pip install --quiet --no-deps --only-binary :all: --upgrade';
    await runTimed(`${pip} --target "$TARGET" "$PACKAGE"`, environment, signal);
  }
  return file;
}

/** The packages of PyPI that peers consist of, by their folder in the cache. */
const peerPackages = {
  adbc: ['adbc-driver-postgresql==1.13.0', 'pyarrow==26.0.1'],
  // The last version whose program is in a wheel.
  sling: ['sling-linux-amd64==1.4.11'],
};

/** Writes the rows as Parquet with zstd, as fast as ADBC and pyarrow do it: in the order of the query, in one thread each. */
const adbcProgram = `
import json, os, resource, time
import adbc_driver_postgresql.dbapi, pyarrow.parquet
started = time.perf_counter()
used = time.process_time()
with adbc_driver_postgresql.dbapi.connect(os.environ['URI']) as connection, connection.cursor() as cursor:
    cursor.execute(os.environ['ROWS'])
    batches = cursor.fetch_record_batch()
    with pyarrow.parquet.ParquetWriter(os.environ['FILE'], batches.schema, compression='zstd') as writer:
        for batch in batches:
            writer.write_batch(batch)
print(json.dumps({
    'version': adbc_driver_postgresql.__version__,
    'seconds': time.perf_counter() - started,
    'cpu_seconds': time.process_time() - used,
    'bytes': os.stat(os.environ['FILE']).st_size,
    'peak_memory_bytes': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    's3_requests': None,
}))`;

/** Prepares ADBC with pyarrow and tries it. @returns why it cannot run on this machine, if so. */
export const prepareAdbc = (stack: PeerStack, signal: AbortSignal): Promise<Peer | string> =>
  preparePeer(stack, 'adbc', signal, async (environment) => {
    const { output } = await runTimed(
      'python3 -c "$PROGRAM"',
      { ...environment, PYTHONPATH: environment.FOLDER, PROGRAM: adbcProgram },
      signal,
    );
    return JSON.parse(output) as MeasuredPeer;
  });

/** Prepares Sling, which writes JSON lines with gzip, and tries it. @returns why it cannot run on this machine, if so. */
export const prepareSling = (stack: PeerStack, signal: AbortSignal): Promise<Peer | string> =>
  preparePeer(stack, 'sling', signal, async (environment) => {
    const options = '{format: jsonlines, compression: gzip}';
    const { seconds, cpu_seconds } = await runTimed(
      `"$FOLDER/sling_linux_amd64/bin/sling-linux-amd64" run --src-conn SOURCE --src-stream "$ROWS" \
        --tgt-object "file://$FILE" --tgt-options '${options}' > /dev/null`,
      {
        ...environment,
        SOURCE: environment.URI,
        SLING_DISABLE_TELEMETRY: 'true',
        // Its driver of Snowflake writes a cache into the home folder, or else into the current one.
        SLING_HOME_DIR: environment.FOLDER,
        HOME: environment.FOLDER,
      },
      signal,
    );
    const bytes = statSync(environment.FILE).size;
    const version = peerPackages.sling[0]?.split('==')[1] ?? '';
    return { version, seconds, cpu_seconds, bytes, peak_memory_bytes: null, s3_requests: null };
  });

type PeerStack = Pick<ScratchStack, 'databaseUrl' | 'folder'>;

/** Brings the packages of a peer into the cache, and tries it. */
async function preparePeer(
  { databaseUrl, folder }: PeerStack,
  name: keyof typeof peerPackages,
  signal: AbortSignal,
  measure: (
    environment: NodeJS.ProcessEnv & Record<'FOLDER' | 'FILE' | 'URI', string>,
  ) => Promise<MeasuredPeer>,
): Promise<Peer | string> {
  const packages = peerPackages[name];
  const FOLDER = join(cacheFolder('programs'), packages.join('-'));
  const peer: Peer = async (rows) => {
    const FILE = folder.inside(`${name}.out`);
    const URI = new URL(databaseUrl);
    URI.searchParams.set('options', sessionOptions);
    // Sling asks for TLS otherwise.
    if (!URI.searchParams.has('sslmode')) URI.searchParams.set('sslmode', 'disable');
    try {
      return await measure({
        ...process.env,
        FOLDER,
        FILE,
        URI: URI.href.replaceAll('+', '%20'),
        ROWS: rows,
      });
    } finally {
      rmSync(FILE, { force: true });
    }
  };
  try {
    if (!existsSync(FOLDER)) await installPackages(FOLDER, packages, signal);
    await peer('select 1 as one');
    return peer;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ShellFailed) return `It is not available. ${error.message}`;
    throw error;
  }
}

/** Installs packages of PyPI to a folder, with what they need. @throws ShellFailed when pip does not find them */
async function installPackages(
  folder: string,
  packages: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const TARGET = `${folder}.${String(process.pid)}`;
  const pip = 'python3 -m pip install --quiet --only-binary :all: --target "$TARGET" $PACKAGES';
  await runTimed(pip, { ...process.env, TARGET, PACKAGES: packages.join(' ') }, signal);
  renameSync(TARGET, folder);
}

/** Duration and output of a shell script. */
interface ShellResult extends Moved {
  readonly output: string;
}

/** A script failed. The message is the end of its stderr. */
class ShellFailed extends Error {
  override readonly name = 'ShellFailed';
}

/**
 * Runs a script in bash, which fails when any program of a pipe does.
 * @returns The time until all programs have exited, and their CPU time.
 * @throws ShellFailed. @throws the reason of an aborted signal, which kills every program
 */
async function runTimed(
  script: string,
  environment: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<ShellResult> {
  signal.throwIfAborted();
  const startedAt = performance.now();
  const shell = spawn('bash', ['-o', 'pipefail', '-c', `${script}\nstatus=$?; times >&3; exit $status`], {
    env: environment,
    // A separate process group, to kill all programs of a pipe.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  const kill = () => {
    if (shell.pid !== undefined && shell.exitCode === null) process.kill(-shell.pid, 'SIGKILL');
  };
  signal.addEventListener('abort', kill);
  process.once('exit', kill);
  const [, output, errors, times] = shell.stdio.map(gather);
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      shell.once('error', reject);
      shell.once('close', resolve);
    });
    signal.throwIfAborted();
    if (code !== 0) throw new ShellFailed((errors?.() ?? '').trim().slice(-500));
    const seconds = (performance.now() - startedAt) / 1_000;
    return { seconds, cpu_seconds: cpuSecondsIn(times?.() ?? ''), output: output?.() ?? '' };
  } finally {
    signal.removeEventListener('abort', kill);
    process.off('exit', kill);
  }
}

/** Collects the text of a stream. @returns Reads the text so far. */
function gather(stream: Readable | Writable | null | undefined): () => string {
  let text = '';
  stream?.on('data', (chunk: Buffer) => (text += chunk.toString()));
  return () => text;
}

/** The sum of what `times` prints: user and system time of the shell, then of its children, each as `0m1.234s`. */
export const cpuSecondsIn = (times: string): number =>
  [...times.matchAll(/(\d+)m([\d.]+)s/g)].reduce(
    (sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds),
    0,
  );
