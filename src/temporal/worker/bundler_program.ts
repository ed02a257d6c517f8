import { join } from 'node:path';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';

/**
 * Program that bundles the workflows of a module, its argument, and prints the bundle. It is a separate file, so that Node
 * can run it from source even where Jest has transpiled the rest of the process.
 */

const [workflowsPath] = process.argv.slice(2);
if (workflowsPath === undefined) throw new Error('Usage: bundler_program.ts <workflows>');

const interceptors = join(import.meta.dirname, '../../../workflows/interceptors.ts');
const { code } = await bundleWorkflowCode({
  workflowsPath,
  workflowInterceptorModules: [interceptors],
  // Evaluated once per worker instead of once per execution. All executions share the frozen state of these modules.
  preloadModules: [interceptors, workflowsPath],
  // Stack traces need no sources, which would be half of the bundle: 8 MB in a worker.
  webpackConfigHook: (config) => ({ ...config, devtool: 'inline-nosources-source-map' }),
  logger: new DefaultLogger('WARN', ({ message }) => process.stderr.write(`${message}\n`)),
});
process.stdout.write(code);
