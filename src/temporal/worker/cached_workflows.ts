import { totalmem } from 'node:os';
import type { Settings } from '../../config/settings.ts';

/** Measured: 1,000 schedules that sleep take 550 MB. */
const bytesPerWorkflow = 550_000;
/** Part of the memory that they may have. */
const share = 0.1;
/** Fewer would be fewer than the workflow tasks under way at once. */
const fewest = 200;
const most = 2_000;

/**
 * How many executions of workflows a worker keeps in memory.
 * @param memoryBytes of the machine, or of the container when that has less.
 */
export function maxCachedWorkflows(
  { EXPORTD_MAX_CACHED_WORKFLOWS: asked }: Pick<Settings, 'EXPORTD_MAX_CACHED_WORKFLOWS'>,
  memoryBytes = availableMemory(),
): number {
  if (asked !== undefined) return asked;
  return Math.min(most, Math.max(fewest, Math.floor((memoryBytes * share) / bytesPerWorkflow)));
}

/** Node answers 0, or a number beyond all memory, where nothing constrains the process. */
function availableMemory(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}
