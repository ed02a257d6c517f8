import { targetChecks as targets } from '../../../src/temporal/capabilities.ts';
import { join } from 'node:path';
import { createKeyRing } from '../../../src/config/key_ring.ts';
import { readSettings } from '../../../src/config/settings.ts';
import { parseS3Config } from '../../../src/destination/config.ts';
import { CommandRejected } from '../../../src/domain/errors.ts';
import type { Pool } from '../../../src/journal/database.ts';
import { LaunchError, type StackEnvironment } from '../../../src/local_stack/data_folder.ts';
import type { Report } from '../../../src/local_stack/report.ts';
import { verifyBatchExport } from '../../../src/verify/verify_batch_export.ts';
import { insertEvents, type CrowdedTime } from '../events.ts';
import {
  backfill,
  createExport,
  deploymentOn,
  destinationFor,
  exportingProject,
  hoursAfter,
  withExportd,
  type BenchWorker,
  type ExportingProject,
} from '../exportd.ts';
import {
  medianOf,
  megabytes,
  rounded,
  statisticsOf,
  type ResultTable,
  type Skipped,
  type Statistics,
} from '../results.ts';
import {
  createBenchAccount,
  measureOnScratch,
  type BenchAccount,
  type Measurement,
  type Scratch,
  type ScratchOptions,
  type ScratchStack,
} from '../scratch.ts';
import {
  cpuSecondsOf,
  memoryOf,
  resetPeakMemory,
  s3RequestsOf,
  watchPrograms,
  type ProgramSeconds,
} from '../usage.ts';
import {
  discardCopy,
  exportStatements,
  floorClient,
  measureFloor,
  measurePipeline,
  pipelineObstacle,
  prepareAdbc,
  prepareDuckDb,
  prepareSling,
  type MeasuredPeer,
  type Moved,
  type Peer,
  type Written,
} from './programs.ts';

/** How exports are verified: every value, or the fingerprints of manifests. */
export type VerifyDepth = 'deep' | 'fast';

/** The options of the command line. */
export interface ExportsBenchOptions extends ScratchOptions {
  readonly events: number;
  readonly formats?: readonly string[];
  readonly repeat: number;
  /** Whether each worker exports the interval once before the measurement. Otherwise the results include its start-up. */
  readonly warm?: boolean;
  /** A part of the hour in which nine tenths of the events arrive, instead of evenly. */
  readonly crowded?: CrowdedTime;
  readonly pipeline: boolean;
  readonly duckdb: boolean;
  /** Whether to measure ADBC and Sling. */
  readonly peers: boolean;
  readonly verify: VerifyDepth;
  readonly profile?: string;
}

/** Duration of moving all rows. Rates use the median. Megabytes are those of binary COPY. */
export interface Throughput {
  readonly seconds: Statistics;
  readonly rows_per_second: number;
  readonly megabytes_per_second: number;
  /** CPU time of the clients, without PostgreSQL and the S3 server. */
  readonly cpu_seconds: Statistics;
}

/** A program that writes the rows, and how it compares with the others. A ratio below 1 means that it is faster. */
export interface Compared extends Throughput {
  /** Size of the objects or the file. */
  readonly bytes: number;
  /** Maximum resident memory; null without /proc. */
  readonly peak_memory_bytes: number | null;
  /** Requests to S3, the median; null for a local file. */
  readonly s3_requests: number | null;
  /** Time divided by that of the floor in the same repeat. */
  readonly ratio_to_floor: Statistics;
  /** Null without the shell pipeline. */
  readonly ratio_to_pipeline: Statistics | null;
  /** Null without DuckDB. */
  readonly ratio_to_duckdb: Statistics | null;
  /** Null without ADBC. */
  readonly ratio_to_adbc: Statistics | null;
  /** Of an export to a table: time divided by that of the same format without one. Null without both. */
  readonly ratio_to_files: Statistics | null;
}

/** An export by exportd in a format. `seconds` is the time from Running to the manifest, from the journal. */
export interface ExportResult extends Compared {
  /** From the command to Completed, including the start of the backfill, the wait for open transactions and the count. */
  readonly seconds_from_command: Statistics;
  /** Rows of the run. */
  readonly rows: number;
  /** Resident memory of the worker before the export; null without /proc. */
  readonly idle_memory_bytes: number | null;
  /** Bytes divided by those of the pipeline. */
  readonly size_to_pipeline: number | null;
  /** Medians of the CPU seconds of each program. */
  readonly cpu_of_programs: ProgramSeconds;
}

