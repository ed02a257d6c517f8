import { readPublicConfig, selectionOfConfig } from '../destination/config_versions.ts';
import {
  backfillDecider,
  type BackfillRange,
  type BackfillSpec,
  decideBackfill,
  decideBackfillControl,
  decideRetry,
  decideRetryOfFailed,
  requireBackfillRange,
} from '../domain/backfill.ts';
import {
  type BatchExportEvent,
  type BatchExportState,
  type LiveBatchExport,
  requireLive,
  type RetryReason,
} from '../domain/batch_export.ts';
import { CommandRejected } from '../domain/errors.ts';
import type { RunDefinition } from '../domain/run_state.ts';
import type { CommandOutcome } from '../journal/commands.ts';
import type { Connection } from '../journal/database.ts';
import { deterministicId, type JournalTransaction, type LockedStream } from '../journal/journal.ts';
import { createBackfillRuns } from './advance_backfill.ts';
import { findActiveRun, type Policies } from './create_run.ts';
import { cancelUnwantedRetries, findFailedIntervals } from './retries.ts';
import { cancelRuns } from './run_outcomes.ts';

/** What deciding a command requires. */
export interface CommandContext {
  readonly transaction: JournalTransaction;
  readonly batchExport: LockedStream<BatchExportState, BatchExportEvent>;
  readonly policies: Policies;
  readonly commandId: string;
  /** The cause under which the command's events are appended. */
  readonly cause: string;
}

/** What the workflow has to do outside the database after a command. */
export interface CommandEffect {
  /** False when the command changed nothing. */
  readonly applied: boolean;
  readonly outcome: CommandOutcome;
  /** Backfills whose workflow has to be started or woken. */
  readonly wake_backfills: readonly string[];
  /** Runs whose workflow has to be cancelled. */
  readonly cancel_runs: readonly string[];
}

/** Creates an effect; without `more`, one that is limited to the database. */
export const createEffect = (applied: boolean, more: Partial<CommandEffect> = {}): CommandEffect => ({
  applied,
  outcome: {},
  wake_backfills: [],
  cancel_runs: [],
  ...more,
});

/**
 * The model and config with which exportd itself exports the interval of a run again. A changed model or selection is not
 * applied to what was exported before until a person asks for it, so the run's own are kept. Undefined for the current
 * ones, if they select the same rows: they may have new credentials.
 */
async function definitionToKeep(
  connection: Connection,
  { definition }: Pick<LiveBatchExport, 'definition'>,
  batchExportId: string,
  runId: string,
): Promise<RunDefinition | undefined> {
  const { rows } = await connection.query<RunDefinition>(
    'select model, config_version from exportd.batch_export_runs where id = $1',
    [runId],
  );
  const [exported] = rows;
  if (!exported) return undefined;
  const { model, config_version } = definition;
  if (exported.model === model) {
    if (exported.config_version === config_version) return undefined;
    const read = async (version: number): Promise<string> =>
      JSON.stringify(selectionOfConfig(await readPublicConfig(connection, batchExportId, version)));
    if ((await read(exported.config_version)) === (await read(config_version))) return undefined;
  }
  return exported;
}

/** First key of the advisory lock on a project's backfills; the second is the project's id. */
const projectBackfillsLock = 5_140_518;

/** Requests a backfill of a range and creates its first runs. */
export async function applyBackfill(
  context: CommandContext,
  body: { start_at: string; end_at: string; allow_shrink?: boolean | undefined },
): Promise<CommandEffect> {
  const { batchExport, commandId, cause } = context;
  const request = {
    backfill_id: deterministicId('command', commandId, 'backfill'),
    start_at: new Date(body.start_at).toISOString(),
    end_at: new Date(body.end_at).toISOString(),
    allow_shrink: body.allow_shrink ?? false,
  };
  const bounded = { ...request, ...backfillLimits(context) };
  await batchExport.append(cause, decideBackfill(batchExport.state(), bounded));
  return startBackfill(context, request, requireBackfillRange(requireLive(batchExport.state()), bounded));
}

/** Retries a run: creates a backfill of its interval. `reason` is set only if exportd itself requests the retry. */
export async function applyRetry(
  context: CommandContext,
  body: { run_id: string; allow_shrink?: boolean | undefined; reason?: RetryReason },
): Promise<CommandEffect> {
  const { batchExport, transaction, commandId, cause } = context;
  const { rows } = await transaction.connection.query<{ start: string; end: string }>(
    `select data_interval_start as start, data_interval_end as end from exportd.batch_export_runs
     where id = $1 and batch_export_id = $2`,
    [body.run_id, batchExport.id],
  );
  const [interval] = rows;
  if (!interval) throw new CommandRejected('not_found', 'Not found.');
  const backfillId = deterministicId('command', commandId, 'backfill');
  const allow_shrink = body.allow_shrink ?? false;
  await batchExport.append(
    cause,
    decideRetry(batchExport.state(), {
      backfill_id: backfillId,
      run_id: body.run_id,
      allow_shrink,
      reason: body.reason,
      interval,
      active_run_id: await findActiveRun(transaction.connection, batchExport.id, interval),
    }),
  );
  const range = { start_at: interval.start, end_at: interval.end };
  const definition =
    body.reason === undefined
      ? undefined
      : await definitionToKeep(
          transaction.connection,
          requireLive(batchExport.state()),
          batchExport.id,
          body.run_id,
        );
  // The limit applies to user requests only. Late rows must be exported, however many intervals have them.
  if (body.reason === undefined) await requireBackfillCapacity(context);
  return createBackfill(
    context,
    { backfill_id: backfillId, allow_shrink, ...range, ...(definition && { definition }) },
    { ...interval, intervals: 1 },
    body.run_id,
  );
}

