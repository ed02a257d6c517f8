import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createReport, type Report } from './report.ts';
import { listenForStop } from './stop_requests.ts';

const root = join(import.meta.dirname, '../..');

/** What is checked besides the tests: scripts of package.json. Each counts as one test. */
const checks = ['typecheck', 'lint', 'format:check', 'imports'];

interface Counts {
  readonly passed: number;
  readonly failed: number;
}

const running = new Set<ChildProcess>();

/** Runs a program in the clone; its output is kept for the answer, or shown as it comes. */
function run(
  command: string,
  args: readonly string[],
  show: boolean,
): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, stdio: ['ignore', ...streams(show)] });
    running.add(child);
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => (output += text));
    child.once('error', (error) => resolve({ code: 1, output: error.message }));
    child.once('close', (code) => {
      running.delete(child);
      resolve({ code: code ?? 1, output });
    });
  });
}

const streams = (show: boolean) => (show ? (['inherit', 'inherit'] as const) : (['pipe', 'pipe'] as const));

async function runCheck(name: string, report: Report): Promise<boolean> {
  const { code, output } = await run('npm', ['run', '--silent', name], false);
  report(code === 0 ? `${name}: passed` : `${name}: failed\n${output.trim()}`);
  return code === 0;
}

/** Two at a time, since that is what the machines of most people and of CI have to give. */
async function runChecks(report: Report): Promise<Counts> {
  const waiting = [...checks];
  const results: boolean[] = [];
  const lane = async () => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift())
      results.push(await runCheck(name, report));
  };
  await Promise.all([lane(), lane()]);
  const passed = results.filter(Boolean).length;
  return { passed, failed: results.length - passed };
}

interface JestResults {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  /** Files that could not be run, so that none of their tests was counted. */
  readonly numRuntimeErrorTestSuites: number;
}

async function runTests(args: readonly string[]): Promise<Counts> {
  const folder = mkdtempSync(join(tmpdir(), 'exportd-test-results-'));
  const file = join(folder, 'results.json');
  try {
    const jest = join(root, 'node_modules/jest/bin/jest.js');
    const options = ['--config', '.config/jest.config.js', '--json', '--outputFile', file];
    const { code } = await run(process.execPath, [jest, ...options, ...args], true);
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

/** Every check, then every test; the last line says how many passed. Arguments go to Jest. */
async function testCommand(args: readonly string[]): Promise<void> {
  void listenForStop(() => process.exit(130)).first.then(() => {
    for (const child of running) child.kill('SIGTERM');
    process.exitCode = 130;
  });
  const report = createReport();
  report(`Checks: ${checks.join(', ')}`);
  const checked = await runChecks(report);
  report('Tests');
  const tested = await runTests(args);
  const failed = checked.failed + tested.failed;
  process.exitCode ??= failed === 0 ? 0 : 1;
  process.stdout.write(`\n${String(checked.passed + tested.passed)} passed, ${String(failed)} failed\n`);
}

await testCommand(process.argv.slice(2));
