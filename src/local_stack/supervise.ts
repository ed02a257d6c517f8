import { setTimeout as delay } from 'node:timers/promises';
import type { Child, ChildProcesses } from './child_processes.ts';
import type { Report } from './report.ts';

/** How a process is restarted. The delay doubles from the initial to the maximum one. */
export interface SupervisionOptions {
  /** Called with each new process. */
  readonly onRestart?: (child: Child) => void;
  /** Called when a process keeps exiting soon after its start. Without it the process is restarted indefinitely. */
  readonly onCrashLoop?: (child: Child, how: string) => void;
  readonly initialDelayMs?: number;
  readonly maxDelayMs?: number;
}

/** An exit after this time is not a rapid one and resets their count. */
const healthyMs = 20_000;
const maxRapidExits = 6;

/**
 * Restarts a process whenever it exits, with a growing delay, until the stack is stopped.
 * @returns Resolves when the supervision ends.
 */
export async function supervise(
  children: ChildProcesses,
  first: Child,
  report: Report,
  options: SupervisionOptions = {},
): Promise<void> {
  const { initialDelayMs = 200, maxDelayMs = 10_000 } = options;
  let child = first;
  let rapidExits = 0;
  for (;;) {
    const startedAt = performance.now();
    const how = await child.exited;
    if (children.stopping) return;
    rapidExits = performance.now() - startedAt > healthyMs ? 1 : rapidExits + 1;
    if (options.onCrashLoop && rapidExits >= maxRapidExits) {
      options.onCrashLoop(child, how);
      return;
    }
    report(`${child.program.name} ${how}: restarting it`);
    await delay(Math.min(initialDelayMs * 2 ** (rapidExits - 1), maxDelayMs));
    await child.program.beforeRestart?.();
    // A function call, because the type checker assumes that the property has not changed.
    if (isStopping(children)) return;
    child = children.start(child.program);
    options.onRestart?.(child);
  }
}

const isStopping = (children: ChildProcesses): boolean => children.stopping;
