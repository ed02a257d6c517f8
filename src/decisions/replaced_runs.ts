import type { RunInterval } from '../contract/workflow_ids.ts';
import { areInSameBucket, createMayShrink } from '../destination/config_versions.ts';
import type { EarlierGenerations } from '../domain/earlier_generations.ts';
import {
  adoptedRun,
  decideEarlierGenerations,
  isCoveredByRows,
  type ReplacedRun,
} from '../domain/replaced_generation.ts';
import { runDecider, RunEnded } from '../domain/run.ts';
import { earlierGenerationsOf, type ExistingRun, type RunState } from '../domain/run_state.ts';
import type { Connection, Pool } from '../journal/database.ts';
import { type Journal, readState } from '../journal/journal.ts';
import { checkedIntervals, differsNow } from '../projections/interval_checks.ts';
import { readFiles, readReplacedFiles } from './read_files.ts';

/** What a run finds of the others of its interval and its export. While it is active, only its own steps change it. */
export interface OtherRuns {
  /** Whether the export has had no other run. */
  readonly isFirstOfExport: boolean;
  /** Whether the interval may have a manifest that the run replaces. */
  readonly mayReplace: boolean;
  /** The generation that the run reserves, as long as it has none. */
  readonly nextGeneration: number;
}

/** A run, and what it finds of others. */
export interface RunAmongOthers {
  readonly run: ExistingRun;
  readonly others: OtherRuns;
}

/**
 * Reads a run and what it finds of others, with one statement.
 * @throws RunEnded when there is no such run
 */
export async function readRunAmongOthers(
  { pool, projector }: Pick<Journal, 'pool' | 'projector'>,
  runId: string,
): Promise<RunAmongOthers> {
  const { rows } = await pool.query<{
    state: unknown;
    is_first: boolean;
    may_replace: boolean;
    next_generation: number;
  }>({
    name: 'run-among-others',
    text: `select folded.state, coalesce(former.may_replace, true) as may_replace, ${nextGenerationSql('run', 'former')} as next_generation,
        not exists (select from exportd.batch_export_runs other
          where other.batch_export_id = run.batch_export_id and other.id <> run.id) as is_first
      from exportd.stream_states folded
      join exportd.batch_export_runs run on run.id = folded.stream_id
      left join lateral (
        select max(greatest(generation, adopted_generation)) as generation,
          bool_or(manifest_key is not null or adopted_generation is not null) as may_replace
        from exportd.batch_export_runs of_interval where ${isOfInterval('of_interval', 'run')}) former on true
      where folded.stream_type = 'run' and folded.stream_id = $1`,
    values: [runId],
  });
  const [found] = rows;
  if (!found) throw new RunEnded('Absent');
  const run = projector.stateOf('run', found.state) as RunState;
  if (run.status === 'Absent') throw new RunEnded('Absent');
  const { is_first: isFirstOfExport, may_replace: mayReplace, next_generation: nextGeneration } = found;
  return { run, others: { isFirstOfExport, mayReplace, nextGeneration } };
}

/** SQL: whether two relations with its columns are of the same interval. */
const isOfInterval = (one: string, other: string): string =>
  `${one}.batch_export_id = ${other}.batch_export_id and ${one}.data_interval_start = ${other}.data_interval_start
    and ${one}.data_interval_end = ${other}.data_interval_end`;

/** SQL: the generation after all that the runs of an interval, also collapsed ones, have reserved. */
const nextGenerationSql = (run: string, former: string): string =>
  `greatest(${former}.generation, (select collapsed_generation from exportd.intervals ledger where ${isOfInterval('ledger', run)}), 0) + 1`;

