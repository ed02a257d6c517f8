import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Counts } from './counts.ts';
import { root, runProgram } from './programs.ts';

interface JestResults {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  /** Files that could not be run, so that none of their tests was counted. */
  readonly numRuntimeErrorTestSuites: number;
}

/** Runs Jest with the project's config and these arguments; its output goes to the terminal. */
export async function runJest(args: readonly string[]): Promise<Counts> {
  const folder = mkdtempSync(join(tmpdir(), 'exportd-test-results-'));
  const file = join(folder, 'results.json');
  try {
    const jest = join(root, 'node_modules/jest/bin/jest.js');
    const options = ['--config', '.config/jest.config.js', '--json', '--outputFile', file];
    const { code } = await runProgram(process.execPath, [jest, ...options, ...args], true);
    const results = readResults(file);
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
    // Jest can fail without a failed test: a set-up that threw, or no tests found.
    return { passed: results.numPassedTests, failed: failed === 0 && code !== 0 ? 1 : failed };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function readResults(file: string): JestResults {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as JestResults;
  } catch {
    return { numPassedTests: 0, numFailedTests: 0, numRuntimeErrorTestSuites: 0 };
  }
}
