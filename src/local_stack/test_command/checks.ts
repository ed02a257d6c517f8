import type { Report } from '../report.ts';
import { runProgram } from './programs.ts';
import type { Counts } from './counts.ts';

/** A script of package.json that checks the code without running it. */
export type Check = 'lint' | 'format:check' | 'imports';

/** Every check, the slowest first. */
export const allChecks: readonly Check[] = ['lint', 'format:check', 'imports'];

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
    const { code, output } = await runProgram('npm', ['run', '--silent', check]);
    report(`${check}: ${code === 0 ? 'passed' : 'failed'}`);
    if (code === 0) passed += 1;
    else failures += `\n${check}: failed\n${output.trim()}\n`;
  }
  return { passed, failed: checks.length - passed, failures };
}
