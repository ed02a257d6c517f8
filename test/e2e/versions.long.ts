import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { CommandName } from '../../src/journal/commands.ts';
import { storeTestCommand } from '../journal/store_test_command.ts';
import { hourAgo } from '../setup/hours.ts';
import { failoverWorkers } from '../setup/timeouts.ts';
import { waitFor } from '../setup/wait_for.ts';
import { insertEvents } from './rows.ts';
import { type Stack, startStack } from './stack.ts';
import { verifyExport } from './verify_export.ts';

/** The code of the version under test. */
const thisVersion = join(import.meta.dirname, '../..');

/** What the next version has more: an event, the column that it fills, a command and a step of each run. */
const additions: readonly (readonly [file: string, before: string, after: string])[] = [
  [
    'src/domain/run.ts',
    `    case 'RunExportStarted': {\n`,
    `    case 'RunNoted':\n      return { ...state, noted: true };\n    case 'RunExportStarted': {\n`,
  ],
  [
    'src/decisions/run_recorder.ts',
    'const reservesFirst = ',
    `await stream.append(\`noted:\${range}/\${attempt + 1}\`, [{ type: 'RunNoted', data: {} }]);
        const reservesFirst = `,
  ],
  [
    'src/decisions/deferred_steps.ts',
    `await stream.append('export', `,
    `await stream.append('noted', [{ type: 'RunNoted', data: {} }]);
    await stream.append('export', `,
  ],
  ['src/projections/runs.ts', `name: 'runs',\n  version: `, `name: 'runs',\n  version: 1`],
  [
    'src/projections/stream_states.ts',
    `name: 'stream_states',\n  version: `,
    `name: 'stream_states',\n  version: 1`,
  ],
  [
    'src/projections/runs.ts',
    `in_outage boolean not null default false\n`,
    `in_outage boolean not null default false,\n      noted boolean not null default false\n`,
  ],
  [
    'src/projections/runs.ts',
    `    case 'RunExportStarted': {\n`,
    `    case 'RunNoted':\n      return { noted: true };\n    case 'RunExportStarted': {\n`,
  ],
  [
    'src/projections/runs.ts',
    `    in_outage: false,\n    ...countsOf`,
    `    in_outage: false,\n    noted: false,\n    ...countsOf`,
  ],
  ['src/journal/commands.ts', `  'create',\n`, `  'create',\n  'annotate',\n`],
  [
    'src/decisions/commands/apply_command.ts',
    `    case 'pause':\n`,
    `    case 'annotate':\n    case 'pause':\n`,
  ],
  ['workflows/run.ts', '  proxyActivities,\n', '  patched,\n  proxyActivities,\n'],
  [
    'workflows/run.ts',
    `  if (rows > 0) {\n    showStatus`,
    `  if (patched('noted')) await sleep(1);\n  if (rows > 0) {\n    showStatus`,
  ],
];

let nextVersion: string;
let stack: Stack;
beforeAll(async () => {
  nextVersion = mkdtempSync(join(tmpdir(), 'exportd-next-'));
  for (const name of ['src', 'workflows', 'activities', 'package.json', 'tsconfig.json'])
    cpSync(join(thisVersion, name), join(nextVersion, name), { recursive: true });
  symlinkSync(join(thisVersion, 'node_modules'), join(nextVersion, 'node_modules'));
  for (const [file, before, after] of additions) {
    const code = readFileSync(join(nextVersion, file), 'utf8');
    if (code.split(before).length !== 2) throw new Error(`${file} has not exactly one "${before}".`);
    writeFileSync(
      join(nextVersion, file),
      code.replace(before, () => after),
    );
  }
  stack = await startStack('versions', {
    ...failoverWorkers,
    // Commands wait for the reconciler. With longer ones this version completes all runs before the next one starts.
    EXPORTD_RECONCILE_INTERVAL: '1s',
  });
});
afterAll(async () => {
  await stack.stop();
  rmSync(nextVersion, { recursive: true, force: true });
});

/** The next version makes a workflow bundle of its own. */
const ownBundle = { EXPORTD_WORKFLOW_BUNDLE: '' };
/** So many that the first version is not done before the next one starts. */
const hours = 72;

