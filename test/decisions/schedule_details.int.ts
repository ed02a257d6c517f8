import { expect, it } from '@jest/globals';
import { createScheduleDescriber } from '../../src/decisions/schedule_details.ts';
import type { Pool } from '../../src/journal/database.ts';
import { openWorkerJournal } from '../setup/worker_journal.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { createCommander, definition, quickPolicies } from './commander.ts';

const database = useTestDatabase();
const journal = openWorkerJournal(database.pool);
const minute = 60_000;

/** A pool that counts the statements that it sends. */
function countStatements(pool: Pool) {
  let sent = 0;
  const query = (...statement: unknown[]): unknown => {
    sent += 1;
    return (pool.query as (...input: unknown[]) => unknown).apply(pool, statement);
  };
  const take = (): number => {
    const taken = sent;
    sent = 0;
    return taken;
  };
  return { pool: Object.assign(Object.create(pool) as Pool, { query }), take };
}

it('reads the condition of an export that is well once in half an hour, and when a person has changed it', async () => {
  const commander = createCommander(journal, quickPolicies());
  // A run would wait for a worker, which is a trouble.
  const { step: created } = await commander.command('create', { definition, paused: true });
  const { pool, take } = countStatements(database.pool);
  let clock = 0;
  const describeStep = createScheduleDescriber(pool, () => clock);
  const statementsOf = async (step: typeof created): Promise<number> => {
    expect((await describeStep(commander.batchExportId, step)).details).toMatch(
      /^\*\*Events every minute\*\*: \w+\. .* \(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\)\n\n- Next run: /,
    );
    return take();
  };
  const first = await statementsOf(created);
  expect(first).toBeGreaterThan(1);
  const later = await commander.step();
  expect(later.decided_commands).toBe(0);
  expect(await statementsOf(later)).toBe(1);
  clock += 31 * minute;
  expect(await statementsOf(later)).toBe(first);
  expect(await statementsOf({ ...later, decided_commands: 1 })).toBe(first);
  expect(await statementsOf({ ...later, waits_for: 'the next interval' })).toBe(first);
});

it('reads no condition while others have just been read, unless a person waits for it', async () => {
  const exports = [];
  for (const name of ['first', 'second']) {
    const commander = createCommander(journal, quickPolicies());
    const { step } = await commander.command('create', { definition: { ...definition, name }, paused: true });
    exports.push({ id: commander.batchExportId, step, later: await commander.step() });
  }
  const [first, second] = exports as [(typeof exports)[0], (typeof exports)[0]];
  let clock = 0;
  // Reading takes as long as the clock says.
  const query = (...statement: unknown[]): unknown => {
    clock += 10;
    return (database.pool.query as (...input: unknown[]) => unknown).apply(database.pool, statement);
  };
  const pool = Object.assign(Object.create(database.pool) as Pool, { query });
  const describeSchedule = createScheduleDescriber(pool, () => clock);
  const describeStep = async (...of: Parameters<typeof describeSchedule>) =>
    (await describeSchedule(...of)).details;
  const condition = /^\*\*(first|second)\*\*: \w+\. .* \(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\)\n/;
  const [one, other] = await Promise.all([
    describeStep(first.id, first.later),
    describeStep(second.id, second.later),
  ]);
  expect([one, other].filter((text) => condition.test(text))).toHaveLength(1);
  expect([one, other].find((text) => !condition.test(text))).toMatch(
    /^\*\*(first|second)\*\*\n\n- Next run: /,
  );
  expect(await describeStep(second.id, second.step)).toMatch(condition);
  clock += minute;
  expect(await describeStep(first.id, first.later)).toMatch(condition);
});
