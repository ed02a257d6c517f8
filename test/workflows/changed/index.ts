import { upsertMemo } from '@temporalio/workflow';
import { batchExportSchedule as schedule } from '../../../workflows/schedule.ts';
import type { BackfillInput, RunInput, ScheduleInput } from '../../../src/contract/workflow_inputs.ts';
import { batchExportRun as run } from '../../../workflows/run.ts';
import { batchExportBackfill as backfill } from '../../../workflows/backfill.ts';

// An incompatible change: the workflows with an additional first command that their histories lack.
export { batchExportDestinationTest } from '../../../workflows/jobs.ts';
export { batchExportMaintenance } from '../../../workflows/maintenance.ts';

const extraStep = () => upsertMemo({ changed: true });

export async function batchExportSchedule(input: ScheduleInput): Promise<void> {
  extraStep();
  await schedule(input);
}

export async function batchExportBackfill(input: BackfillInput): Promise<void> {
  extraStep();
  await backfill(input);
}

export async function batchExportRun(input: RunInput): Promise<void> {
  extraStep();
  await run(input);
}
