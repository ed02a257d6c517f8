import type { Settings } from '../../config/settings.ts';
import { type RangeFile, readFiles, type StoredFile } from '../../decisions/read_files.ts';
import { inDestination, readPublicConfig, selectionOfConfig } from '../../destination/config_versions.ts';
import { partitionColumnsOf } from '../../destination/partitions.ts';
import { manifestOf } from '../../destination/manifest.ts';
import {
  areComparable,
  bucketInterval,
  bucketsOf,
  differingBuckets,
  type Fingerprint,
  fingerprintHashOf,
  totalOf,
} from '../../domain/fingerprint.ts';
import type { DataInterval } from '../../domain/intervals.ts';
import {
  earlierGenerationsOf,
  type ExistingRun,
  exportedFingerprint,
  filesOf,
  sourceAfter,
} from '../../domain/run_state.ts';
import { type FieldChange, fieldChanges, secretChange } from '../../journal/audit.ts';
import type { Pool } from '../../journal/database.ts';
import { readNewestCheck } from '../../projections/interval_checks.ts';
import { stateOf } from '../../projections/stream_states.ts';
import type { Source } from '../../source/source.ts';
import { notFound } from '../api_error.ts';
import { readIntervalPage } from './read_model.ts';
import type { IntervalResponse } from './schema.ts';
import { runColumns, type RunLink, type RunRow, toRunResponse } from '../runs/read_model.ts';
import type { Generation, IntervalDetailResponse, IntervalFile, NewestCheck } from './detail_schema.ts';

/** A completed run of an interval: a generation. */
interface CompletedRun extends RunRow {
  readonly state: ExistingRun;
}

const maxGenerations = 20;

/** Reads the newest completed runs of an interval, newest first. */
export async function readCompletedRuns(
  pool: Pool,
  batchExportId: string,
  { start, end }: DataInterval,
): Promise<CompletedRun[]> {
  const { rows } = await pool.query<RunRow & { readonly state: unknown }>(
    `select completed.*, run_state.state from (
       select ${runColumns} from exportd.batch_export_runs
       where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3 and manifest_key is not null
       order by position desc limit ${maxGenerations}) completed
     join exportd.stream_states run_state on run_state.stream_type = 'run' and run_state.stream_id = completed.id
     order by completed.position desc`,
    [batchExportId, start, end],
  );
  return rows.map((run) => ({ ...run, state: stateOf('run', run.state) as ExistingRun }));
}

/** The fields of a config version, and its sealed secrets. */
interface ConfigFields {
  readonly config: Readonly<Record<string, unknown>>;
  readonly secrets: Readonly<Record<string, string>>;
}

const noFields: ConfigFields = { config: {}, secrets: {} };

/** Reads the config versions of an export. */
async function readConfigs(pool: Pool, batchExportId: string): Promise<ReadonlyMap<number, ConfigFields>> {
  const { rows } = await pool.query<ConfigFields & { readonly version: number }>(
    'select version, config, secrets from exportd.destination_configs where batch_export_id = $1',
    [batchExportId],
  );
  return new Map(rows.map(({ version, config, secrets }) => [version, { config, secrets }]));
}

/**
 * The fields in which two config versions differ. A secret differs if its sealed value does: a kept secret is copied without being
 * sealed again.
 */
function configChanges(before: ConfigFields, after: ConfigFields): FieldChange[] {
  const secrets = new Set([...Object.keys(before.secrets), ...Object.keys(after.secrets)]);
  return [
    ...fieldChanges(before.config, after.config),
    ...[...secrets].filter((field) => before.secrets[field] !== after.secrets[field]).map(secretChange),
  ].map(inDestination);
}

