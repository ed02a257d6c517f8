import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { programPath } from '../setup/programs.ts';

/** Runs promtool. @returns what it printed; empty if it found nothing to report @throws Error with its output */
async function promtool(args: readonly string[], input = ''): Promise<string> {
  const program = await programPath('promtool');
  return new Promise((resolve, reject) => {
    const child = execFile(program, [...args], (error, stdout, stderr) => {
      if (error) reject(new Error(`promtool ${args.join(' ')}: ${stdout}${stderr}`));
      else resolve(stdout + stderr);
    });
    child.stdin?.end(input);
  });
}

/** Checks the form and the names of scraped metrics. @throws Error with what is wrong */
export const checkMetrics = (scraped: string): Promise<string> => promtool(['check', 'metrics'], scraped);

/** Checks a rule file. @throws Error with what is wrong */
export const checkRules = (file: string): Promise<string> => promtool(['check', 'rules', file]);

/** An expression with the series that it is evaluated on after 20 minutes, and its expected result. */
interface ExpressionTest {
  readonly name: string;
  readonly expression: string;
  readonly series: Readonly<Record<string, string>>;
  readonly expected: readonly { readonly labels: string; readonly value: number }[];
}

/**
 * Evaluates expressions.
 * @param ruleFile rules whose alerts the expressions can read as `ALERTS`
 * @returns what promtool printed @throws Error with the name of the test and both results
 */
export async function testExpressions(tests: readonly ExpressionTest[], ruleFile?: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'exportd-promtool-'));
  const file = join(folder, 'tests.yaml');
  const content = {
    rule_files: ruleFile === undefined ? [] : [ruleFile],
    evaluation_interval: '1m',
    tests: tests.map(({ name, expression, series, expected }) => ({
      name,
      interval: '1m',
      input_series: Object.entries(series).map(([one, values]) => ({ series: one, values })),
      promql_expr_test: [{ expr: expression, eval_time: '20m', exp_samples: expected }],
    })),
  };
  writeFileSync(file, stringify(content));
  try {
    return await promtool(['test', 'rules', file]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
