import { join } from 'node:path';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { transform } from 'esbuild';
import { root } from '../../config/installation.ts';
import { type SourceMap, withInlineSourceMap, withLinesAlone } from './source_map.ts';

/**
 * Program that bundles the workflows of a module, its argument, and prints the bundle. It is a separate file, so that Node
 * can run it from source even where Jest has transpiled the rest of the process.
 */

const [workflowsPath] = process.argv.slice(2);
if (workflowsPath === undefined) throw new Error('Usage: bundler_program.ts <workflows>');

const interceptors = join(import.meta.dirname, '../../../workflows/interceptors.ts');
const { code: bundle } = await bundleWorkflowCode({
  workflowsPath,
  workflowInterceptorModules: [interceptors],
  // Evaluated once per worker instead of once per execution. All executions share the frozen state of these modules.
  preloadModules: [interceptors, workflowsPath],
  // Stack traces need no sources, which would be half of the bundle.
  webpackConfigHook: (config) => ({ ...config, devtool: 'inline-nosources-source-map' }),
  logger: new DefaultLogger('WARN', ({ message }) => process.stderr.write(`${message}\n`)),
});
// A worker keeps the bundle in memory twice, and its source map from the first failure on.
const { code, map } = await transform(bundle, {
  minify: true,
  // Temporal shows the names of functions and classes.
  keepNames: true,
  sourcemap: 'external',
  sourcesContent: false,
  sourcefile: 'workflows.js',
  legalComments: 'none',
});
// By the files of packages the SDK knows where the workflow ends in a stack trace.
const short = withLinesAlone(JSON.parse(map) as SourceMap, { packages: 'files' });
// The same in every folder: Temporal knows the bundle by its hash.
const sources = short.sources.map((path) => path.replace(`${root}/`, ''));
process.stdout.write(withInlineSourceMap(code, { ...short, sources, file: 'workflows.js' }));
