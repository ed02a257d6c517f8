import { setTimeout as delay } from 'node:timers/promises';
import type { Child, Children } from './children.ts';
import type { Report } from './report.ts';

/** How a process is kept up; delays are in milliseconds and double from the first to the longest. */
export interface SupervisionOptions {
  /** Told about each new process in place of one that ended. */
  readonly onRestart?: (child: Child) => void;
  /** Told when a process has ended too often in too short a time; without it the supervisor never gives up. */
  readonly onGiveUp?: (child: Child, how: string) => void;
  readonly firstDelayMs?: number;
  readonly longestDelayMs?: number;
}

/** A process that ran this long counts as healthy: its next end starts the count anew. */
const healthyMs = 20_000;
const endsBeforeGivingUp = 6;

/**
 * Starts a process again whenever it ends, after a delay that doubles, until all are being stopped.
 * @returns resolves when it supervises no longer.
 */
export async function supervise(
  children: Children,
  first: Child,
  report: Report,
  options: SupervisionOptions = {},
): Promise<void> {
  const { firstDelayMs = 200, longestDelayMs = 10_000 } = options;
  let child = first;
  let ends = 0;
  for (;;) {
    const begin = performance.now();
    const how = await child.exited;
    if (children.stopping) return;
    ends = performance.now() - begin > healthyMs ? 1 : ends + 1;
    if (options.onGiveUp && ends >= endsBeforeGivingUp) {
      options.onGiveUp(child, how);
      return;
    }
    report(`${child.program.name} ${how}: starting it again`);
    await delay(Math.min(firstDelayMs * 2 ** (ends - 1), longestDelayMs));
    await child.program.beforeRestart?.();
    // It may have changed meanwhile, which the type checker does not see.
    if (isStopping(children)) return;
    child = children.start(child.program);
    options.onRestart?.(child);
  }
}

const isStopping = (children: Children): boolean => children.stopping;
