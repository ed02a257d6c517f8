import { describe, expect, it } from '@jest/globals';
import { createBucket } from '../setup/bucket.ts';
import { hourAgo } from '../setup/hours.ts';
import { failoverWorkers } from '../setup/timeouts.ts';
import { insertLargeEvents } from './large_events.ts';
import { blockRequests } from './request_gate.ts';
import { readManifest } from './rows.ts';
import { createS3Proxy } from './s3_proxy.ts';
import { startStack } from './stack.ts';
import { verifyExport } from './verify_export.ts';

const range = { start_at: hourAgo(3).toISOString(), end_at: hourAgo(2).toISOString() };

describe('SIGKILL while a run is compared with the manifest that it replaces', () => {
  it('has no effect', async () => {
    const bucket = await createBucket();
    const proxy = await createS3Proxy(bucket.endpoint);
    const stack = await startStack('kill-check', failoverWorkers, {
      bucket: { ...bucket, endpoint: proxy.endpoint },
    });
    try {
      await insertLargeEvents(stack, hourAgo(3), 10);
      const exportId = await stack.createExport({}, { prefix: 'checked' });
      await stack.call('POST', `/batch_exports/${exportId}/backfill/`, range);
      const [created] = await stack.runs(exportId);
      const first = await stack.waitForRun(exportId, created?.id ?? '', 'Completed');
      await insertLargeEvents(stack, hourAgo(3), 1);
      const gate = blockRequests(proxy, 'the older file is read', {
        when: 'after',
        matches: ({ operation, key }) => operation === 'GetObject' && !key.includes('/_manifests/'),
      });
      const { headers } = await stack.call('POST', `/batch_exports/${exportId}/runs/${first.id}/retry/`, {});
      const runId = headers.get('location')?.split('/').at(-2) ?? '';
      await gate.reached();
      await stack.killWorker();
      gate.open('broken');
      await stack.startWorker();

      const run = await stack.waitForRun(exportId, runId, 'Completed');
      const { rows: checks } = await stack.pool.query<{ outcome: string }>(
        `select data->>'outcome' as outcome from exportd.journal_events
         where stream_id = $1 and event_type = 'RunReplacementChecked'`,
        [runId],
      );
      expect(checks).toEqual([{ outcome: 'every_row_present' }]);
      expect(await readManifest(stack.bucket, run.manifest_key ?? '')).toMatchObject({
        generation: 2,
        rows: 11,
      });
      expect((await verifyExport(stack, exportId)).findings).toEqual([]);
    } finally {
      await stack.stop();
      await proxy.close();
    }
  });
});
