import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { overdueExports } from '../../src/decisions/overdue_exports.ts';
import { createKey, createProject, createUser } from '../../src/http/accounts.ts';
import { startServer, type RunningServer } from '../../src/http/server.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { createBehind } from '../decisions/lagging_export.ts';
import { createControlStack, type ControlStack } from '../temporal/control_plane_harness.ts';
import { runClients, type Address, type AnsweredRequest } from './clients.ts';
import {
  runsAfterPause,
  uncancelled,
  unexpectedOutcomes,
  unkeptKeys,
  type CreatedRun,
  type DecidedCommand,
} from './command_invariants.ts';
import {
  crowds,
  holesAndOverlaps,
  illegalTransitions,
  runsOfCancelledBackfills,
  runsOutOfTime,
  type JournalEvent,
} from './journal_invariants.ts';
import { plans } from './plan.ts';

const clients = 4;
const requestsOfEach = 14;
const minutesBehind = 9;
const limit = 2;
/** What fails for now is given up soon; a busy machine may not get a run done in that time. */
const shortBudgetMs = 1_000;
/** Whether everything is to come to its end. */
let atRest = false;

let stack: ControlStack;
let server: RunningServer;
let address: Address;

beforeAll(async () => {
  stack = await createControlStack({
    EXPORTD_MAX_CONCURRENT_RUNS: String(limit),
    EXPORTD_BACKFILL_CONCURRENCY: '2',
    EXPORTD_RETRY_INITIAL_MS: '100',
    EXPORTD_PAUSE_AFTER_FAILURES: '0',
    EXPORTD_CONTINUE_AS_NEW_COMMANDS: '10',
    // Nobody can say of what is answered 202 how it ends.
    EXPORTD_COMMAND_TIMEOUT_MS: '180000',
    EXPORTD_ENCRYPTION_KEYS: `test:${randomBytes(32).toString('base64')}`,
    EXPORTD_PORT: '0',
  });
  const { pool, settings } = stack;
  const user = await createUser(pool, { email: 'ada@example.com' });
  const project = await createProject(pool, { name: 'Shop' });
  const { key } = await createKey(pool, {
    user_id: user.id,
    project_id: project.id,
    scopes: ['batch_export:read', 'batch_export:write'],
  });
  server = await startServer(settings, createLogger('test', settings));
  address = { url: server.url, key, projectId: project.id };
  stack.behaviour.whileExporting = exportForAMoment;
  await stack.startWorker();
});
afterAll(async () => {
  await server.close();
  await stack.close();
});

/** Takes some time by what the run's id says, and fails at times, for good or for now. */
async function exportForAMoment(runId: string): Promise<void> {
  const luck = Number.parseInt(runId.slice(0, 4), 16);
  const context = Context.current();
  for (let waited = 0; waited < luck % 120; waited += 20) {
    context.heartbeat();
    await Promise.race([sleep(20), context.cancelled]);
  }
  if (luck % 16 === 0) throw ApplicationFailure.nonRetryable('The dice say no.', 'Dice');
  if (!atRest && luck % 6 === 1) throw ApplicationFailure.retryable('The dice say not now.', 'Dice');
}

/** Exports whose schedules are behind, and paused: the first unpause makes intervals due. */
async function createExports(count: number): Promise<string[]> {
  const created: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const id = randomUUID();
    await createBehind(stack.journal, id, minutesBehind, address.projectId);
    await stack.pool.query(
      `insert into exportd.destination_configs (batch_export_id, version, destination_type, config)
       values ($1, 1, 'S3', $2)`,
      [id, { bucket_name: 'bucket', region: 'us-east-1', prefix: id }],
    );
    created.push(id);
  }
  return created;
}

/** Lets everything go on, and waits until nothing is left to do. */
async function comeToRest(exportIds: readonly string[]): Promise<void> {
  stack.setBudget(undefined);
  atRest = true;
  for (const id of exportIds) await stack.command(id, 'unpause');
  const { rows } = await stack.pool.query<{ id: string; batch_export_id: string }>(
    `select id, batch_export_id from exportd.backfills where batch_export_id = any($1) and status = 'Paused'`,
    [exportIds],
  );
  for (const { id, batch_export_id } of rows)
    await stack.command(batch_export_id, 'unpauseBackfill', { backfill_id: id });
  let left: readonly string[] = [];
  let looks = 0;
  await stack.untilReconciled(
    async () => {
      left = await leftToDo(exportIds);
      // A run may have ended just now, and the next one not be opened yet.
      looks = left.length === 0 ? looks + 1 : 0;
      return looks === 3;
    },
    () => `rest: ${left.join(', ')}`,
  );
}

/** What is under way or due, in words. */
async function leftToDo(exportIds: readonly string[]): Promise<string[]> {
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
  const overdue = await overdueExports(stack.pool, stack.policies, 0);
  return [...rows.map(({ what }) => what), ...exportIds.filter((id) => overdue.has(id))];
}

async function journalOf(id: string): Promise<JournalEvent[]> {
  const { rows } = await stack.pool.query<JournalEvent>(
    `select stream_type, stream_id, event_type as type, data from exportd.journal_events
     where stream_id = $1 or stream_id in (select id from exportd.batch_export_runs where batch_export_id = $1)
       or stream_id in (select id from exportd.backfills where batch_export_id = $1)
     order by global_position`,
    [id],
  );
  return rows;
}

async function commandsOf(id: string): Promise<DecidedCommand[]> {
  const { rows } = await stack.pool.query<DecidedCommand>(
    `select id, name, idempotency_key, status, body,
       (select count(*) from exportd.journal_events where cause = 'command:' || command.id
          and event_type in ('BatchExportPaused', 'BatchExportUnpaused')) as pauses,
       (select count(*) from exportd.journal_events where cause = 'command:' || command.id
          and event_type = 'BackfillStarted') as backfills
     from exportd.commands command where batch_export_id = $1 order by decided_at`,
    [id],
  );
  return rows;
}

/** Every breach of the model by an export, in words. */
async function breachesOf(id: string, answers: readonly AnsweredRequest[]): Promise<string[]> {
  const journal = await journalOf(id);
  const commands = await commandsOf(id);
  const { rows: runs } = await stack.pool.query<CreatedRun>(
    'select id, backfill_id, created_at, status from exportd.batch_export_runs where batch_export_id = $1',
    [id],
  );
  return [
    ...illegalTransitions(journal),
    ...crowds(journal, limit),
    ...runsOutOfTime(journal),
    ...runsOfCancelledBackfills(journal),
    ...holesAndOverlaps(journal),
    ...unkeptKeys(answers, commands),
    ...unexpectedOutcomes(commands, true),
    ...runsAfterPause(answers, runs),
    ...uncancelled(answers, runs),
  ];
}

describe('commands of several clients at the same instant', () => {
  it('come out as a simple model says', async () => {
    await fc.assert(
      fc.asyncProperty(plans(clients, requestsOfEach), async (plan) => {
        stack.setBudget(shortBudgetMs);
        atRest = false;
        const exportIds = await createExports(2);
        const answers = await runClients(address, stack.pool, plan, exportIds);
        await comeToRest(exportIds);
        for (const id of exportIds)
          expect(
            await breachesOf(
              id,
              answers.filter(({ batch_export_id }) => batch_export_id === id),
            ),
          ).toEqual([]);
      }),
      // A failure is told with its seed and its plan; to shrink it would take another minute for each step.
      { numRuns: 3, endOnFailure: true },
    );
  });
});
