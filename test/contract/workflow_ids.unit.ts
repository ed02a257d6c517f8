import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { deliveryIds } from '../../src/contract/notification_input.ts';
import { workflowIds } from '../../src/contract/workflow_ids.ts';

const id = randomUUID();
const run = {
  batch_export_id: id,
  data_interval_start: '2026-11-01T10:00:00.000Z',
  data_interval_end: '2026-11-01T11:00:00.000Z',
};
const idsOf = (deployment: string) => {
  const settings = { EXPORTD_TASK_QUEUE_PREFIX: deployment };
  const ids = workflowIds(settings);
  return {
    schedule: ids.schedule(id),
    backfill: ids.backfill(id),
    run: ids.run(run),
    query: ids.query({ team_id: 1, id: 'chosen-by-a-user' }),
    verification: ids.job('batchExportVerification', id),
    webhookTest: ids.job('exportdWebhookTest', id),
    delivery: deliveryIds(settings).workflowId(id),
    maintenance: ids.maintenance(),
  };
};

describe('workflow ids', () => {
  it('differ between the deployments of a namespace', () => {
    const ids = ['exportd', 'staging', 'production'].flatMap((deployment) =>
      Object.values(idsOf(deployment)),
    );
    expect(new Set(ids).size).toBe(3 * 8);
    for (const ofStaging of Object.values(idsOf('staging'))) expect(ofStaging).toMatch(/^staging-/);
  });

  it('begin with what they are in the default deployment, so that a person can find and signal them', () => {
    expect(idsOf('exportd')).toMatchObject({
      schedule: `batch-export-${id}`,
      run: `batch-export-run-${id}-20261101T100000Z-20261101T110000Z`,
      backfill: `batch-export-backfill-${id}`,
      query: 'query-1-chosen-by-a-user',
      maintenance: 'batch-export-maintenance',
      verification: `batch-export-verification-${id}`,
      webhookTest: `exportd-webhook-test-${id}`,
    });
  });

  it('name the delivery of their own deployment only', () => {
    const { deliveryIdOf, workflowId } = deliveryIds({ EXPORTD_TASK_QUEUE_PREFIX: 'staging' });
    expect(deliveryIdOf(workflowId(id))).toBe(id);
    expect(deliveryIdOf(idsOf('exportd').delivery)).toBeUndefined();
    expect(deliveryIdOf(`${workflowId(id)}-more`)).toBeUndefined();
  });
});