/** The generations of an interval, newest first, each with what differs from the one before. */
async function describeGenerations(
  pool: Pool,
  batchExportId: string,
  runs: readonly CompletedRun[],
  { manifestRunId, linkOf }: { readonly manifestRunId: string | null; readonly linkOf: RunLink },
): Promise<Generation[]> {
  const configs = await readConfigs(pool, batchExportId);
  return runs.map((run, index) => {
    const { spec, settled, rejected_file } = run.state;
    const { count: files, rows, bytes } = filesOf(run.state);
    const former = runs[index + 1];
    return {
      generation: run.generation,
      is_current: run.id === manifestRunId,
      run: toRunResponse(run, linkOf),
      config_version: spec.config_version,
      model: spec.model,
      files,
      rows,
      rejected_rows: rejected_file?.rows ?? 0,
      bytes,
      settled,
      difference: former ? differenceOf(former.state, run.state, configs) : null,
    };
  });
}

function differenceOf(
  former: ExistingRun,
  run: ExistingRun,
  configs: ReadonlyMap<number, ConfigFields>,
): Generation['difference'] {
  const [before, after] = [filesOf(former), filesOf(run)];
  const configOf = ({ spec }: ExistingRun) => configs.get(spec.config_version) ?? noFields;
  return {
    rows: after.rows - before.rows,
    bytes: after.bytes - before.bytes,
    files: after.count - before.count,
    buckets: bucketDifferences(exportedFingerprint(former), exportedFingerprint(run), {
      start: run.spec.data_interval_start,
      end: run.spec.data_interval_end,
    }),
    fields: configChanges(configOf(former), configOf(run)),
  };
}

function bucketDifferences(
  before: Fingerprint,
  after: Fingerprint,
  interval: DataInterval,
): NonNullable<Generation['difference']>['buckets'] {
  if (!areComparable(before, after)) return null;
  return differingBuckets(before, after).map(({ index, one, other }) => ({
    ...bucketInterval(interval, after, index),
    before: one?.rows ?? 0,
    after: other?.rows ?? 0,
  }));
}

/** The files of a response. */
const maxFiles = 500;

export interface FileRow {
  readonly range: number | null;
  readonly key: string;
  readonly file: StoredFile;
}

/** A file without its fingerprint. */
export const toIntervalFile = (file: Omit<RangeFile, 'fingerprint'>): IntervalFile => ({
  key: file.key,
  range: file.range,
  rows: file.rows,
  bytes: file.bytes,
  crc32: file.crc32,
  first: file.first,
  last: file.last,
  rejected: file.rejected,
  expires_at: file.expires_at,
});

/**
 * The fingerprint of the source right after the export against that of the files and the rejected rows, by insertion
 * time. Null if they are not comparable, because persons decide which rows are selected.
 */
function fingerprintsOf(run: ExistingRun): IntervalDetailResponse['fingerprints'] {
  if (run.phase.name === 'exporting') return null;
  const source = sourceAfter(run);
  const bucket = exportedFingerprint(run);
  if (!areComparable(source, bucket)) return null;
  const interval = { start: run.spec.data_interval_start, end: run.spec.data_interval_end };
  const rowsByIndex = (fingerprint: Fingerprint) =>
    new Map(bucketsOf(fingerprint).map(({ index, rows }) => [index, rows]));
  const [ofSource, ofBucket] = [rowsByIndex(source), rowsByIndex(bucket)];
  const differing = new Set(differingBuckets(source, bucket).map(({ index }) => index));
  const indexes = [...new Set([...ofSource.keys(), ...ofBucket.keys()])];
  const hash = fingerprintHashOf(run.spec.model);
  return {
    source: totalOf(hash, [source]),
    bucket: totalOf(hash, [bucket]),
    is_equal: differing.size === 0,
    buckets: indexes
      .toSorted((one, other) => one - other)
      .map((index) => ({
        ...bucketInterval(interval, source, index),
        source_rows: ofSource.get(index) ?? 0,
        bucket_rows: ofBucket.get(index) ?? 0,
        is_equal: !differing.has(index),
      })),
  };
}

/** What reading an interval needs. */
interface IntervalDetailDependencies {
  readonly pool: Pool;
  readonly source: Pick<Source, 'columns'>;
  readonly runLink: RunLink;
  readonly settings: Pick<Settings, 'EXPORTD_COMPARISON_FIRST'>;
}

