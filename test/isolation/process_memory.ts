/** Memory of a worker and of the processes that read for it. */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { memoryOf } from '../bench/usage.ts';

/** The most resident memory, in MiB. */
interface PeakMemory {
  /** Of the process alone. */
  readonly own: number;
  /** Of its children together, at a time. */
  readonly children: number;
}

const pollMs = 200;

const inMiB = (bytes: number): number => Math.round(bytes / 2 ** 20);

/** The processes that threads of a process have started. */
const childrenOf = (pid: number): readonly number[] =>
  readdirSync(`/proc/${pid}/task`).flatMap((thread) => {
    try {
      return readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8')
        .split(' ')
        .filter(Boolean)
        .map(Number);
    } catch {
      return [];
    }
  });

/** Watches the memory of a process until it is stopped. */
export function watchMemory(pid: number): { stop(): Promise<PeakMemory> } {
  const stopping = new AbortController();
  let children = 0;
  const watching = (async () => {
    while (!stopping.signal.aborted) {
      const now = childrenOf(pid).reduce((sum, child) => sum + (memoryOf(child)?.resident ?? 0), 0);
      children = Math.max(children, now);
      await delay(pollMs);
    }
  })();
  return {
    stop: async () => {
      stopping.abort();
      await watching;
      return { own: inMiB(memoryOf(pid)?.peak ?? 0), children: inMiB(children) };
    },
  };
}
