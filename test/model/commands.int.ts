import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { findOverdueExports } from '../../src/decisions/overdue_exports.ts';
import { type RunningServer, startServer } from '../../src/http/server.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { createLaggingExport } from '../decisions/lagging_export.ts';
import { type ControlPlaneHarness, createControlPlaneHarness } from '../temporal/control_plane_harness.ts';
import { type ApiAddress, type RequestResult, runClients } from './clients.ts';
import {
  brokenIdempotencyKeys,
  type DecidedCommand,
  notCancelledRuns,
  runsAfterPause,
  unexpectedOutcomes,
} from './command_invariants.ts';
import {
  exceededLimits,
  gapsAndOverlaps,
  illegalTransitions,
  type JournalEvent,
  runsOfCancelledBackfills,
  runsWhilePaused,
} from './journal_invariants.ts';
import { plans } from './plan.ts';
import { randomCases } from '../setup/effort.ts';
import { createKey } from '../../src/http/accounts/api_keys.ts';
import { createProject } from '../../src/http/accounts/projects.ts';
import { createUser } from '../../src/http/accounts/users.ts';
import { readRuns } from '../decisions/read_runs.ts';

const clientCount = 4;
const requestsPerClient = 14;
const minutesLagging = 9;
const limit = 2;
/** A complete config, because a change of interval compares it with those of other exports. */
const config = {
  bucket_name: 'bucket',
  region: 'us-east-1',
  endpoint_url: null,
  file_format: 'JSONLines',
  compression: null,
  on_bad_row: 'fail',
};
/** A short retry budget for activities, within which a busy machine may not complete a run. */
const shortBudgetMs = 1_000;
/** Whether transient failures have stopped so that everything can end. */
let isSettling = false;

let stack: ControlPlaneHarness;
let server: RunningServer;
let address: ApiAddress;

beforeAll(async () => {
  stack = await createControlPlaneHarness({
    EXPORTD_MAX_CONCURRENT_RUNS: String(limit),
    EXPORTD_BACKFILL_CONCURRENCY: '2',
    EXPORTD_RUN_RETRY_INITIAL: '100ms',
    EXPORTD_PAUSE_AFTER_FAILURES: '0',
    EXPORTD_CONTINUE_AS_NEW_COMMANDS: '10',
    // The outcome of a 202 response is unknown, so wait for all outcomes.
    EXPORTD_COMMAND_TIMEOUT: '3m',
    EXPORTD_ENCRYPTION_KEYS: `test:${randomBytes(32).toString('base64')}`,
    EXPORTD_PORT: '0',
  });
  const { pool, settings } = stack;
  const user = await createUser(pool, { email: 'ada@example.com' });
  const project = await createProject(pool, { name: 'Shop' });
  const { key } = await createKey(pool, {
    user_id: user.id,
    project_ids: [project.id],
    scopes: ['batch_export:read', 'batch_export:write'],
  });
  server = await startServer(settings, createLogger('test', settings));
  address = { url: server.url, key, projectId: project.id };
  stack.behaviour.duringExport = simulateExport;
  await stack.startWorker();
});
afterAll(async () => {
  await server.close();
  await stack.close();
});

/** Simulates an export: duration, permanent and transient failures depend on the run's id. */
async function simulateExport(runId: string): Promise<void> {
  const random = Number.parseInt(runId.slice(0, 4), 16);
  const context = Context.current();
  for (let waited = 0; waited < random % 120; waited += 20) {
    context.heartbeat();
    await Promise.race([sleep(20), context.cancelled]);
  }
  if (random % 16 === 0) throw ApplicationFailure.nonRetryable('Simulated permanent failure.', 'Simulated');
  if (!isSettling && random % 6 === 1)
    throw ApplicationFailure.retryable('Simulated transient failure.', 'Simulated');
}

/** Creates paused, lagging exports: the first unpause makes intervals due. */
async function createExports(count: number): Promise<string[]> {
  const created: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const id = randomUUID();
    await createLaggingExport(stack.journal, id, minutesLagging, address.projectId);
    await stack.pool.query(
      `insert into exportd.destination_configs (batch_export_id, version, destination_type, config)
       values ($1, 1, 'S3', $2)`,
      [id, { ...config, prefix: id }],
    );
    created.push(id);
  }
  return created;
}

