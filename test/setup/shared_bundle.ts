import { readFileSync } from 'node:fs';
import { fromSetUp } from './environment.ts';

/** The workflow bundle that the global set-up wrote for this run of Jest. */
export const sharedBundle = (): { readonly code: string } => ({
  code: readFileSync(fromSetUp('EXPORTD_WORKFLOW_BUNDLE'), 'utf8'),
});
