import {
  areComparable,
  bucketInterval,
  differingBuckets,
  type Fingerprint,
} from '../../../domain/fingerprint.ts';
import type { DataInterval } from '../../../domain/intervals.ts';
import { type ExistingRun, exportedFingerprint, filesOf } from '../../../domain/run_state.ts';
import type { Pool } from '../../../journal/database.ts';
import type { Generation } from '../../schemas/console/interval_detail.ts';
import { runColumns, toRunResponse, type RunLink, type RunRow } from '../runs.ts';
import { readConfigFields } from './config_fields.ts';
import { fieldChanges, noFields, type ExportFields } from './field_changes.ts';

/** A completed run of an interval: a generation. */
export interface CompletedRun extends RunRow {
  readonly state: ExistingRun;
}

const maxGenerations = 20;

/** Reads the newest completed runs of an interval, newest first. */
export async function readCompletedRuns(
  pool: Pool,
  batchExportId: string,
  { start, end }: DataInterval,
): Promise<CompletedRun[]> {
  const { rows } = await pool.query<CompletedRun>(
    `select completed.*, run_state.state from (
       select ${runColumns} from exportd.batch_export_runs
       where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3 and status = 'Completed'
       order by position desc limit ${maxGenerations}) completed
     join exportd.stream_states run_state on run_state.stream_type = 'run' and run_state.stream_id = completed.id
     order by completed.position desc`,
    [batchExportId, start, end],
  );
  return rows;
}

/** The generations of an interval, newest first, each with what differs from the one before. */
export async function describeGenerations(
  pool: Pool,
  batchExportId: string,
  runs: readonly CompletedRun[],
  { manifestRunId, linkOf }: { readonly manifestRunId: string | null; readonly linkOf: RunLink },
): Promise<Generation[]> {
  const configs = await readConfigFields(pool, batchExportId);
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
  configs: ReadonlyMap<number, ExportFields>,
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
    fields: fieldChanges(configOf(former), configOf(run)),
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