const maxRuns = 50;

/** Reads the entry of the ledger that contains a time. @throws ApiError 404 */
export async function readIntervalAt(
  pool: Pool,
  batchExportId: string,
  time: string,
): Promise<IntervalResponse> {
  const { intervals } = await readIntervalPage(pool, batchExportId, {
    after: time,
    before: new Date(Date.parse(time) + 1).toISOString(),
    limit: 1,
    statuses: undefined,
  });
  const [found] = intervals;
  if (!found) throw notFound();
  return found;
}

/** Reads everything that exportd knows of the interval that contains a time. @throws ApiError 404 */
export async function readIntervalDetail(
  { pool, source, runLink, settings }: IntervalDetailDependencies,
  batchExportId: string,
  time: string,
): Promise<IntervalDetailResponse> {
  const interval = await readIntervalAt(pool, batchExportId, time);
  const bounds = { start: interval.data_interval_start, end: interval.data_interval_end };
  const [around, runs, completed, checked] = await Promise.all([
    readAround(pool, batchExportId, bounds, settings.EXPORTD_COMPARISON_FIRST),
    readRuns(pool, batchExportId, bounds),
    readCompletedRuns(pool, batchExportId, bounds),
    readNewestCheck(pool, batchExportId, bounds),
  ]);
  const generations = await describeGenerations(pool, batchExportId, completed, {
    manifestRunId: interval.manifest_run_id,
    linkOf: runLink,
  });
  const current = completed.find(({ id }) => id === interval.manifest_run_id);
  const manifest = current ? await readManifest(pool, source, current) : withoutManifest;
  const held_at = interval.held === null ? null : (runs[0]?.finished_at ?? null);
  return {
    interval,
    ...around,
    runs: runs.map((run) => toRunResponse(run, runLink)),
    generations,
    ...manifest,
    newest_check: newestCheckOf({ interval, fingerprints: manifest.fingerprints, held_at, checked }),
  };
}

/** The newest comparison of the current files with the source, whatever has made it. */
function newestCheckOf({
  interval: { manifest_run_id, completed_at, comparison, held, decision },
  fingerprints,
  held_at,
  checked,
}: {
  readonly interval: Pick<
    IntervalResponse,
    'manifest_run_id' | 'completed_at' | 'comparison' | 'held' | 'decision'
  >;
  readonly fingerprints: Pick<NonNullable<IntervalDetailResponse['fingerprints']>, 'is_equal'> | null;
  /** When the run was held that left the interval held. */
  readonly held_at: string | null;
  /** The newest check beside the comparisons of the maintenance. */
  readonly checked: Awaited<ReturnType<typeof readNewestCheck>>;
}): NewestCheck | null {
  if (manifest_run_id === null || completed_at === null) return null;
  const equal = 'The files have the rows of the source';
  const differ = 'The files and the source differ';
  const checks: NewestCheck[] = [];
  const kept = decision?.decision === 'keep' ? decision : null;
  if (kept)
    checks.push({
      kind: 'decision',
      at: kept.at,
      is_equal: true,
      summary: `${equal}, apart from ${rowsOf(kept.rows)} that are kept`,
    });
  // The rows that are kept are not in the source.
  if (fingerprints && !kept)
    checks.push({
      kind: 'export',
      at: completed_at,
      is_equal: fingerprints.is_equal,
      summary: fingerprints.is_equal ? equal : differ,
    });
  if (comparison) {
    const is_equal = comparison.outcome === 'equal';
    const { added_rows, missing_rows } = comparison;
    checks.push({
      kind: 'comparison',
      at: comparison.compared_at,
      is_equal: is_equal || comparison.kept || comparison.outcome === 'source_expired',
      summary: is_equal
        ? equal
        : comparison.outcome === 'source_expired'
          ? 'The source has deleted the rows of the interval, and the files keep them'
          : `${differ}: at least ${rowsOf(added_rows)} are only in the source and ${rowsOf(missing_rows)} only in the files`,
    });
  }
  if (held && held_at !== null)
    checks.push({
      kind: 'held_run',
      at: held_at,
      is_equal: false,
      summary: `${differ}: the source no longer has ${rowsOf(held.missing_rows)} of the files`,
    });
  if (checked && Date.parse(checked.checked_at) >= Date.parse(completed_at))
    checks.push({
      kind: checked.checked_by,
      at: checked.checked_at,
      is_equal: checked.difference === null,
      summary: checked.difference === null ? equal : `${differ}: ${checked.difference}`,
    });
  return checks.toSorted((one, other) => Date.parse(other.at) - Date.parse(one.at))[0] ?? null;
}

