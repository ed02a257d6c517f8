import { readFileSync } from 'node:fs';
import { fromSetUp } from './environment.ts';

/** The workflows, bundled once for a run of Jest. */
export const sharedBundle = (): { readonly code: string } => ({
  code: readFileSync(fromSetUp('EXPORTD_WORKFLOW_BUNDLE'), 'utf8'),
});
