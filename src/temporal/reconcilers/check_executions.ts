import type { Client } from '@temporalio/client';
import type { Settings } from '../../config/settings.ts';
import { isId, type RunInterval } from '../../contract/workflow_ids.ts';
import type { Policies } from '../../decisions/policies.ts';
import type { OpenLocation } from '../../destination/open_destination.ts';
import { activeRunStatuses } from '../../domain/run_state.ts';
import { commandNames } from '../../journal/commands.ts';
import type { Pool } from '../../journal/database.ts';
import type { Journal } from '../../journal/journal.ts';
import type { Logger } from '../../telemetry/logger.ts';
import {
  describeExecution,
  type Execution,
  type ExecutionLists,
  type ListedExecution,
} from '../clients/executions.ts';
import type { MaintenanceClient } from '../clients/workflow_clients.ts';
import type { Pass } from './pass.ts';
import type { SignalRecovery } from './signal_recovery.ts';
import type { BackfillClient } from '../clients/backfill_client.ts';
import type { RunStarter } from '../clients/run_starter.ts';
import type { ScheduleClient } from '../clients/schedule_client.ts';

/** What reconcilers read, and the clients that they repair with. */
export interface ReconcilerDependencies {
  readonly journal: Journal;
  readonly policies: Policies;
  readonly client: Client;
  readonly executionLists: ExecutionLists;
  readonly schedules: ScheduleClient;
  readonly runs: RunStarter;
  readonly backfills: BackfillClient;
  readonly maintenance: MaintenanceClient;
  readonly signalRecovery: SignalRecovery;
  readonly openLocation: OpenLocation;
  /** Whether the workers of this process have room for more work, so that nothing waits for them. */
  readonly isIdle: () => boolean;
  /** Registers the search attributes that a restored or new namespace lacks. */
  readonly ensureSearchAttributes: (signal: AbortSignal) => Promise<void>;
  readonly settings: Settings;
  readonly logger: Logger;
}

/**
 * Compares one kind of workflow with the control database and repairs the differences. It must be repeatable: every pass
 * calls it, and a pass may end anywhere.
 * @throws when nothing of it can be done, for example because Temporal or the database does not respond
 */
export type Reconciler = (dependencies: ReconcilerDependencies, pass: Pass) => Promise<void>;

/** SQL condition: created so recently that Temporal may not list the execution yet, or it is being started. */
const isNew = `created_at > clock_timestamp() - interval '10 seconds'`;

/** The oldest pending command of each export that this version knows, and whether it has been pending for longer than `oldAfterMs`. */
export async function pendingCommands(
  pool: Pool,
  oldAfterMs: number,
): Promise<{ batch_export_id: string; name: string; id: string; is_old: boolean }[]> {
  const { rows } = await pool.query<{ batch_export_id: string; name: string; id: string; is_old: boolean }>(
    `select distinct on (batch_export_id) batch_export_id, name, id,
       created_at < clock_timestamp() - make_interval(secs => $1::double precision / 1000) as is_old
     from exportd.commands where status = 'pending' and name = any($2) order by batch_export_id, position`,
    [oldAfterMs, commandNames],
  );
  return rows;
}

/** An item that should have an execution. */
interface ExpectedItem {
  readonly id: string;
  readonly is_new: boolean;
}

/** Exports whose schedule has to run. */
export async function liveExports(pool: Pool): Promise<ExpectedItem[]> {
  const { rows } = await pool.query<ExpectedItem>(
    `select id, ${isNew} as is_new from exportd.batch_exports where not deleted`,
  );
  return rows;
}

/** An item that records its progress. */
interface ProgressingItem extends ExpectedItem {
  /** Whether it has recorded something within the given time. */
  readonly is_progressing: boolean;
}

/** SQL condition: something was recorded within $1 milliseconds. */
const isProgressing =
  'last_updated_at > clock_timestamp() - make_interval(secs => $1::double precision / 1000)';

/** Runs without a terminal status. */
export async function activeRuns(pool: Pool, progressMs: number): Promise<(ProgressingItem & RunInterval)[]> {
  const { rows } = await pool.query<ProgressingItem & RunInterval>(
    `select id, batch_export_id, data_interval_start, data_interval_end, ${isNew} as is_new,
       ${isProgressing} as is_progressing
     from exportd.batch_export_runs where status = any($2)`,
    [progressMs, activeRunStatuses],
  );
  return rows;
}

/** Whether a run has no terminal status yet. */
export const isActiveRun = async (pool: Pool, runId: string): Promise<boolean> =>
  (
    await ids(pool, 'select id from exportd.batch_export_runs where status = any($1) and id = $2', [
      activeRunStatuses,
      runId,
    ])
  ).length > 0;

/** Backfills that have not ended. */
export async function activeBackfills(pool: Pool, progressMs: number): Promise<ProgressingItem[]> {
  const { rows } = await pool.query<ProgressingItem>(
    `select id, ${isNew} as is_new, ${isProgressing} as is_progressing
     from exportd.backfills where finished_at is null`,
    [progressMs],
  );
  return rows;
}

/**
 * Those of the given runs that ended more than 10 seconds ago, by when their executions should have closed. A run that
 * continued as new is excluded: its execution belongs to the next run.
 */
