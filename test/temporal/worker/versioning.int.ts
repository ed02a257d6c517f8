import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { workflowIds } from '../../../src/contract/workflow_ids.ts';
import { countPollers, describeIdlePollers } from '../../../src/temporal/clients/executions.ts';
import { waitFor } from '../../setup/wait_for.ts';
import { type ControlPlaneHarness, createControlPlaneHarness } from '../control_plane_harness.ts';

const deploymentName = `test-${randomUUID()}`;
let stack: ControlPlaneHarness;
beforeAll(async () => {
  stack = await createControlPlaneHarness({
    EXPORTD_DEPLOYMENT_NAME: deploymentName,
    EXPORTD_BUILD_ID: '0.3.0',
  });
});
afterAll(() => stack.close());

/** Makes a version current, once Temporal has seen a worker of it. */
const makeCurrent = (buildId: string) =>
  waitFor(
    () =>
      stack.client.workflowService
        .setWorkerDeploymentCurrentVersion({
          namespace: stack.settings.TEMPORAL_NAMESPACE,
          deploymentName,
          buildId,
          ignoreMissingTaskQueues: true,
        })
        .then(
          () => true,
          () => false,
        ),
    `version ${buildId} is current`,
  );

/** The Build ID of the worker that completed the last task of an export's schedule. */
async function buildIdOf(exportId: string): Promise<string | null | undefined> {
  const { raw } = await stack.client.workflow
    .getHandle(workflowIds(stack.settings).schedule(exportId))
    .describe();
  return raw.workflowExecutionInfo?.versioningInfo?.deploymentVersion?.buildId;
}

describe('workers of a Worker Deployment', () => {
  it('get tasks while their version is current, and schedules move to the next version', async () => {
    const { client, settings } = stack;
    await stack.startWorker();
    await waitFor(
      async () => (await describeIdlePollers(client, settings)).startsWith('1 worker(s) poll'),
      'Temporal has seen the worker',
    );
    expect(await countPollers(client, settings)).toBe(0);
    expect(await describeIdlePollers(client, settings)).toContain(
      'Temporal sends tasks to unversioned workers: make their version current',
    );

    await makeCurrent('0.3.0');
    const id = await stack.createExportWithRun();
    await stack.waitForRun(id, 'Completed');
    expect(await countPollers(client, settings)).toBe(1);
    expect(await buildIdOf(id)).toBe('0.3.0');
    await stack.stopWorker();

    Object.assign(settings, { EXPORTD_BUILD_ID: '0.4.0' });
    await stack.startWorker();
    await makeCurrent('0.4.0');
    expect(await stack.command(id, 'pause')).toMatchObject({ status: 'applied' });
    await waitFor(async () => (await buildIdOf(id)) === '0.4.0', 'the schedule has moved');
  });
});
