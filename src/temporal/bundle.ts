import { join } from 'node:path';
import { bundleWorkflowCode, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { Logger } from '../telemetry/logger.ts';
import { temporalLogger } from './runtime.ts';

const workflows = join(import.meta.dirname, '../../workflows');

/** Bundles the workflows for Temporal's sandbox. Takes a few seconds; a process does it once. */
export const bundleWorkflows = (logger: Logger): Promise<WorkflowBundleWithSourceMap> =>
  bundleWorkflowCode({
    workflowsPath: join(workflows, 'index.ts'),
    workflowInterceptorModules: [join(workflows, 'tame_signals.ts')],
    logger: temporalLogger(logger),
  });