/** Result of `npm run bench`. Times are in seconds, sizes in bytes. */
export interface ExportsBenchResult extends Measurement {
  readonly events: number;
  /** Size of the events as binary COPY. */
  readonly copy_bytes: number;
  readonly repeat: number;
  readonly warm: boolean;
  /** Absent if the events arrive evenly. */
  readonly crowded?: CrowdedTime;
  /** The ordered binary COPY, discarded: nothing that reads all rows in order is faster. */
  readonly floor: Throughput & { readonly client: 'psql' | 'pg' };
  /** The shell pipeline, which writes the rows as gzipped JSON lines to the bucket. */
  readonly pipeline: Compared | Skipped;
  /** DuckDB, which writes the same rows to a local file. */
  readonly duckdb: ComparedPeer;
  /** ADBC, which pyarrow writes as Parquet with zstd to a local file. */
  readonly adbc: ComparedPeer;
  /** Sling, which writes gzipped JSON lines to a local file. */
  readonly sling: ComparedPeer;
  readonly exports: readonly ({ readonly format: string } & (ExportResult | Skipped))[];
}

type ComparedPeer = (Compared & { readonly version: string }) | Skipped;

/** An export of the interval by a newly started worker. */
interface MeasuredRun extends Written {
  readonly seconds_from_command: number;
  readonly rows: number;
  readonly idle_memory_bytes: number | null;
  readonly cpu_of_programs: ProgramSeconds;
}

const peerNames = ['duckdb', 'adbc', 'sling'] as const;
type PeerName = (typeof peerNames)[number];

/** The measurements of all repeats, in order. */
interface Measurements {
  readonly floor: Moved[];
  readonly pipeline: Written[];
  readonly peers: Readonly<Record<PeerName, MeasuredPeer[]>>;
  /** By format, without skipped ones. */
  readonly runs: ReadonlyMap<string, MeasuredRun[]>;
  /** Why a program was skipped: `pipeline`, a peer or a format. */
  readonly skipped: ReadonlyMap<string, string>;
}

const defaultFormats = [
  'JSONLines+gzip',
  'JSONLines',
  'JSONLines+zstd',
  'CSV+gzip',
  'Parquet+zstd',
  'Parquet+zstd+delta',
  'Parquet+snappy',
];

/** An arbitrary hour in the past. */
const start = new Date('2026-01-01T00:00:00.000Z');
const interval = { start: start.toISOString(), end: hoursAfter(start, 1).toISOString() };

/**
 * Creates events in a scratch database and measures how long it takes to read them, to export them with a shell pipeline
 * and with DuckDB, and to export them with exportd in each format. Deletes everything that it created.
 * @throws LaunchError when a server does not start, a run does not complete, or its objects differ from the source.
 * @throws the reason of an aborted signal
 */
export async function runExportsBench(
  options: ExportsBenchOptions,
  report: Report,
  signal: AbortSignal,
): Promise<ExportsBenchResult> {
  return measureOnScratch(options, report, signal, async (scratch) => {
    const { databaseUrl } = scratch.stack;
    const account = await createBenchAccount(scratch.pool);
    const { teamId } = account;
    const { events, formats = defaultFormats, repeat, warm = false, crowded } = options;
    await insertEvents(
      databaseUrl,
      { teamId, start, count: events, ...(crowded && { crowded }) },
      report,
      signal,
    );
    const statements = await exportStatements(databaseUrl, teamId, interval);
    // Not timed. It fills the caches, for the same conditions in every measurement.
    const copy_bytes = await discardCopy(databaseUrl, statements.copyBinary);
    report(`The events have ${megabytes(copy_bytes)} MB as binary COPY`);
    const measurements = await measurePrograms(scratch, { ...options, formats, account, statements });
    const results = resultsOf(measurements, formats, { events, copy_bytes });
    return { events, copy_bytes, repeat, warm, ...(crowded && { crowded }), ...results };
  });
}

type Request = ExportsBenchOptions & {
  readonly formats: readonly string[];
  readonly account: BenchAccount;
  readonly statements: Awaited<ReturnType<typeof exportStatements>>;
};

