import { isDeepStrictEqual } from 'node:util';
import { haveSamePlace, readPublicConfig, selectionOfConfig } from '../destination/config_versions.ts';
import { backfillDecider } from '../domain/backfill.ts';
import type { LiveBatchExport } from '../domain/batch_export.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { RunDefinition } from '../domain/run_state.ts';
import type { Connection } from '../journal/database.ts';
import { deterministicId, type JournalTransaction } from '../journal/journal.ts';
import { hasActiveRun } from './active_runs.ts';
import type { NextRun } from './next_run.ts';

/**
 * Takes the interval that has waited longest from the queue of an export's repair. One with an active run stays there; one
 * that has another manifest by now needs no repair.
 */
export async function takeRepair(
  connection: Connection,
  live: LiveBatchExport,
  { id, batch_export_id }: { readonly id: string; readonly batch_export_id: string },
): Promise<NextRun | undefined> {
  for (;;) {
    const { rows } = await connection.query<
      DataInterval & { run_id: string; requested_at: string; is_current: boolean }
    >(
      `delete from exportd.interval_repairs repair using (
         select next.* from exportd.interval_repairs next
         where next.batch_export_id = $1 and not ${hasActiveRun('next')}
         order by next.requested_at, next.data_interval_start limit 1) taken
       where repair.batch_export_id = taken.batch_export_id and repair.data_interval_start = taken.data_interval_start
         and repair.data_interval_end = taken.data_interval_end
       returning repair.data_interval_start as start, repair.data_interval_end as end, repair.run_id,
         repair.requested_at::text as requested_at, exists (
         select from exportd.intervals interval where interval.batch_export_id = repair.batch_export_id
           and interval.data_interval_start = repair.data_interval_start
           and interval.data_interval_end = repair.data_interval_end
           and interval.manifest_run_id = repair.run_id) as is_current`,
      [batch_export_id],
    );
    const [taken] = rows;
    if (!taken) return undefined;
    if (!taken.is_current) continue;
    const { start, end, run_id, requested_at } = taken;
    const definition = await definitionToKeep(connection, live, batch_export_id, run_id);
    return {
      interval: { start, end },
      run_id: null,
      purpose: { kind: 'repair', backfill_id: id, definition: definition ? 'kept' : 'current' },
      definition,
      identity: [start, requested_at],
    };
  }
}

/** Whether the repair of an export has intervals left. */
export async function hasRepairs(connection: Connection, batchExportId: string): Promise<boolean> {
  const { rows } = await connection.query(
    'select from exportd.interval_repairs where batch_export_id = $1 limit 1',
    [batchExportId],
  );
  return rows.length > 0;
}

/** An interval that exportd exports again by itself. */
interface RepairRequest extends DataInterval {
  readonly team_id: number;
  /** The run of the manifest that lacks rows. */
  readonly run_id: string;
}

/**
 * Adds an interval to the queue of its export's repair, and starts that unless it is running. An export has one, whatever
 * the number of its intervals with late rows: a command and a backfill for each would delay what people ask for. The
 * caller holds the export's lock, and no run's.
 * @returns the id of the repair, whose workflow is to be started or woken
 */
export async function requestRepair(
  transaction: JournalTransaction,
  batchExportId: string,
  { team_id, run_id, start, end }: RepairRequest,
): Promise<string> {
  const { connection } = transaction;
  await connection.query(
    `insert into exportd.interval_repairs (batch_export_id, data_interval_start, data_interval_end, run_id)
     values ($1, $2, $3, $4)
     on conflict (batch_export_id, data_interval_start, data_interval_end) do update set run_id = excluded.run_id`,
    [batchExportId, start, end, run_id],
  );
  const running = await findRepair(connection, batchExportId);
  if (running) return running.id;
  const id = deterministicId('repair', run_id, transaction.now.toISOString());
  const repair = await transaction.lock(backfillDecider, id);
  const spec = {
    batch_export_id: batchExportId,
    team_id,
    start_at: start,
    end_at: end,
    allow_shrink: false,
    plan: { kind: 'repair' } as const,
  };
  await repair.append('requested', [{ type: 'BackfillStarted', data: spec }]);
  return repair.id;
}

/** The unfinished repair of an export. */
async function findRepair(
  connection: Connection,
  batchExportId: string,
): Promise<{ readonly id: string; readonly status: string } | undefined> {
  const { rows } = await connection.query<{ id: string; status: string }>(
    `select id, status from exportd.backfills where batch_export_id = $1 and kind = 'repair' and finished_at is null`,
    [batchExportId],
  );
  return rows[0];
}

/** Empties the queue of an export's repair. */
export const endRepairs = (connection: Connection, batchExportId: string): Promise<unknown> =>
  connection.query('delete from exportd.interval_repairs where batch_export_id = $1', [batchExportId]);

/** Finds the repair that continues when its export is unpaused: not one that its user has paused. @returns its id */
export async function findRunningRepair(
  connection: Connection,
  batchExportId: string,
): Promise<readonly string[]> {
  const repair = await findRepair(connection, batchExportId);
  return repair?.status === 'Running' ? [repair.id] : [];
}

/**
 * The model and config with which exportd itself exports the interval of a run again. A changed model, selection or place
 * is not applied to what was exported before until a person asks for it, so the run's own are kept: readers of an archive
 * would lose an interval out of its middle. Undefined for the current ones, if they write the same rows to the same place.
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
    const read = (version: number) => readPublicConfig(connection, batchExportId, version);
    const [before, current] = [await read(exported.config_version), await read(config_version)];
    if (
      isDeepStrictEqual(selectionOfConfig(before), selectionOfConfig(current)) &&
      haveSamePlace(before, current)
    )
      return undefined;
  }
  return exported;
}
