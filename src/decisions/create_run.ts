import type { LiveBatchExport } from '../domain/batch_export.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { runDecider } from '../domain/run.ts';
import type { RunDefinition, RunPurpose } from '../domain/run_state.ts';
import type { JournalTransaction } from '../journal/journal.ts';

/** A run that is to be created. */
interface NewRun {
  readonly id: string;
  readonly batch_export_id: string;
  readonly interval: DataInterval;
  readonly purpose: RunPurpose;
  readonly allow_shrink: boolean;
  /** The model and config, if not the export's current ones. */
  readonly definition?: RunDefinition | undefined;
}

/** Creates a run of an interval. The caller holds the export's lock. */
export async function createRun(
  transaction: JournalTransaction,
  live: LiveBatchExport,
  { id, batch_export_id, interval, purpose, allow_shrink, definition = live.definition }: NewRun,
): Promise<void> {
  const stream = await transaction.lock(runDecider, id, { isNew: true });
  await stream.append('created', [
    {
      type: 'RunCreated',
      data: {
        batch_export_id,
        team_id: live.team_id,
        model: definition.model,
        config_version: definition.config_version,
        data_interval_start: interval.start,
        data_interval_end: interval.end,
        purpose,
        retry_number: 0,
        allow_shrink,
        continues_run_id: null,
      },
    },
  ]);
}
