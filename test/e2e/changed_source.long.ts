import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { storeTraits } from '../../src/destination/store_traits.ts';
import { requiringEqualParts } from '../export/stores.ts';
import { createBucket } from '../setup/bucket.ts';
import { hourAgo } from '../setup/hours.ts';
import { failoverWorkers } from '../setup/timeouts.ts';
import { insertLargeEvents } from './large_events.ts';
import { blockRequests, type RequestGate } from './request_gate.ts';
import { readManifest } from './rows.ts';
import { createS3Proxy, type S3Proxy } from './s3_proxy.ts';
import { startStack, type RunResponse, type Stack } from './stack.ts';
import { verifyExport } from './verify_export.ts';

/** Three parts. */
const rows = 2_500;
const range = { start_at: hourAgo(3).toISOString(), end_at: hourAgo(2).toISOString() };
const stores = ['any parts', 'equal parts'] as const;
/** What happens to the source while the worker is dead. A row that is deleted is before every part. */
const changes = {
  'a late row': `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
    values ($1, gen_random_uuid(), 'late', 'person', '{}', now(), $2::timestamptz + interval '1 second')`,
  'a deleted row': `delete from events where uuid = (select uuid from events
    where team_id = $1 and inserted_at >= $2 order by inserted_at, uuid limit 1)`,
};

describe('SIGKILL between parts, and a source that changes before the point where the file is resumed', () => {
  let stack: Stack;
  const proxies: S3Proxy[] = [];
  const runs = new Map<string, { exportId: string; run: RunResponse }>();

  beforeAll(async () => {
    const bucket = await createBucket();
    stack = await startStack('changed-source', failoverWorkers, { bucket });
    await insertLargeEvents(stack, hourAgo(3), rows);
    const gates: RequestGate[] = [];
    const started: { store: string; exportId: string; runId: string }[] = [];
    for (const store of stores) {
      const proxy = await createS3Proxy(bucket.endpoint);
      proxies.push(proxy);
      const equal_parts = store === 'equal parts';
      if (equal_parts) proxy.intercept(requiringEqualParts(proxy.requests));
      const location = `${new URL(proxy.endpoint).host}/${bucket.bucket}`;
      await storeTraits(stack.pool, { team_id: stack.projectId, location }, { equal_parts });
      gates.push(
        blockRequests(proxy, `the second part to a store of ${store}`, {
          when: 'before',
          matches: ({ operation, partNumber }) => operation === 'UploadPart' && partNumber === 2,
        }),
      );
      const config = { endpoint_url: proxy.endpoint, prefix: store.replace(' ', '-'), compression: 'gzip' };
      const exportId = await stack.createExport({}, config);
      await stack.call('POST', `/batch_exports/${exportId}/backfill/`, range);
      const [run] = await stack.runs(exportId);
      started.push({ store, exportId, runId: run?.id ?? '' });
    }
    await Promise.all(gates.map((gate) => gate.reached()));
    await stack.killWorker();
    for (const statement of Object.values(changes))
      await stack.pool.query(statement, [stack.projectId, range.start_at]);
    for (const gate of gates) gate.open('broken');
    await stack.startWorker();
    for (const { store, exportId, runId } of started)
      runs.set(store, { exportId, run: await stack.waitForRun(exportId, runId, 'Completed') });
  });
  afterAll(async () => {
    await stack.stop();
    for (const proxy of proxies) await proxy.close();
  });

  it.each(stores)('ends with exactly the rows of the source on a store of %s', async (store) => {
    const found = runs.get(store);
    const manifest = await readManifest(stack.bucket, found?.run.manifest_key ?? '');
    // One row was deleted and one added.
    expect(manifest).toMatchObject({ rows, source_rows: rows });
    const report = await verifyExport(stack, found?.exportId ?? '');
    expect(report.findings).toEqual([]);
    expect(report.totals).toMatchObject({ manifests: 1, rows });
  });
});
