import type { PutOffTask } from '../src/contract/workflow_inputs.ts';

/** What was done. */
export interface UpkeepSummary {
  /** Objects of buckets. */
  removed: number;
  /** Intervals of the source. */
  counted: number;
  differing: number;
}

/** Of the tasks that are put off, so many are named. */
const named = 5;

/** The upkeep as a status line for the Temporal UI, and one for each task that keeps failing. */
export function upkeepDetails(
  { removed, counted, differing }: UpkeepSummary,
  running: number,
  putOff: readonly PutOffTask[],
): string {
  const parts = [
    removed > 0 ? `removed ${removed} objects` : '',
    counted > 0 ? `counted ${counted} intervals again, ${differing} with late rows` : '',
    running > 0 ? `${running} exports under way` : '',
    putOff.length > 0 ? `${putOff.length} put off` : '',
  ].filter((text) => text !== '');
  const failing = putOff
    .slice(0, named)
    .map(
      ({ name, failures, until_ms, reason }) =>
        `- ${name} failed ${failures} times, next try ${new Date(until_ms).toISOString()}: ${reason}`,
    );
  const rest = putOff.length > named ? [`- and ${putOff.length - named} more`] : [];
  return [`Since the last look: ${parts.join('; ') || 'nothing to do'}`, ...failing, ...rest].join('\n');
}