/** The limits on a range that a command requests. */
export const backfillLimits = ({ transaction, policies }: CommandContext) => ({
  now: transaction.now,
  maxIntervals: policies.maxBackfillIntervals,
});

type BackfillRequest = Pick<
  BackfillSpec,
  'start_at' | 'end_at' | 'allow_shrink' | 'definition' | 'failed_runs'
> & {
  readonly backfill_id: string;
};

/** Creates a requested backfill over the whole intervals of its range, if the project has capacity. */
export async function startBackfill(
  context: CommandContext,
  request: BackfillRequest,
  range: BackfillRange,
): Promise<CommandEffect> {
  await requireBackfillCapacity(context);
  return createBackfill(context, request, range, null);
}

/** Creates a backfill, whatever the number of those that the project has. */
async function createBackfill(
  context: CommandContext,
  request: BackfillRequest,
  range: BackfillRange,
  retryOf: string | null,
): Promise<CommandEffect> {
  const { batchExport, transaction, policies, cause } = context;
  const live = requireLive(batchExport.state());
  const backfill = await transaction.lock(backfillDecider, request.backfill_id);
  await backfill.append(cause, [
    {
      type: 'BackfillStarted',
      data: {
        batch_export_id: batchExport.id,
        team_id: live.team_id,
        start_at: request.start_at,
        end_at: request.end_at,
        first_start: range.start,
        last_end: range.end,
        total_runs: range.intervals,
        revisions: live.revisions,
        retry_of_run_id: retryOf,
        allow_shrink: request.allow_shrink,
        ...(request.definition && { definition: request.definition }),
        ...(request.failed_runs && { failed_runs: request.failed_runs }),
      },
    },
  ]);
  await createBackfillRuns(transaction, live, batchExport.id, backfill, policies);
  const state = backfill.state();
  const runId = state.status === 'Absent' ? undefined : state.active[0];
  return createEffect(true, {
    outcome: {
      backfill_id: request.backfill_id,
      ...(retryOf !== null && runId !== undefined ? { run_id: runId } : {}),
    },
    wake_backfills: [request.backfill_id],
  });
}

/**
 * Rejects a backfill above the project's limit. Those of failed runs do not count: there is at most one for each request
 * and export. Exports of a project are decided concurrently, so it counts under a lock of the project. In the lock order
 * this lock is between those of an export and of its backfills.
 */
async function requireBackfillCapacity(context: CommandContext): Promise<void> {
  const { team_id: teamId } = requireLive(context.batchExport.state());
  const { connection } = context.transaction;
  await connection.query('select pg_advisory_xact_lock($1, $2)', [projectBackfillsLock, teamId]);
  const { rows } = await connection.query<{ active: number }>(
    'select count(*) as active from exportd.backfills where team_id = $1 and finished_at is null and not retries_failed',
    [teamId],
  );
  const active = rows[0]?.active ?? 0;
  if (active >= context.policies.maxBackfillsPerProject)
    throw new CommandRejected(
      'too_many_concurrent_backfills',
      `This project already has ${active} unfinished backfills (EXPORTD_MAX_BACKFILLS_PER_PROJECT). Wait for some to finish or cancel them.`,
    );
}

/**
 * Pauses, unpauses or cancels a backfill. Cancelling also cancels its active runs and automatic retries, unless the
 * schedule or another backfill wants them too: the last of them to be cancelled ends them.
 */
export async function applyBackfillControl(
  context: CommandContext,
  body: { backfill_id: string },
  command: 'pause' | 'unpause' | 'cancel',
): Promise<CommandEffect> {
  const { transaction, batchExport, cause } = context;
  requireLive(batchExport.state());
  const { rows } = await transaction.connection.query(
    'select from exportd.backfills where id = $1 and batch_export_id = $2',
    [body.backfill_id, batchExport.id],
  );
  if (rows.length === 0) throw new CommandRejected('not_found', 'Not found.');
  const backfill = await transaction.lock(backfillDecider, body.backfill_id);
  const events = decideBackfillControl(backfill.state(), command);
  await backfill.append(cause, events);
  if (command !== 'cancel' || events.length === 0)
    return createEffect(events.length > 0, { wake_backfills: [body.backfill_id] });
  const cancellation = { cause, reason: 'The backfill was cancelled.' };
  const cancelled = await cancelRuns(transaction, batchExport.id, 'unwanted', cancellation);
  await cancelUnwantedRetries(transaction, batchExport.id, cancellation);
  return createEffect(true, { wake_backfills: [body.backfill_id], cancel_runs: cancelled });
}

/**
 * Re-exports every interval whose latest run failed (since `since`, if given), with one backfill for all of them: they are
 * many after an outage, and the limits on ranges that a user chooses do not apply to them. Runs that are held for a
 * decision are left out.
 */
export async function applyRetryFailed(
  context: CommandContext,
  body: { since?: string | null },
): Promise<CommandEffect> {
  const { batchExport, transaction, commandId, cause } = context;
  const failed_runs = { since: body.since ?? null, until: transaction.now.toISOString() };
  const failed = await findFailedIntervals(transaction.connection, batchExport.id, failed_runs);
  const backfill_id = deterministicId('command', commandId, 'backfill');
  const runs = failed?.intervals ?? 0;
  await batchExport.append(
    cause,
    decideRetryOfFailed(batchExport.state(), { backfill_id, runs, ...failed_runs }),
  );
  if (!failed) return createEffect(false, { outcome: { runs } });
  const request = {
    backfill_id,
    start_at: failed.start,
    end_at: failed.end,
    allow_shrink: false,
    failed_runs,
  };
  const effect = await createBackfill(context, request, failed, null);
  return { ...effect, outcome: { ...effect.outcome, runs } };
}
