import { spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Logger } from '../telemetry/logger.ts';

const bundler = join(import.meta.dirname, 'bundler_program.ts');
const productWorkflows = join(import.meta.dirname, '../../workflows/index.ts');

/**
 * Bundles the workflows for Temporal's sandbox. Takes a few seconds; a process does it once. It is done in a process of
 * its own, since a bundler and a compiler would leave 130 MB behind in one that lives for months.
 * @param workflowsPath the module that exports them
 * @throws Error with what the bundler complained of
 */
export async function bundleWorkflows(
  logger: Logger,
  workflowsPath = productWorkflows,
): Promise<{ code: string }> {
  const process_ = spawn(process.execPath, [bundler, workflowsPath], { stdio: ['ignore', 'pipe', 'pipe'] });
  let code = '';
  let complaints = '';
  process_.stdout.setEncoding('utf8').on('data', (text: string) => (code += text));
  process_.stderr.setEncoding('utf8').on('data', (text: string) => (complaints += text));
  const ending = await new Promise<string | number | null>((resolve, reject) => {
    process_.once('error', reject);
    process_.once('close', (exitCode, signal) => resolve(signal ?? exitCode));
  });
  if (ending !== 0)
    throw new Error(`The workflows could not be bundled (${String(ending)}): ${complaints.trim()}`);
  if (complaints !== '') logger.warn({ complaints }, 'The workflows were bundled with complaints.');
  return { code };
}
