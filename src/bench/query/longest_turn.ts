import { existsSync, readFileSync } from 'node:fs';
import type { StackEnvironment } from '../../local_stack/stack_file.ts';

/** Settings that make exportd's processes record the long turns of their event loops in a folder. */
export const recordTurns = (folder: string): StackEnvironment => ({
  NODE_OPTIONS: `--import=${new URL('./record_turns.ts', import.meta.url).href}`,
  BENCH_TURNS_FOLDER: folder,
});

/** Starts a measurement; the result is the CPU time of the longest turn since then, in milliseconds. */
export function measureTurns(folder: string, pid: number): () => number {
  const file = `${folder}/${String(pid)}.turns`;
  const read = (): string => (existsSync(file) ? readFileSync(file, 'utf8') : '');
  const before = read().length;
  return () => Math.max(0, ...read().slice(before).split('\n').map(Number));
}
