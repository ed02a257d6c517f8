import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { temporalCommand } from '../setup/temporal_command.ts';

const run = promisify(execFile);

/** Resets a workflow to its first task, as an operator may. */
export async function resetToFirstTask(temporalAddress: string, workflowId: string): Promise<void> {
  const where = ['--workflow-id', workflowId, '--address', temporalAddress];
  await run(await temporalCommand(), [
    'workflow',
    'reset',
    '--type',
    'FirstWorkflowTask',
    '--reason',
    'a test',
    ...where,
  ]);
}
