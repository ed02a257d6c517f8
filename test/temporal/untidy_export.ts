import { waitFor } from '../setup/wait_for.ts';
import { lastHours, type ControlPlaneHarness } from './control_plane_harness.ts';

/** Creates an export with an obsolete manifest. Returns its id. */
export async function createUntidyExport(stack: ControlPlaneHarness): Promise<string> {
  const id = await stack.createExport();
  await stack.command(id, 'backfill', lastHours(1));
  const first = await stack.waitForRun(id, 'Completed');
  await stack.command(id, 'update', { changes: { config_version: 2 } });
  await stack.command(id, 'retry', { run_id: first.id });
  await waitFor(
    async () => (await stack.runsOf(id)).filter(({ status }) => status === 'Completed').length === 2,
    'the second run',
  );
  return id;
}