const count = async (condition: string): Promise<number> => {
  const { rows } = await stack.pool.query<{ count: number }>(
    `select count(*)::int as count from ${condition}`,
  );
  return rows[0]?.count ?? 0;
};
const completedRuns = () => count(`exportd.batch_export_runs where status = 'Completed'`);
const activeRuns = () => count(`exportd.batch_export_runs where status in ('Starting', 'Running')`);
const hasStatus = async (id: string, statuses: string): Promise<boolean> =>
  (await count(`exportd.commands where id = '${id}' and status in (${statuses})`)) === 1;
const isDecided = (id: string) => hasStatus(id, `'applied', 'no-op', 'rejected'`);
const readiness = async (): Promise<string> => (await fetch(`${stack.baseUrl}/readyz`)).text();

/** Stores the backfill of some hours, as an API server does that cannot reach Temporal. */
const backfill = (exportId: string, from: number, until: number) =>
  storeTestCommand(
    stack.pool,
    exportId,
    'backfill',
    { start_at: hourAgo(from).toISOString(), end_at: hourAgo(until).toISOString() },
    stack.projectId,
  );

/** Waits until every run has ended, and expects each interval to be exported once. */
async function expectExported(exportIds: readonly string[], intervals: number): Promise<void> {
  await waitFor(
    async () => (await completedRuns()) >= intervals * exportIds.length && (await activeRuns()) === 0,
    'every run has ended',
    300_000,
  );
  const { rows } = await stack.pool.query(
    `select status, count(*)::int as runs from exportd.batch_export_runs group by status`,
  );
  expect(rows).toEqual([{ status: 'Completed', runs: intervals * exportIds.length }]);
  for (const id of exportIds) {
    const { findings, intervals: checked } = await verifyExport(stack, id);
    expect({ findings, checked: checked.length }).toEqual({ findings: [], checked: intervals });
  }
}

describe('a version and the next one, which has an event, a column, a command and a step of runs more', () => {
  it('run together under load, then the next one alone, then this one again: nothing is lost or stuck', async () => {
    await insertEvents(stack.pool, stack.projectId, hourAgo(2 * hours), 40 * 2 * hours, 2 * hours * 3_600);
    const exports = await Promise.all([1, 2, 3].map(() => stack.createExport()));
    const annotated = await stack.createExport();
    for (const id of exports) await backfill(id, 2 * hours, hours);
    await waitFor(async () => (await completedRuns()) >= 10, 'this version exports');

    // A command that only the next version knows.
    const annotate = await storeTestCommand(
      stack.pool,
      annotated,
      'annotate' as CommandName,
      {},
      stack.projectId,
    );
    await waitFor(
      async () => (await readiness()).includes('1 pending command'),
      'readyz reports the command',
    );
    // The step that decides a later command, which this version knows, sees both.
    const pause = await storeTestCommand(stack.pool, annotated, 'pause', {}, stack.projectId);
    await waitFor(() => isDecided(pause), 'this version decides the command that it knows');
    expect(await isDecided(annotate)).toBe(false);

    await stack.runCommand(nextVersion, 'migrate');
    expect(await readiness()).toContain('read models');
    const next = stack.spawnWorker(nextVersion, ownBundle);
    await waitFor(
      async () => (await count(`exportd.batch_export_runs where noted and status = 'Completed'`)) >= 5,
      'the next version exports beside this one',
      120_000,
    );
    await stack.workers[0]?.stop();
    await expectExported(exports, hours);
    await waitFor(() => hasStatus(annotate, `'applied', 'no-op'`), 'the next version applies its command');

    // Back again, in the middle of other runs.
    const more = await Promise.all(exports.map((id) => backfill(id, hours, 0)));
    await waitFor(async () => (await completedRuns()) >= 3 * hours + 10, 'the next version exports alone');
    await next.kill();
    await stack.runCommand(thisVersion, 'projections', 'switch');
    await stack.startWorker();
    await expectExported(exports, 2 * hours);
    for (const id of more) expect(await isDecided(id)).toBe(true);
    expect(await readiness()).toContain('whose states lack them');

    // And forward: what this version did not know is there.
    await stack.runCommand(nextVersion, 'migrate');
    expect(await count(`exportd.stream_states where unknown_event is not null`)).toBe(0);
    expect(await count(`exportd.batch_export_runs where noted`)).toBe(
      await count(
        `(select distinct stream_id from exportd.journal_events where event_type = 'RunNoted') noted`,
      ),
    );
  });
});
