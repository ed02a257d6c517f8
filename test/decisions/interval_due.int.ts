import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { isIntervalDue } from '../../src/decisions/interval_due.ts';
import type { Pool } from '../../src/journal/database.ts';
import type { Journal } from '../../src/journal/journal.ts';
import { openJournal } from '../../src/projections/open_journal.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { withinOneMinute } from '../setup/minutes.ts';
import { createLaggingExport } from './lagging_export.ts';
import { createCommander, quickPolicies } from './commander.ts';

let database: TestDatabase;
let pool: Pool;
let journal: Journal;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = database.pool;
  journal = openJournal(pool);
});
afterAll(() => database.drop());

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

  it('is not due for an export that does not exist', async () => {
    expect(await isIntervalDue(journal, '00000000-0000-4000-8000-000000000000')).toBe(false);
  });
});