/** Unpauses everything and waits until nothing is active or due. */
async function waitUntilIdle(exportIds: readonly string[]): Promise<void> {
  stack.setActivityTimeout(undefined);
  isSettling = true;
  for (const id of exportIds) await stack.command(id, 'unpause');
  const { rows } = await stack.pool.query<{ id: string; batch_export_id: string }>(
    `select id, batch_export_id from exportd.backfills where batch_export_id = any($1) and status = 'Paused'`,
    [exportIds],
  );
  for (const { id, batch_export_id } of rows)
    await stack.command(batch_export_id, 'unpauseBackfill', { backfill_id: id });
  let unfinished: readonly string[] = [];
  let idleChecks = 0;
  await stack.waitForReconciled(
    async () => {
      unfinished = await findUnfinished(exportIds);
      // A run may have just ended, and the next one not be created yet.
      idleChecks = unfinished.length === 0 ? idleChecks + 1 : 0;
      return idleChecks === 3;
    },
    () => `all exports to be idle: ${unfinished.join(', ')}`,
  );
}

/** Describes what is active or due. */
async function findUnfinished(exportIds: readonly string[]): Promise<string[]> {
  const { rows } = await stack.pool.query<{ what: string }>(
    `select 'run ' || run.id || ' ' || run.status as what from exportd.batch_export_runs run
     join exportd.batch_exports export on export.id = run.batch_export_id
     left join exportd.backfills backfill on backfill.id = run.backfill_id
     where run.batch_export_id = any($1) and (run.status in ('Starting', 'Running')
       or (run.retry_at is not null and not export.deleted and backfill.status is distinct from 'Cancelled'))
     union all
     select 'backfill ' || id || ' ' || status from exportd.backfills
     where batch_export_id = any($1) and finished_at is null`,
    [exportIds],
  );
  const overdue = await findOverdueExports(stack.pool, stack.policies, 0);
  return [...rows.map(({ what }) => what), ...exportIds.filter((id) => overdue.ids.has(id))];
}

async function readJournal(id: string): Promise<JournalEvent[]> {
  const { rows } = await stack.pool.query<JournalEvent>(
    `select stream_type, stream_id, event_type as type, data from exportd.journal_events
     where stream_id = $1 or stream_id in (select id from exportd.batch_export_runs where batch_export_id = $1)
       or stream_id in (select id from exportd.backfills where batch_export_id = $1)
     order by global_position`,
    [id],
  );
  return rows;
}

async function readCommands(id: string): Promise<DecidedCommand[]> {
  const { rows } = await stack.pool.query<DecidedCommand>(
    `select id, name, idempotency_key, status, body, outcome->>'code' as code,
       (select count(*) from exportd.journal_events where cause = 'command:' || command.id
          and event_type in ('BatchExportPaused', 'BatchExportUnpaused')) as pauses,
       (select count(*) from exportd.journal_events where cause = 'command:' || command.id
          and event_type = 'BackfillStarted') as backfills
     from exportd.commands command where batch_export_id = $1 order by decided_at`,
    [id],
  );
  return rows;
}

/** Describes all violations of the invariants by an export. */
async function findViolations(id: string, results: readonly RequestResult[]): Promise<string[]> {
  const journal = await readJournal(id);
  const commands = await readCommands(id);
  const runs = await readRuns(stack.pool, { batch_export_id: id });
  return [
    ...illegalTransitions(journal),
    ...exceededLimits(journal, limit),
    ...runsWhilePaused(journal),
    ...runsOfCancelledBackfills(journal),
    ...gapsAndOverlaps(journal),
    ...brokenIdempotencyKeys(results, commands),
    ...unexpectedOutcomes(commands, true),
    ...runsAfterPause(results, runs),
    ...notCancelledRuns(results, runs),
  ];
}

describe('concurrent commands of several clients', () => {
  it('have the outcomes of a reference model', async () => {
    await fc.assert(
      fc.asyncProperty(plans(clientCount, requestsPerClient), async (plan) => {
        stack.setActivityTimeout(shortBudgetMs);
        isSettling = false;
        const exportIds = await createExports(2);
        const results = await runClients(address, stack.pool, plan, exportIds);
        await waitUntilIdle(exportIds);
        for (const id of exportIds)
          expect(
            await findViolations(
              id,
              results.filter(({ batch_export_id }) => batch_export_id === id),
            ),
          ).toEqual([]);
      }),
      // A failure is reported with its seed and plan. Shrinking is disabled because each step would take a minute.
      { numRuns: randomCases(1), endOnFailure: true },
    );
  });
});
