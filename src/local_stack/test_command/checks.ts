import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Report } from '../report.ts';

/** The folder of the clone. */
const root = join(import.meta.dirname, '../../..');
const running = new Set<ChildProcess>();

/** How a program ended; `output` is empty when the program wrote to the terminal. */
interface ProgramResult {
  readonly code: number;
  readonly output: string;
}

interface ProgramOptions {
  /** Whether its output goes straight to the terminal instead of into the result. */
  readonly show?: boolean;
  /** Variables beside those of this process. */
  readonly environment?: Readonly<Record<string, string>>;
}

/**
 * Runs a program in the clone's root folder.
 * @returns exit code 1 for a program that cannot be started or that a signal ended.
 */
function runProgram(
  command: string,
  args: readonly string[],
  { show = false, environment = {} }: ProgramOptions = {},
): Promise<ProgramResult> {
  return new Promise((resolve) => {
    const stream = show ? 'inherit' : 'pipe';
    const env = { ...process.env, ...environment };
    const child = spawn(command, args, { cwd: root, env, stdio: ['ignore', stream, stream] });
    running.add(child);
    let output = '';
    for (const pipe of [child.stdout, child.stderr])
      pipe?.setEncoding('utf8').on('data', (text: string) => (output += text));
    child.once('error', (error) => resolve({ code: 1, output: error.message }));
    child.once('close', (code) => {
      running.delete(child);
      resolve({ code: code ?? 1, output });
    });
  });
}

/** Sends SIGTERM to every program that still runs. */
export function stopPrograms(): void {
  for (const child of running) child.kill('SIGTERM');
}

/** How many checks or tests passed and failed. */
export interface Counts {
  readonly passed: number;
  readonly failed: number;
}

/** A script of package.json that checks the code without running it. */
export type Check = 'lint' | 'format:check' | 'imports' | 'structure';

/** Every check, the slowest first. */
export const allChecks: readonly Check[] = ['lint', 'format:check', 'imports', 'structure'];

/** Type checkers of two threads check many types twice: a third more CPU time, which the tests need. */
const besideTests = { GOMAXPROCS: '1' };

/**
 * Runs checks one after the other, so that they leave a core to the tests beside them. Each counts as one test.
 * @returns the counts, and the output of the checks that failed.
 */
export async function runChecks(
  checks: readonly Check[],
  report: Report,
): Promise<Counts & { failures: string }> {
  let failures = '';
  let passed = 0;
  for (const check of checks) {
    const { code, output } = await runProgram('npm', ['run', '--silent', check], {
      environment: besideTests,
    });
    report(`${check}: ${code === 0 ? 'passed' : 'failed'}`);
    if (code === 0) passed += 1;
    else failures += `\n${check}: failed\n${output.trim()}\n`;
  }
  return { passed, failed: checks.length - passed, failures };
}

/** Brings the programs that tests need, and prints what is out of reach. @returns whether all are there */
export async function bringPrograms(): Promise<boolean> {
  const { code } = await runProgram(process.execPath, ['test/setup/bring_programs.ts'], { show: true });
  return code === 0;
}

interface JestResults {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  /** Files that could not be run, so that none of their tests was counted. */
  readonly numRuntimeErrorTestSuites: number;
}

/**
 * How V8 works in the processes of tests. No helper threads: the processes keep all cores busy, so that helpers only add to the
 * work; without them the unit tests took a seventh less CPU time. And no collection of the whole heap, with all modules, because
 * of 64 MB of buffers, which exports allocate twice a second, or because a test waits: that was a seventh of the CPU time
 * of Jest.
 */
const v8Options = [
  '--single-threaded-gc',
  '--no-concurrent-recompilation',
  '--external-memory-accounted-in-global-limit',
  '--no-memory-reducer',
  '--min-semi-space-size=16',
  '--initial-heap-size=300',
];

/** Runs Jest with the project's config and these arguments; its output goes to the terminal. */
export async function runJest(args: readonly string[]): Promise<Counts> {
  const folder = mkdtempSync(join(tmpdir(), 'exportd-test-results-'));
  const file = join(folder, 'results.json');
  try {
    const jest = join(root, 'node_modules/jest/bin/jest.js');
    const options = ['--config', '.config/jest.config.js', '--json', '--outputFile', file];
    const { code } = await runProgram(process.execPath, [...v8Options, jest, ...options, ...args], {
      show: true,
    });
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