export const endedRuns = (pool: Pool, runIds: readonly string[]): Promise<string[]> =>
  ids(
    pool,
    `select id from exportd.batch_export_runs where id = any($1::uuid[]) and status <> 'ContinuedAsNew'
     and finished_at < clock_timestamp() - interval '10 seconds'`,
    // The memo of a manually started workflow may hold anything.
    [runIds.filter(isId)],
  );

async function ids(pool: Pool, statement: string, values: readonly unknown[]): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>(statement, [...values]);
  return rows.map(({ id }) => id);
}

/** An execution that the control database expects to run. */
interface ExpectedExecution {
  readonly id: string;
  readonly workflow_id: string;
  /** Whether something that it should have done is overdue. */
  readonly is_suspect?: boolean;
  /** Whether it is too new to be listed. */
  readonly is_new?: boolean;
  /** Whether it has recorded something since the last pass, so that it is not stuck. */
  readonly is_progressing?: boolean;
}

/** Executions of a workflow type, and what to do about one of them. */
interface ExecutionCheck<Item extends ExpectedExecution> {
  readonly workflowType: string;
  readonly expected: readonly Item[];
  /** Whether a listed execution with the workflow id of an item is that of the item; true by default. */
  readonly isOf?: (item: Item, execution: ListedExecution) => boolean;
  /** Repairs an item, given the latest execution of its workflow id. Returns whether it changed anything. */
  readonly repair: (item: Item, execution: Execution | undefined) => Promise<boolean>;
}

/** How many executions a pass describes without a suspicion. So many or fewer are all described, without a list. */
const sampleSize = 10;
/** The sample grows while it finds stuck executions. */
const sampleGrowth = 4;

/**
 * Finds executions that are missing or stuck. It lists the running ones, 1,000 with a request, and describes only
 * suspects: those that are not listed, that are overdue, or whose failing workflow task Temporal reports.
 * Where Temporal does not report those, a list does not show them, so a sample of the others is described too.
 */
export async function checkExecutions<Item extends ExpectedExecution>(
  dependencies: Pick<ReconcilerDependencies, 'client' | 'executionLists' | 'isIdle'>,
  pass: Pass,
  { workflowType, expected, isOf = () => true, repair }: ExecutionCheck<Item>,
): Promise<void> {
  const { client, executionLists } = dependencies;
  pass.counts.expected += expected.length;
  const check = (items: readonly Item[]): Promise<void> =>
    pass.forEachItem(items, idOf, async (item) => {
      const execution = await describeExecution(client, item.workflow_id);
      pass.counts.described += 1;
      if (execution && keepsFailing(execution)) {
        // Slow, and not stuck: a restart would repeat its work, and so add to what it waits for.
        if (item.is_progressing === true || !dependencies.isIdle()) return false;
        pass.counts.stuck += 1;
      }
      return repair(item, execution);
    });
  if (expected.length <= sampleSize) return check(expected);

  const running = byWorkflowId(await executionLists.running(workflowType));
  const reported = byWorkflowId(await executionLists.withTaskProblems(workflowType));
  const isMissing = (item: Item): boolean => {
    const execution = running.get(item.workflow_id);
    return item.is_new !== true && !(execution && isOf(item, execution));
  };
  const isSuspect = (item: Item): boolean =>
    item.is_suspect === true || reported.has(item.workflow_id) || isMissing(item);
  const { suspects = [], others = [] } = Object.groupBy(expected, (item) =>
    isSuspect(item) ? 'suspects' : 'others',
  );
  await check(suspects);
  let left = others.filter(({ is_progressing }) => is_progressing !== true);
  for (let size = sampleSize; left.length > 0 && !pass.isOver(); size *= sampleGrowth) {
    const stuckBefore = pass.counts.stuck;
    const sample = new Set(pass.sample(left, idOf, size));
    await check([...sample]);
    if (pass.counts.stuck === stuckBefore) return;
    left = left.filter((item) => !sample.has(item));
  }
}

const idOf = ({ id }: ExpectedExecution): string => id;

const byWorkflowId = (executions: readonly ListedExecution[]): ReadonlyMap<string, ListedExecution> =>
  new Map(executions.map((execution) => [execution.workflow_id, execution]));

/**
 * A workflow is stuck from this attempt of one workflow task on, about 15 seconds after the first. A killed worker or an
 * overloaded machine costs one or two attempts; an error in the workflow's code fails every attempt.
 */
const stuckAttempt = 5;

/** Why an execution is started again, for the summary of the new one. `execution` is the latest of its workflow id. */
export function replacementReason(execution: Execution | undefined): string {
  if (!execution) return 'Temporal had no execution.';
  return execution.status === 'RUNNING'
    ? `the workflow task of the previous execution failed ${execution.task_attempt} times.`
    : `the previous execution has the status ${execution.status}.`;
}

/** Whether the workflow task of a running execution keeps failing: it is stuck, or its worker is busy. */
const keepsFailing = (execution: Execution): boolean =>
  execution.status === 'RUNNING' && execution.task_attempt >= stuckAttempt;

/** Whether the workflow task of a running execution keeps failing although the workers are idle. */
export const isStuck = ({ isIdle }: Pick<ReconcilerDependencies, 'isIdle'>, execution: Execution): boolean =>
  keepsFailing(execution) && isIdle();