const rowsOf = (count: number): string => `${count.toLocaleString('en')} ${count === 1 ? 'row' : 'rows'}`;

type ManifestFields = Pick<
  IntervalDetailResponse,
  'files' | 'rejected_file' | 'kept' | 'earlier' | 'fingerprints' | 'manifest'
>;

const withoutManifest: ManifestFields = {
  files: [],
  rejected_file: null,
  kept: [],
  earlier: [],
  fingerprints: null,
  manifest: null,
};

/** The current manifest, made again from the journal: it depends on nothing else. */
async function readManifest(
  pool: Pool,
  source: Pick<Source, 'columns'>,
  { id, batch_export_id, manifest_key, state }: CompletedRun,
): Promise<ManifestFields> {
  const config = await readPublicConfig(pool, batch_export_id, state.spec.config_version);
  const files = (await readFiles(pool, id, state)).slice(0, maxFiles);
  const columns = source.columns(state.spec.model, selectionOfConfig(config));
  const { bucket_name, endpoint_url } = config.config;
  const { kept, earlier } = earlierGenerationsOf(state);
  const { rejected_file } = state;
  // There may be more files than the response has.
  const totals = filesOf(state);
  return {
    files: files.map(toIntervalFile),
    rejected_file: rejected_file && {
      key: rejected_file.key,
      rows: rejected_file.rows,
      bytes: rejected_file.bytes,
    },
    kept: [...kept],
    earlier: [...earlier],
    fingerprints: fingerprintsOf(state),
    manifest: {
      bucket: typeof bucket_name === 'string' ? bucket_name : '',
      endpoint: typeof endpoint_url === 'string' ? endpoint_url : null,
      key: manifest_key ?? '',
      body: {
        ...manifestOf(id, state, files, columns, partitionColumnsOf(config.config)),
        rows: totals.rows,
        bytes: totals.bytes,
      },
    },
  };
}

/** The intervals with runs before and after an interval, and when its manifest is compared next: never if `firstMs` is 0. */
async function readAround(
  pool: Pool,
  batchExportId: string,
  { start, end }: DataInterval,
  firstMs: number,
): Promise<Pick<IntervalDetailResponse, 'previous' | 'next' | 'next_comparison_at'>> {
  const { rows } = await pool.query<{
    previous: string | null;
    next: string | null;
    next_comparison_at: string | null;
  }>(
    `select
       (select max(data_interval_start) from exportd.intervals
        where batch_export_id = $1 and data_interval_start < $2 and run_id is not null) as previous,
       (select min(data_interval_start) from exportd.intervals
        where batch_export_id = $1 and data_interval_start >= $3 and run_id is not null) as next,
       (select next_due_at
          + make_interval(secs => case when comparisons = 0 then $4::double precision / 1000 else 0 end)
        from exportd.interval_comparisons
        where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3 and $4 > 0) as next_comparison_at`,
    [batchExportId, start, end, firstMs],
  );
  return rows[0] ?? { previous: null, next: null, next_comparison_at: null };
}

async function readRuns(pool: Pool, batchExportId: string, { start, end }: DataInterval): Promise<RunRow[]> {
  const { rows } = await pool.query<RunRow>(
    `select ${runColumns} from exportd.batch_export_runs
     where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3
     order by position desc limit ${maxRuns}`,
    [batchExportId, start, end],
  );
  return rows;
}