/** Decides which files of earlier generations stay when a run publishes. @throws ConfigVersionNotFound */
export async function readEarlierGenerations(
  connection: Connection,
  runId: string,
  run: ExistingRun,
  replaced: ReplacedRun,
): Promise<EarlierGenerations> {
  const isCovered = isCoveredByRows(run, replaced);
  const files = isCovered
    ? { own: [], replaced: [] }
    : {
        own: await readFiles(connection, runId, run),
        replaced: await readReplacedFiles(connection, replaced),
      };
  // Nothing can stay, so that the configs need not be read.
  const { kept, earlier, elsewhere } = earlierGenerationsOf(replaced.run);
  if (isCovered && [kept, earlier, elsewhere].every(({ length }) => length === 0))
    return decideEarlierGenerations(run, replaced, { mayShrink: false, isSameBucket: true, files });
  return decideEarlierGenerations(run, replaced, {
    mayShrink: await createMayShrink(connection)(run.spec),
    isSameBucket: await areInSameBucket(connection, run.spec, replaced.run.spec),
    files,
  });
}

/** Whether a comparison or a check has found since the interval was exported that its files differ from the source. */
export async function isKnownToDiffer(
  pool: Pool,
  spec: RunInterval,
  manifestRunId: string,
): Promise<boolean> {
  const { rowCount } = await pool.query(
    `select from exportd.interval_comparisons where run_id = $4 and outcome in ('rows_added', 'rows_missing', 'both')
     union all
     select from ${checkedIntervals}
     where ${differsNow} and batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3`,
    [spec.batch_export_id, spec.data_interval_start, spec.data_interval_end, manifestRunId],
  );
  return rowCount !== 0;
}

/** Whether a run has published a manifest of the interval. */
export async function hasPublished(pool: Pool, spec: RunInterval, runId: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    `select from exportd.batch_export_runs where id::text = $1 and batch_export_id = $2 and data_interval_start = $3
     and data_interval_end = $4 and manifest_key is not null`,
    [runId, spec.batch_export_id, spec.data_interval_start, spec.data_interval_end],
  );
  return rowCount === 1;
}

/** Whether another run of the interval than this one has claimed publishing, so that its manifest may be stored. */
export async function mayHavePublished(pool: Pool, spec: RunInterval, runId: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    `select from exportd.batch_export_runs run
     join exportd.stream_states folded on folded.stream_type = 'run' and folded.stream_id = run.id
     where run.batch_export_id = $1 and run.data_interval_start = $2 and run.data_interval_end = $3 and run.id <> $4
       and folded.state->'phase'->>'name' = 'publishing' limit 1`,
    [spec.batch_export_id, spec.data_interval_start, spec.data_interval_end, runId],
  );
  return rowCount === 1;
}

/** Whether a manifest of an interval is that of a run whose history was collapsed. */
export async function isCollapsedRun(pool: Pool, spec: RunInterval, runId: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    `select from exportd.intervals where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3
       and collapsed_generation is not null and manifest_run_id::text = $4`,
    [spec.batch_export_id, spec.data_interval_start, spec.data_interval_end, runId],
  );
  return rowCount === 1;
}

/**
 * Reads the run whose manifest another run of its interval would replace: the newest Completed one, or the one whose
 * manifest a newer run found in the bucket and adopted. Null if there is none. An interval has at most one active run, so
 * the result changes only when that run adopts a manifest.
 */
export async function findReplacedRun(
  journal: Pick<Journal, 'pool' | 'projector'>,
  spec: RunInterval,
): Promise<ReplacedRun | null> {
  const { rows } = await journal.pool.query<{ id: string }>(
    `select id from exportd.batch_export_runs where batch_export_id = $1 and data_interval_start = $2
     and data_interval_end = $3 and (manifest_key is not null or adopted_generation is not null)
     order by position desc limit 1`,
    [spec.batch_export_id, spec.data_interval_start, spec.data_interval_end],
  );
  const [found] = rows;
  if (!found) return null;
  const run = await readState(journal, runDecider, found.id);
  if (run.status === 'Absent') return null;
  if (run.status !== 'Completed' && run.adopted) return adoptedRun(run.adopted, run.spec, found.id);
  return { run_id: found.id, run, adopted_by: null };
}
