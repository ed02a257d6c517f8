import { readFileSync, writeFileSync } from 'node:fs';
import { LaunchError } from '../local_stack/launch_error.ts';
import type { BenchResult } from './result.ts';
import type { WorkersBenchResult } from './workers/result.ts';

/** A result in a file, by its benchmark. */
export type SavedResult =
  | { readonly benchmark: 'exports'; readonly result: BenchResult }
  | { readonly benchmark: 'workers'; readonly result: WorkersBenchResult };

/** Writes a result as `--json` prints it. */
export const saveResult = (file: string, result: object): void =>
  writeFileSync(file, `${JSON.stringify(result, null, 2)}\n`);

/** Reads a saved result. @throws LaunchError when the file has none */
export function readSavedResult(file: string): SavedResult {
  const result = parse(file);
  if ('floor' in result && 'exports' in result && 'duckdb' in result)
    return { benchmark: 'exports', result: result as BenchResult };
  if ('large_interval' in result) return { benchmark: 'workers', result: result as WorkersBenchResult };
  throw new LaunchError(`${file} is not a saved result of exportd bench or exportd bench workers.`);
}

/** Reads a result of `exportd bench`. @throws LaunchError when the file has none */
export function readBenchResult(file: string): BenchResult {
  const saved = readSavedResult(file);
  if (saved.benchmark !== 'exports') throw new LaunchError(`${file} is a result of exportd bench workers.`);
  return saved.result;
}

function parse(file: string): object {
  try {
    return Object(JSON.parse(readFileSync(file, 'utf8'))) as object;
  } catch (error) {
    throw new LaunchError(`${file} cannot be read as a saved result. ${String(error)}`);
  }
}