/** Measures every program once per repeat: results that are compared were measured at about the same time. */
async function measurePrograms(scratch: Scratch, request: Request): Promise<Measurements> {
  const { stack, report, signal } = scratch;
  const { statements, formats, repeat } = request;
  const skipped = new Map<string, string>();
  const skip = (name: string, reason: string | undefined): void => {
    if (reason === undefined) return;
    skipped.set(name, reason);
    report(`Skipping ${name}. ${reason}`);
  };
  const notRequested = 'Not requested.';
  skip('pipeline', request.pipeline ? pipelineObstacle() : notRequested);
  const peers = new Map<PeerName, Peer>();
  const prepare = async (name: PeerName, isRequested: boolean, peer: typeof prepareAdbc): Promise<void> => {
    const prepared = isRequested ? await peer(stack, signal) : notRequested;
    if (typeof prepared === 'string') skip(name, prepared);
    else peers.set(name, prepared);
  };
  await prepare('duckdb', request.duckdb, prepareDuckDb);
  await prepare('adbc', request.peers, prepareAdbc);
  await prepare('sling', request.peers, prepareSling);
  for (const format of formats) skip(format, unsupportedReason(format, stack));

  const supported = formats.filter((format) => !skipped.has(format));
  const runs = new Map(supported.map((format): [string, MeasuredRun[]] => [format, []]));
  const measurements: Measurements = {
    floor: [],
    pipeline: [],
    runs,
    skipped,
    peers: { duckdb: [], adbc: [], sling: [] },
  };
  for (let number = 1; number <= repeat; number += 1) {
    const progress = repeat === 1 ? '' : ` (${String(number)} of ${String(repeat)})`;
    const measured = <Found extends Moved>(name: string, list: Found[], found: Found): void => {
      list.push(found);
      report(`${name}${progress}: ${describe(found)}`);
    };
    const floor = await measureFloor(stack.databaseUrl, statements.copyBinary, signal);
    measured('Floor', measurements.floor, floor);
    if (!skipped.has('pipeline')) {
      const piped = await measurePipeline(stack, statements.copyJson, signal);
      measured('Shell pipeline', measurements.pipeline, piped);
      await stack.emptyBucket();
    }
    for (const [name, peer] of peers) measured(name, measurements.peers[name], await peer(statements.rows));
    for (const [format, ofFormat] of runs) {
      measured(`exportd ${format}`, ofFormat, await measureFormat(scratch, request, format, number));
      await stack.emptyBucket();
    }
  }
  return measurements;
}

const describe = ({ seconds, cpu_seconds, ...rest }: Moved & Partial<Written>): string => {
  const size = rest.bytes === undefined ? '' : `, ${megabytes(rest.bytes)} MB`;
  const requests = rest.s3_requests ? `, ${String(rest.s3_requests)} S3 requests` : '';
  return `${seconds.toFixed(2)} s, ${cpu_seconds.toFixed(2)} s CPU${size}${requests}`;
};

/** Why exportd does not support a format; undefined when it does. */
function unsupportedReason(format: string, stack: ScratchStack): string | undefined {
  const { config } = destinationFor(format, 'bench', stack);
  const settings = readSettings({
    DATABASE_URL: stack.databaseUrl,
    EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
  });
  try {
    parseS3Config(config, settings);
    return undefined;
  } catch (error) {
    if (error instanceof CommandRejected) return error.message;
    throw error;
  }
}

/**
 * Exports the interval in a format. Every measurement has a new worker, unaffected by the memory and caches of other
 * formats.
 */
async function measureFormat(
  scratch: Scratch,
  { account, events, profile, warm, verify }: Request,
  format: string,
  repeat: number,
): Promise<MeasuredRun> {
  const { stack, pool } = scratch;
  const deployment = await deploymentOn(stack, format);
  const profileFolder = profile && join(profile, `${format}-${String(repeat)}`);
  return withExportd(stack, deployment, { profileFolder }, async (worker) => {
    const project = exportingProject(scratch, deployment, account);
    const exportOnce = async (depth?: VerifyDepth): Promise<MeasuredRun> => {
      const id = await createExport(project, { name: format.toLowerCase().replaceAll('+', '-'), format });
      const run = await measureExport(project, worker, id);
      if (run.rows !== events)
        throw new LaunchError(
          `The export as ${format} has ${String(run.rows)} rows instead of ${String(events)}.`,
        );
      if (depth) await verifyRun(pool, deployment.environment, id, interval, depth);
      await project.api.request('DELETE', `${id}/`);
      return run;
    };
    if (warm) {
      await exportOnce();
      await stack.emptyBucket();
    }
    // Each repeat exports the same rows, and verifying takes longer than exporting.
    return exportOnce(repeat === 1 ? verify : undefined);
  });
}

