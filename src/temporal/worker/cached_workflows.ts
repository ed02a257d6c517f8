import { totalmem } from 'node:os';
import type { Settings } from '../../config/settings.ts';

/** Measured: 1,000 sleeping schedules take 550 MB. */
const bytesPerWorkflow = 550_000;
/** Share of the memory for cached workflows. */
const memoryShare = 0.1;
/** The number of concurrent workflow tasks. */
const minWorkflows = 200;
const maxWorkflows = 2_000;

/**
 * How many workflow executions a worker caches.
 * @param memoryBytes memory of the machine, or of the container if that is less
 */
export function maxCachedWorkflows(
  { EXPORTD_MAX_CACHED_WORKFLOWS: configured }: Pick<Settings, 'EXPORTD_MAX_CACHED_WORKFLOWS'>,
  memoryBytes = availableMemory(),
): number {
  if (configured !== undefined) return configured;
  return Math.min(
    maxWorkflows,
    Math.max(minWorkflows, Math.floor((memoryBytes * memoryShare) / bytesPerWorkflow)),
  );
}

/** Without a constraint Node returns 0, or a number larger than the memory. */
function availableMemory(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}
