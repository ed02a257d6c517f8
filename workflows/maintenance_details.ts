import type { DelayedTask } from '../src/contract/workflow_inputs.ts';

/** Work done since the previous round. */
export interface MaintenanceSummary {
  /** Objects deleted from buckets. */
  deleted: number;
  /** Intervals compared with the source. */
  compared: number;
  /** Those of them that are exported again. */
  differing: number;
  /** Unsettled intervals whose transactions have ended, and that were followed up. */
  settled: number;
}

/** How many delayed tasks are listed. */
const maxListedTasks = 5;

/** Formats the state of the maintenance for the Temporal UI: a status line, then a line for each failing task. */
export function maintenanceDetails(
  { deleted, compared, differing, settled }: MaintenanceSummary,
  running: number,
  delayed: readonly DelayedTask[],
): string {
  const parts = [
    deleted > 0 ? `deleted ${count(deleted, 'object')}` : '',
    compared > 0 ? `compared ${count(compared, 'interval')}, ${differing} exported again` : '',
    settled > 0 ? `settled ${count(settled, 'interval')}` : '',
    running > 0 ? `${count(running, 'task')} in progress` : '',
    delayed.length > 0 ? `${count(delayed.length, 'task')} delayed after failures` : '',
  ].filter((part) => part !== '');
  const failing = delayed
    .slice(0, maxListedTasks)
    .map(
      ({ name, failures, retry_at_ms, reason }) =>
        `- ${name} failed ${count(failures, 'time')}, next attempt ${new Date(retry_at_ms).toISOString()}: ${reason}`,
    );
  const rest = delayed.length > maxListedTasks ? [`- and ${delayed.length - maxListedTasks} more`] : [];
  return [`Since the previous round: ${parts.join('; ') || 'nothing to do'}`, ...failing, ...rest].join('\n');
}

const count = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? '' : 's'}`;