async function measureExport(
  project: ExportingProject,
  { pid, httpPort }: BenchWorker,
  id: string,
): Promise<MeasuredRun> {
  const requestsBefore = await s3RequestsOf(httpPort);
  const idle = memoryOf(pid);
  resetPeakMemory(pid);
  const cpuBefore = cpuSecondsOf(pid);
  const used = watchPrograms(project.stack.folder);
  const { seconds_to_end: _, ...measured } = await backfill(project, { exportIds: [id], start, hours: 1 });
  return {
    ...measured,
    cpu_seconds: (cpuSecondsOf(pid) ?? Number.NaN) - (cpuBefore ?? Number.NaN),
    cpu_of_programs: used(),
    idle_memory_bytes: idle?.resident ?? null,
    peak_memory_bytes: memoryOf(pid)?.peak ?? null,
    s3_requests: (await s3RequestsOf(httpPort)) - requestsBefore,
  };
}

/** Compares an export with the source, as `exportd verify`. @throws LaunchError that names the findings */
export async function verifyRun(
  pool: Pool,
  environment: StackEnvironment,
  batchExportId: string,
  { start: from, end: to }: { readonly start: string; readonly end: string },
  depth: VerifyDepth,
): Promise<void> {
  const settings = readSettings({ ...environment });
  const keyRing = createKeyRing(settings.EXPORTD_ENCRYPTION_KEYS);
  const { ok, findings } = await verifyBatchExport(
    { pool, settings, keyRing, sourceUrl: settings.SOURCE_DATABASE_URL, targets, onError: () => undefined },
    { batchExportId, from, to, [depth]: true },
  );
  if (!ok)
    throw new LaunchError(
      `The export does not match its source. ${findings.map(({ detail }) => detail).join(' ')}`,
    );
}

/** The exported events. */
interface Events {
  readonly events: number;
  readonly copy_bytes: number;
}

/** Computes rates and ratios. */
function resultsOf(
  { floor, pipeline, peers, runs, skipped }: Measurements,
  formats: readonly string[],
  events: Events,
): Pick<ExportsBenchResult, 'floor' | 'pipeline' | PeerName | 'exports'> {
  const unlessSkipped = <Result>(name: string, result: () => Result): Result | Skipped => {
    const reason = skipped.get(name);
    return reason === undefined ? result() : { skipped: reason };
  };
  const compared = (repeats: readonly Written[], files: readonly Written[] = []): Compared => {
    const ratioTo = (others: readonly Moved[]) =>
      others.length === 0 ? null : pairedRatios(repeats, others);
    const requests = known(repeats.map(({ s3_requests }) => s3_requests));
    return {
      ...throughputOf(repeats, events),
      bytes: Math.max(...repeats.map(({ bytes }) => bytes)),
      peak_memory_bytes: largestKnown(repeats.map((one) => one.peak_memory_bytes)),
      // The first export to a bucket sends some more, to find out what the store supports.
      s3_requests: requests.length === 0 ? null : medianOf(requests),
      ratio_to_floor: pairedRatios(repeats, floor),
      ratio_to_pipeline: ratioTo(pipeline),
      ratio_to_duckdb: ratioTo(peers.duckdb),
      ratio_to_adbc: ratioTo(peers.adbc),
      ratio_to_files: ratioTo(files),
    };
  };
  const exportResult = (format: string): ExportResult => {
    const repeats = runs.get(format) ?? [];
    const [file_format, compression, table_format] = format.split('+');
    const result = compared(
      repeats,
      table_format === undefined ? [] : (runs.get(`${file_format}+${compression}`) ?? []),
    );
    return {
      ...result,
      seconds_from_command: statisticsOf(repeats.map((run) => run.seconds_from_command)),
      rows: Math.max(...repeats.map(({ rows }) => rows)),
      idle_memory_bytes: largestKnown(repeats.map((run) => run.idle_memory_bytes)),
      size_to_pipeline: pipeline[0] ? rounded(result.bytes / pipeline[0].bytes) : null,
      cpu_of_programs: {
        worker: medianOfProgram(repeats, 'worker'),
        postgresql: medianOfProgram(repeats, 'postgresql'),
        s3: medianOfProgram(repeats, 's3'),
        temporal: medianOfProgram(repeats, 'temporal'),
      },
    };
  };
  const comparedPeer = (name: PeerName): ComparedPeer =>
    unlessSkipped(name, () => ({ version: peers[name][0]?.version ?? '', ...compared(peers[name]) }));
  return {
    floor: { client: floorClient(), ...throughputOf(floor, events) },
    pipeline: unlessSkipped('pipeline', () => compared(pipeline)),
    duckdb: comparedPeer('duckdb'),
    adbc: comparedPeer('adbc'),
    sling: comparedPeer('sling'),
    exports: formats.map((format) => ({
      format,
      ...unlessSkipped(format, () => exportResult(format)),
    })),
  };
}

