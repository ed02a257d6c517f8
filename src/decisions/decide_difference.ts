import { decideRetry } from '../domain/backfill.ts';
import { decideDifference } from '../domain/decide_difference.ts';
import type { DecidedDifference, Findings, StoredDecision } from '../domain/difference.ts';
import { CommandRejected } from '../domain/errors.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { Connection } from '../journal/database.ts';
import { deterministicId, writeLogLine } from '../journal/journal.ts';
import { checkedIntervals, differsNow } from '../projections/interval_checks.ts';
import { findActiveRun } from './active_runs.ts';
import { createBackfill, requireBackfillCapacity } from './commands/backfill.ts';
import { type CommandContext, type CommandEffect, createEffect } from './commands/command_context.ts';

/** What the ledger and the checks know of an interval. */
interface LedgerEntry {
  readonly team_id: number;
  readonly status: string;
  readonly run_id: string;
  readonly manifest_run_id: string | null;
  readonly decision: StoredDecision | null;
  readonly differs: boolean;
  readonly findings: Findings | null;
  /** Who decides. */
  readonly by: string | null;
}

/** Keeps rows that the source lacks, or exports their interval again without them. */
export async function applyDecideDifference(
  context: CommandContext,
  { start, end, ...body }: DataInterval & Omit<DecidedDifference, 'findings'>,
): Promise<CommandEffect> {
  const { batchExport, transaction, commandId, cause } = context;
  const { connection } = transaction;
  const interval = { start, end };
  const entry = await readEntry(connection, batchExport.id, { ...interval, user_id: body.user_id });
  const decided = { ...body, findings: entry.findings ?? {} };
  const active_run_id = await findActiveRun(connection, batchExport.id, interval);
  const events = decideDifference(batchExport.state(), {
    interval,
    decided,
    ledger: { ...entry, active_run_id, isOpen: entry.status === 'held' || entry.differs },
  });
  const backfill_id = deterministicId('command', commandId, 'backfill');
  const retry = { backfill_id, run_id: entry.run_id, interval, active_run_id };
  const isRemoval = decided.decision === 'remove';
  await batchExport.append(cause, [...events, ...(isRemoval ? decideRetry(batchExport.state(), retry) : [])]);
  await writeLogLine(connection, {
    team_id: entry.team_id,
    batch_export_id: batchExport.id,
    run_id: decided.run_id,
    level: 'INFO',
    message: `${decided.rows} rows of ${start} to ${end} that the source lacks ${isRemoval ? 'are removed from the bucket' : 'are kept'}, as ${entry.by ?? 'a user'} has decided: ${decided.reason}`,
  });
  if (!isRemoval) {
    // The last comparison may know of other rows than were decided about, so it is made again at once.
    await connection.query(
      `update exportd.interval_comparisons
       set kept = true, examined = null, next_due_at = least(next_due_at, clock_timestamp())
       where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3 and outcome is not null`,
      [batchExport.id, start, end],
    );
    return createEffect(true);
  }
  await requireBackfillCapacity(context);
  return createBackfill(context, {
    backfill_id,
    start_at: start,
    end_at: end,
    allow_shrink: false,
    plan: { kind: 'retry', run_id: entry.run_id, interval },
  });
}

async function readEntry(
  connection: Connection,
  batchExportId: string,
  { start, end, user_id }: DataInterval & { readonly user_id: number },
): Promise<LedgerEntry> {
  const { rows } = await connection.query<LedgerEntry>(
    `select export.team_id, interval.status, interval.run_id, interval.manifest_run_id, interval.decision, checked.findings,
       checked.findings is not null or exists (
         select from exportd.interval_comparisons compared where compared.run_id = interval.manifest_run_id
           and compared.outcome in ('rows_missing', 'both') and not compared.kept) as differs,
       (select email from exportd.users where id = $4) as by
     from exportd.intervals interval
     join exportd.batch_exports export on export.id = interval.batch_export_id
     left join lateral (
       select checked.findings from ${checkedIntervals}
       where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3 and ${differsNow}
       order by checked.checked_at desc limit 1) checked on true
     where interval.batch_export_id = $1 and interval.data_interval_start = $2 and interval.data_interval_end = $3
       and interval.run_id is not null`,
    [batchExportId, start, end, user_id],
  );
  const [entry] = rows;
  if (!entry) throw new CommandRejected('not_found', 'Not found.');
  return entry;
}
