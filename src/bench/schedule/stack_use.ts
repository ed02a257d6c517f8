import { setInterval as ticks } from 'node:timers/promises';
import { readIdentity } from '../../local_stack/process_identity.ts';
import { rounded } from '../figures.ts';
import { treeUseOf } from '../process_figures.ts';
import type { ScratchStack } from '../scratch_stack.ts';
import type { StackUse, Use } from './document.ts';

const names = ['worker', 'server', 'temporal', 'postgresql'] as const;
const sampleMs = 2_000;

/** Watches what the stack's processes use. */
export interface UseWatch {
  /** What they used since the watch began. */
  end(): Promise<StackUse>;
}

/** Begins to watch the processes that the scratch folder knows of; others, such as given servers, have no figures. */
export function watchUse({ folder }: ScratchStack): UseWatch {
  const pids = new Map(
    names.map((name) => [name, readIdentity(folder.inside('processes', `${name}.json`))?.pid]),
  );
  const read = (name: (typeof names)[number]) => {
    const pid = pids.get(name);
    return pid === undefined ? null : treeUseOf(pid);
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
  const useOf = (name: (typeof names)[number]): Use => {
    const [began, ended] = [before.get(name), read(name)];
    return {
      cpu_seconds: began && ended ? rounded(ended.cpu_seconds - began.cpu_seconds) : null,
      memory_bytes: memory.get(name) ?? null,
    };
  };
  return {
    end: async () => {
      ending.abort();
      await sampling;
      sample();
      return {
        worker: useOf('worker'),
        server: useOf('server'),
        temporal: useOf('temporal'),
        postgresql: useOf('postgresql'),
      };
    },
  };
}
