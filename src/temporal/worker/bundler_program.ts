import { join } from 'node:path';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';

/**
 * The program that bundles the workflows of a module, its argument, and prints the bundle. Node runs it from this source also where the rest of
 * the process was translated (Jest).
 */

const [workflowsPath] = process.argv.slice(2);
if (workflowsPath === undefined) throw new Error('Usage: bundler_program.ts <workflows>');

const signalTamer = join(import.meta.dirname, '../../../workflows/normalize_signals.ts');
const { code } = await bundleWorkflowCode({
  workflowsPath,
  workflowInterceptorModules: [signalTamer],
  // Evaluated once for a worker instead of once for each execution. All executions share what these modules keep, frozen.
  preloadModules: [signalTamer, workflowsPath],
  // Stack traces name file and line all the same; the texts of the sources would be half of the bundle, 8 MB in a worker.
  webpackConfigHook: (config) => ({ ...config, devtool: 'inline-nosources-source-map' }),
  logger: new DefaultLogger('WARN', ({ message }) => process.stderr.write(`${message}\n`)),
});
process.stdout.write(code);
