import { manifestOf } from '../../../destination/manifest.ts';
import { readPublicConfig, selectionOfConfig } from '../../../destination/config_versions.ts';
import type { DataInterval } from '../../../domain/intervals.ts';
import { filesOf } from '../../../domain/run_state.ts';
import type { Pool } from '../../../journal/database.ts';
import type { Source } from '../../../source/source.ts';
import { notFound } from '../../api_error.ts';
import type { IntervalDetailResponse } from '../../schemas/console/interval_detail.ts';
import type { IntervalResponse } from '../../schemas/interval.ts';
import { readIntervalPage } from '../intervals.ts';
import { runColumns, toRunResponse, type RunLink, type RunRow } from '../runs.ts';
import { describeGenerations, readCompletedRuns, type CompletedRun } from './generations.ts';
import { readFirstFiles, toIntervalFile } from './interval_files.ts';
import { proofOf } from './proof.ts';

/** What reading an interval needs. */
export interface IntervalDetailDependencies {
  readonly pool: Pool;
  readonly source: Pick<Source, 'columns'>;
  readonly runLink: RunLink;
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
  { pool, source, runLink }: IntervalDetailDependencies,
  batchExportId: string,
  time: string,
): Promise<IntervalDetailResponse> {
  const interval = await readIntervalAt(pool, batchExportId, time);
  const bounds = { start: interval.data_interval_start, end: interval.data_interval_end };
  const [around, runs, completed] = await Promise.all([
    readAround(pool, batchExportId, bounds),
    readRuns(pool, batchExportId, bounds),
    readCompletedRuns(pool, batchExportId, bounds),
  ]);
  const generations = await describeGenerations(pool, batchExportId, completed, {
    manifestRunId: interval.manifest_run_id,
    linkOf: runLink,
  });
  const current = completed.find(({ id }) => id === interval.manifest_run_id);
  return {
    interval,
    ...around,
    runs: runs.map((run) => toRunResponse(run, runLink)),
    generations,
    ...(current ? await readManifest(pool, source, current) : withoutManifest),
  };
}

type ManifestFields = Pick<
  IntervalDetailResponse,
  'files' | 'rejected_file' | 'kept' | 'earlier' | 'proof' | 'manifest'
>;

const withoutManifest: ManifestFields = {
  files: [],
  rejected_file: null,
  kept: [],
  earlier: [],
  proof: null,
  manifest: null,
};

/** The current manifest, made again from the journal: it depends on nothing else. */
async function readManifest(
  pool: Pool,
  source: Pick<Source, 'columns'>,
  { id, batch_export_id, manifest_key, state }: CompletedRun,
): Promise<ManifestFields> {
  const config = await readPublicConfig(pool, batch_export_id, state.spec.config_version);
  const files = await readFirstFiles(pool, id, state);
  const columns = source.columns(state.spec.model, selectionOfConfig(config));
  const { bucket_name, endpoint_url } = config.config;
  const { kept, earlier } = state.earlier_generations;
  const { rejected_file } = state;
  // There may be more files than were read.
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
    proof: proofOf(state),
    manifest: {
      bucket: typeof bucket_name === 'string' ? bucket_name : '',
      endpoint: typeof endpoint_url === 'string' ? endpoint_url : null,
      key: manifest_key ?? '',
      body: { ...manifestOf(id, state, files, columns), rows: totals.rows, bytes: totals.bytes },
    },
  };
}

/** The intervals with runs before and after an interval, and when its manifest is compared next. */
async function readAround(
  pool: Pool,
  batchExportId: string,
  { start, end }: DataInterval,
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
       (select next_due_at from exportd.interval_comparisons
        where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3) as next_comparison_at`,
    [batchExportId, start, end],
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
