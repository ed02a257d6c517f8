import { cpus } from 'node:os';
import { cpuSecondsOf, memoryOf, resetPeakMemory } from '../process_usage.ts';
import { rounded } from '../statistics.ts';
import type { LargeIntervalResult } from './result.ts';

type WorkersUsage = Pick<LargeIntervalResult, 'busy_cores' | 'worker_cpu_seconds' | 'peak_memory_bytes'>;

/** Measures the machine and the workers from now on, until the returned function is called. */
export function watchWorkers(pids: readonly number[]): () => WorkersUsage {
  for (const pid of pids) resetPeakMemory(pid);
  const cpuSeconds = () => pids.reduce((sum, pid) => sum + (cpuSecondsOf(pid) ?? Number.NaN), 0);
  const cpuBefore = cpuSeconds();
  const busyBefore = busyMs();
  const startedAt = performance.now();
  return () => {
    const used = cpuSeconds() - cpuBefore;
    return {
      busy_cores: rounded((busyMs() - busyBefore) / (performance.now() - startedAt)),
      worker_cpu_seconds: Number.isNaN(used) ? null : rounded(used),
      peak_memory_bytes: pids.map((pid) => memoryOf(pid)?.peak ?? null),
    };
  };
}

/** CPU time of all programs since the start of the machine. */
const busyMs = (): number =>
  cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0);
