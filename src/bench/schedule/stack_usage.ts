import { setInterval as ticks } from 'node:timers/promises';
import { readIdentity } from '../../local_stack/process_identity.ts';
import { rounded } from '../statistics.ts';
import { usageOfTree } from '../process_usage.ts';
import type { ScratchStack } from '../scratch_stack.ts';
import type { StackUsage, Usage } from './result.ts';

const names = ['worker', 'server', 'temporal', 'postgresql'] as const;
const sampleMs = 2_000;

/** Measures the resources of the stack's processes. */
export interface UsageWatch {
  /** Resources since the start of the watch. */
  end(): Promise<StackUsage>;
}

/** Watches the processes that are recorded in the scratch folder. Servers from the environment have no values. */
export function watchUsage({ folder }: ScratchStack): UsageWatch {
  const pids = new Map(
    names.map((name) => [name, readIdentity(folder.inside('processes', `${name}.json`))?.pid]),
  );
  const read = (name: (typeof names)[number]) => {
    const pid = pids.get(name);
    return pid === undefined ? null : usageOfTree(pid);
  };
  const before = new Map(names.map((name) => [name, read(name)]));
  const memory = new Map<string, number>();
  const sample = () => {
    for (const name of names) {
      const bytes = read(name)?.memory_bytes ?? null;
      if (bytes !== null) memory.set(name, Math.max(memory.get(name) ?? 0, bytes));
    }
  };
  const ending = new AbortController();
  const sampling = (async () => {
    sample();
    for await (const take of ticks(sampleMs, sample, { signal: ending.signal })) take();
  })().catch(() => undefined);
  const usageOf = (name: (typeof names)[number]): Usage => {
    const [startedAt, ended] = [before.get(name), read(name)];
    return {
      cpu_seconds: startedAt && ended ? rounded(ended.cpu_seconds - startedAt.cpu_seconds) : null,
      memory_bytes: memory.get(name) ?? null,
    };
  };
  return {
    end: async () => {
      ending.abort();
      await sampling;
      sample();
      return {
        worker: usageOf('worker'),
        server: usageOf('server'),
        temporal: usageOf('temporal'),
        postgresql: usageOf('postgresql'),
      };
    },
  };
}
