import { spawn } from 'node:child_process';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import type { WorkflowBundleOption } from '@temporalio/worker';
import { installedPath, isBuild } from '../../config/installation.ts';
import { SettingsError, type Settings } from '../../config/settings.ts';

const bundlerProgram = installedPath('src/temporal/worker/bundler_program.ts');
const productWorkflows = installedPath('workflows/index.ts');
/** The bundle of a build, without which a worker would need a bundler and a compiler. */
const builtBundle = installedPath('workflows.js');

/**
 * Bundles the workflows for Temporal's sandbox, which takes a few seconds; a build has the bundle. It runs in a separate process: a bundler and a
 * compiler would leave 130 MB in the memory of a worker.
 * @param workflowsPath the module that exports the workflows
 * @param signal ends the process
 * @throws Error with the errors of the bundler; its warnings go to standard error
 */
export async function bundleWorkflows(
  workflowsPath = productWorkflows,
  signal?: AbortSignal,
): Promise<{ code: string }> {
  if (isBuild && workflowsPath === productWorkflows) return { code: await readFile(builtBundle, 'utf8') };
  const process_ = spawn(process.execPath, [bundlerProgram, workflowsPath], {
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(signal && { signal }),
  });
  let code = '';
  let errorOutput = '';
  process_.stdout.setEncoding('utf8').on('data', (text: string) => (code += text));
  process_.stderr.setEncoding('utf8').on('data', (text: string) => (errorOutput += text));
  const exit = await new Promise<string | number | null>((resolve, reject) => {
    process_.once('error', reject);
    process_.once('close', (exitCode, signal) => resolve(signal ?? exitCode));
  });
  if (exit !== 0)
    throw new Error(`The workflows could not be bundled (${String(exit)}): ${errorOutput.trim()}`);
  process.stderr.write(errorOutput);
  return { code };
}

/** Bundles the workflows to a file for workers to start with. The file is replaced atomically. */
export async function writeWorkflowBundle(path: string): Promise<void> {
  const temporaryPath = `${path}.${process.pid}`;
  // Bundling takes seconds, so a folder that cannot be written to is found out before.
  await writeFile(temporaryPath, '');
  try {
    const { code } = await bundleWorkflows();
    await writeFile(temporaryPath, code);
    await rename(temporaryPath, path);
  } catch (error) {
    await rm(temporaryPath, { force: true });
    throw error;
  }
}

/**
 * Reads the bundle of the setting. Without it, that of a build is named by its path, which makes the worker's build id that of the
 * file, and a clone creates one.
 * @throws SettingsError when the file cannot be read
 */
export async function loadWorkflowBundle(
  { EXPORTD_WORKFLOW_BUNDLE: path }: Pick<Settings, 'EXPORTD_WORKFLOW_BUNDLE'>,
  signal: AbortSignal,
): Promise<WorkflowBundleOption> {
  if (path === undefined)
    return isBuild ? { codePath: builtBundle } : bundleWorkflows(productWorkflows, signal);
  const code = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new SettingsError(
      `EXPORTD_WORKFLOW_BUNDLE: ${path} cannot be read. Write it with exportd bundle, or unset the variable.`,
      { cause: error },
    );
  });
  return { code };
}
