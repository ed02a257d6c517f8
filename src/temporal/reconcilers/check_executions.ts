import type { WorkflowType } from '../../contract/workflow_types.ts';
import { describeExecution, type Execution } from '../clients/executions.ts';
import type { ListedExecution } from '../clients/execution_lists.ts';
import type { Pass } from './pass.ts';
import type { ReconcilerDependencies } from './reconciler.ts';

/** An execution that the control database expects to run. */
export interface ExpectedExecution {
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
  readonly workflowType: WorkflowType;
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
  { client, executionLists }: Pick<ReconcilerDependencies, 'client' | 'executionLists'>,
  pass: Pass,
  { workflowType, expected, isOf = () => true, repair }: ExecutionCheck<Item>,
): Promise<void> {
  pass.counts.expected += expected.length;
  const check = (items: readonly Item[]): Promise<void> =>
    pass.forEachItem(items, idOf, async (item) => {
      const execution = await describeExecution(client, item.workflow_id);
      pass.counts.described += 1;
      if (execution && isStuck(execution)) pass.counts.stuck += 1;
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

/** Whether the workflow task of a running execution keeps failing. */
export const isStuck = (execution: Execution): boolean =>
  execution.status === 'RUNNING' && execution.task_attempt >= stuckAttempt;