/** CPU seconds of a program, the median of all repeats; null without /proc. */
function medianOfProgram(repeats: readonly MeasuredRun[], name: keyof ProgramSeconds): number | null {
  const seconds = known(repeats.map(({ cpu_of_programs }) => cpu_of_programs[name]));
  return seconds.length === 0 ? null : medianOf(seconds);
}

const known = (values: readonly (number | null)[]): number[] => values.filter((value) => value !== null);

const largestKnown = (values: readonly (number | null)[]): number | null =>
  known(values).length === 0 ? null : Math.max(...known(values));

/** The ratios within each repeat: their median ignores repeats that are slow as a whole. */
export const pairedRatios = (
  numerators: readonly Pick<Moved, 'seconds'>[],
  denominators: readonly Pick<Moved, 'seconds'>[],
): Statistics =>
  statisticsOf(
    numerators.map(({ seconds }, repeat) => seconds / (denominators[repeat]?.seconds ?? Number.NaN)),
  );

/** Throughput of repeated measurements that each moved all events. */
export function throughputOf(repeats: readonly Moved[], { events, copy_bytes }: Events): Throughput {
  const seconds = statisticsOf(repeats.map((one) => one.seconds));
  return {
    seconds,
    rows_per_second: Math.round(events / seconds.median),
    megabytes_per_second: rounded(copy_bytes / 1e6 / seconds.median),
    cpu_seconds: statisticsOf(repeats.map((one) => one.cpu_seconds)),
  };
}

/** The result as a table. */
export function exportsTable({
  floor,
  pipeline,
  duckdb,
  adbc,
  sling,
  exports,
}: ExportsBenchResult): ResultTable {
  const times = ({ seconds }: Throughput): string[] => [
    seconds.median.toFixed(2),
    `${seconds.minimum.toFixed(2)}–${Math.max(...seconds.all).toFixed(2)}`,
  ];
  const row = (name: string, one: Compared | Skipped, skippedName = name): string[] =>
    'skipped' in one
      ? [`${skippedName}: skipped`]
      : [
          name,
          ...times(one),
          ...[
            one.ratio_to_floor,
            one.ratio_to_pipeline,
            one.ratio_to_duckdb,
            one.ratio_to_adbc,
            one.ratio_to_files,
          ].map((ratio) => ratio?.median.toFixed(2) ?? '-'),
          one.cpu_seconds.median.toFixed(2),
          megabytes(one.peak_memory_bytes),
          megabytes(one.bytes),
          one.s3_requests?.toLocaleString('en') ?? '-',
        ];
  const programCells = ({ cpu_of_programs: { postgresql, temporal, s3 } }: ExportResult): string[] =>
    [postgresql, temporal, s3].map((seconds) => seconds?.toFixed(2) ?? '-');
  const peerRow = (name: string, format: string, peer: ComparedPeer): string[] =>
    row('version' in peer ? `${name} ${peer.version} ${format}` : '', peer, name);
  return {
    headings: [
      'export',
      'seconds',
      'min–max',
      '÷ floor',
      '÷ pipeline',
      '÷ DuckDB',
      '÷ ADBC',
      '÷ files',
      'CPU s',
      'peak MB',
      'size MB',
      'S3 requests',
      'PostgreSQL CPU s',
      'Temporal CPU s',
      'S3 CPU s',
    ],
    rows: [
      [
        `floor (${floor.client}, binary COPY)`,
        ...times(floor),
        '1.00',
        '-',
        '-',
        '-',
        '-',
        floor.cpu_seconds.median.toFixed(2),
      ],
      row('psql | gzip -6 | upload', pipeline, 'shell pipeline'),
      peerRow('DuckDB', 'Parquet+zstd', duckdb),
      peerRow('ADBC', 'Parquet+zstd', adbc),
      peerRow('Sling', 'JSONLines+gzip', sling),
      ...exports.map((one) => [
        ...row(`exportd ${one.format}`, one),
        ...('skipped' in one ? [] : programCells(one)),
      ]),
    ],
  };
}
