import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { isIntervalDue } from '../../src/decisions/run_outcomes.ts';
import { openJournal } from '../../src/projections/registry.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { minuteAgo, withinOneMinute } from '../setup/minutes.ts';
import { appendLaggingExport, createLaggingExport } from './lagging_export.ts';
import { createCommander, definition, quickPolicies } from './commander.ts';

const { pool } = useTestDatabase();
const journal = openJournal(pool);

async function isDueWithSlots(slots: number): Promise<boolean> {
  const policies = quickPolicies({ EXPORTD_MAX_CONCURRENT_RUNS: String(slots) });
  const { result } = await withinOneMinute(async () => {
    const { batchExportId, command } = createCommander(journal, policies);
    await createLaggingExport(journal, batchExportId, 4);
    await command('unpause');
    return isIntervalDue(journal, batchExportId);
  });
  return result;
}

describe('an interval that waits for a free slot', () => {
  it('is due while the slots are taken', async () => {
    expect(await isDueWithSlots(2)).toBe(true);
  });

  it('is not due when all due intervals have a run', async () => {
    expect(await isDueWithSlots(10)).toBe(false);
  });

  it('is not due after end_at, where the schedule sleeps', async () => {
    const id = randomUUID();
    const scheduled_until = minuteAgo(5).toISOString();
    const data = { definition: { ...definition, end_at: scheduled_until }, scheduled_until };
    await appendLaggingExport(journal, id, { team_id: 1, paused: false, ...data });
    expect(await isIntervalDue(journal, id)).toBe(false);
  });

  it('is not due for an export that does not exist', async () => {
    expect(await isIntervalDue(journal, '00000000-0000-4000-8000-000000000000')).toBe(false);
  });
});
