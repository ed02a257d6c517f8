import { spawn } from 'node:child_process';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SettingsError, type Settings } from '../../config/settings.ts';

const bundler = join(import.meta.dirname, 'bundler_program.ts');
const productWorkflows = join(import.meta.dirname, '../../../workflows/index.ts');

/**
 * Bundles the workflows for Temporal's sandbox. Takes a few seconds; a process does it once. It is done in a process of
 * its own, since a bundler and a compiler would leave 130 MB behind in one that lives for months.
 * @param workflowsPath the module that exports them
 * @throws Error with what the bundler complained of; what did not keep it from its work goes to standard error
 */
export async function bundleWorkflows(workflowsPath = productWorkflows): Promise<{ code: string }> {
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
  process.stderr.write(complaints);
  return { code };
}

/** Bundles the workflows into a file for workers to start with, all of it or nothing. */
export async function writeWorkflowBundle(path: string): Promise<void> {
  const { code } = await bundleWorkflows();
  const beside = `${path}.${process.pid}`;
  await writeFile(beside, code);
  await rename(beside, path);
}

/** The bundle of the setting, or a new one. @throws SettingsError when the file cannot be read. */
export async function workflowBundleOf({
  EXPORTD_WORKFLOW_BUNDLE: path,
}: Pick<Settings, 'EXPORTD_WORKFLOW_BUNDLE'>): Promise<{ code: string }> {
  if (path === undefined) return bundleWorkflows();
  const code = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new SettingsError(
      `EXPORTD_WORKFLOW_BUNDLE: ${path} cannot be read; write it with exportd bundle, or leave the setting out.`,
      { cause: error },
    );
  });
  return { code };
}
