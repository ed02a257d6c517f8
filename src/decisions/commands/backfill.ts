import {
  backfillDecider,
  type BackfillRange,
  type BackfillScope,
  type BackfillSpec,
  decideBackfill,
  requireBackfillRange,
} from '../../domain/backfill.ts';
import { requireLive } from '../../domain/batch_export.ts';
import { CommandRejected } from '../../domain/errors.ts';
import { deterministicId } from '../../journal/journal.ts';
import { createBackfillRuns } from '../advance_backfill.ts';
import { requireMissing, toRecordedRange } from '../ledger_boundaries.ts';
import { type CommandContext, type CommandEffect, createEffect } from './command_context.ts';

/** First key of the advisory lock on a project's backfills; the second is the project's id. */
const projectBackfillsLock = 5_140_518;

/** Requests a backfill of a range and creates its first runs. */
export async function applyBackfill(
  context: CommandContext,
  body: { start_at: string; end_at: string; allow_shrink?: boolean | undefined } & BackfillScope,
): Promise<CommandEffect> {
  const { batchExport, commandId, cause } = context;
  const request = {
    backfill_id: deterministicId('command', commandId, 'backfill'),
    start_at: new Date(body.start_at).toISOString(),
    end_at: new Date(body.end_at).toISOString(),
    allow_shrink: body.allow_shrink ?? false,
    only: body.only,
    rewrite: body.rewrite,
  };
  const bounded = { ...request, ...backfillLimits(context) };
  await batchExport.append(cause, decideBackfill(batchExport.state(), bounded));
  const range = requireBackfillRange(requireLive(batchExport.state()), bounded);
  return startBackfill(context, request, range);
}

/** The limits on a range that a command requests. */
export const backfillLimits = ({ transaction, policies }: CommandContext) => ({
  now: transaction.now,
  maxIntervals: policies.maxBackfillIntervals,
});

type BackfillRequest = Pick<BackfillSpec, 'start_at' | 'end_at' | 'allow_shrink'> & {
  readonly backfill_id: string;
};

/**
 * Creates a requested backfill over the whole intervals of its range, if the project has capacity.
 * @throws CommandRejected when it exports only what is missing, and nothing is
 */
export async function startBackfill(
  context: CommandContext,
  { only, rewrite, ...request }: BackfillRequest & BackfillScope,
  range: BackfillRange,
): Promise<CommandEffect> {
  const { batchExport, transaction } = context;
  await requireBackfillCapacity(context);
  const { revisions } = requireLive(batchExport.state());
  const source = { batchExportId: batchExport.id, revisions };
  const { start_at, end_at } = request;
  const recorded = await toRecordedRange(transaction.connection, source, { ...range, start_at, end_at });
  const scope =
    only === 'missing'
      ? await requireMissing(transaction.connection, source, recorded)
      : { range: recorded, ...(rewrite === true && { rewrites: rewrite }) };
  return createBackfill(context, { ...request, plan: { kind: 'range', ...scope, revisions } });
}

/** Creates a backfill and its first runs, whatever the number of those that the project has. */
export async function createBackfill(
  { batchExport, transaction, policies, cause }: CommandContext,
  { backfill_id, ...request }: BackfillRequest & Pick<BackfillSpec, 'plan'>,
): Promise<CommandEffect> {
  const live = requireLive(batchExport.state());
  const backfill = await transaction.lock(backfillDecider, backfill_id);
  const spec = { batch_export_id: batchExport.id, team_id: live.team_id, ...request };
  await backfill.append(cause, [{ type: 'BackfillStarted', data: spec }]);
  await createBackfillRuns(transaction, live, batchExport.id, backfill, policies);
  const state = backfill.state();
  const run_id = state.status === 'Absent' ? undefined : state.active[0];
  const ofRetry = request.plan.kind === 'retry' && run_id !== undefined && { run_id };
  return createEffect(true, { outcome: { backfill_id, ...ofRetry }, wake_backfills: [backfill_id] });
}

/**
 * Rejects a backfill above the project's limit. Those of failed runs do not count: there is at most one for each request
 * and export. Neither do repairs, which no user requested. Exports of a project are decided concurrently, so it counts under
 * a lock of the project. In the lock order this lock is between those of an export and of its backfills.
 */
export async function requireBackfillCapacity(context: CommandContext): Promise<void> {
  const { team_id: teamId } = requireLive(context.batchExport.state());
  const { connection } = context.transaction;
  await connection.query('select pg_advisory_xact_lock($1, $2)', [projectBackfillsLock, teamId]);
  const { rows } = await connection.query<{ active: number }>(
    `select count(*) as active from exportd.backfills where team_id = $1 and finished_at is null and kind in ('range', 'retry')`,
    [teamId],
  );
  const active = rows[0]?.active ?? 0;
  if (active >= context.policies.maxBackfillsPerProject)
    throw new CommandRejected(
      'too_many_concurrent_backfills',
      `This project already has ${active} unfinished backfills (EXPORTD_MAX_BACKFILLS_PER_PROJECT). Wait for some to finish or cancel them.`,
    );
}
