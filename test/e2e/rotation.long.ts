import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readSettings } from '../../src/config/settings.ts';
import { createClient } from '../../src/temporal/connections.ts';
import { describeProblem } from '../../src/temporal/problems.ts';
import { createBucket } from '../setup/bucket.ts';
import { createCertificateAuthority, type KeyPair } from '../setup/certificates.ts';
import { fromSetUp } from '../setup/environment.ts';
import { hourAgo } from '../setup/hours.ts';
import { createTemporalProxy, type TemporalProxy } from '../setup/temporal_proxy.ts';
import { insertLargeEvents } from './large_events.ts';
import { blockRequests } from './request_gate.ts';
import { createS3Proxy, type S3Proxy } from './s3_proxy.ts';
import { startStack, type Stack } from './stack.ts';
import { verifyExport } from './verify_export.ts';

/** About 6 MB: two parts. */
const rows = 1_400;

const serverAuthority = createCertificateAuthority();
const [before, after] = ['before', 'after'].map((name) => createCertificateAuthority(name));
if (!before || !after) throw new Error('There are no authorities.');
const file = (name: string) => join(fromSetUp('EXPORTD_TEST_FOLDER'), `${randomUUID()}-${name}`);
const [authorityFile, certificateFile, keyFile] = [file('ca.pem'), file('client.pem'), file('client.key')];
const store = ({ certificate, key }: KeyPair): void => {
  writeFileSync(certificateFile, certificate);
  writeFileSync(keyFile, key);
};
const former = before.issue('exportd');

let temporal: TemporalProxy;
let proxy: S3Proxy;
let stack: Stack;

const withFiles = () => ({
  TEMPORAL_ADDRESS: temporal.address,
  TEMPORAL_TLS_SERVER_CA_CERT_PATH: authorityFile,
  TEMPORAL_TLS_CLIENT_CERT_PATH: certificateFile,
  TEMPORAL_TLS_CLIENT_KEY_PATH: keyFile,
});

/** Backfills an hour of a new export. */
async function exportHour(prefix: string, hoursAgo: number): Promise<{ id: string; runId: string }> {
  const id = await stack.createExport({}, { prefix });
  const range = { start_at: hourAgo(hoursAgo).toISOString(), end_at: hourAgo(hoursAgo - 1).toISOString() };
  await stack.call('POST', `/batch_exports/${id}/backfill/`, range);
  const [run] = await stack.runs(id);
  if (!run) throw new Error('The backfill has no run.');
  return { id, runId: run.id };
}

beforeAll(async () => {
  writeFileSync(authorityFile, serverAuthority.certificate);
  store(former);
  temporal = await createTemporalProxy(fromSetUp('EXPORTD_TEST_TEMPORAL_ADDRESS'), {
    server: serverAuthority.issue('127.0.0.1'),
    clientAuthority: before.certificate,
  });
  const bucket = await createBucket();
  proxy = await createS3Proxy(bucket.endpoint);
  stack = await startStack(
    'rotation',
    { EXPORTD_SHUTDOWN_TIMEOUT: '10m', EXPORTD_S3_REQUEST_TIMEOUT: '2m' },
    { bucket: { ...bucket, endpoint: proxy.endpoint }, worker: false },
  );
});
afterAll(async () => {
  await stack.stop();
  await Promise.all([proxy.close(), temporal.close()]);
});

describe('a certificate for Temporal that is replaced', () => {
  it('is used by the next worker, while the former one finishes what it has begun', async () => {
    await insertLargeEvents(stack, hourAgo(3), rows);
    const first = await stack.startWorker(withFiles());
    const gate = blockRequests(proxy, 'the second part', {
      when: 'during',
      matches: ({ operation, partNumber }) => operation === 'UploadPart' && partNumber === 2,
    });
    const begun = await exportHour('begun', 3);
    await gate.reached();

    // Temporal accepts both certificates while processes are replaced, then the new one only.
    temporal.trustClients(before.certificate, after.certificate);
    store(after.issue('exportd'));
    const stopped = first.stop();
    await stack.startWorker(withFiles());
    gate.open();
    await stopped;
    await stack.waitForRun(begun.id, begun.runId, 'Completed');
    temporal.trustClients(after.certificate);
    temporal.disconnect();
    const next = await exportHour('next', 5);
    await stack.waitForRun(next.id, next.runId, 'Completed');

    // One attempt: a second one would number its parts from 1,000 on.
    const parts = proxy.requests.filter(
      ({ key, operation }) => operation === 'UploadPart' && key.startsWith('begun/'),
    );
    expect(parts.map(({ partNumber }) => partNumber)).toEqual([1, 2]);
    const report = await verifyExport(stack, begun.id);
    expect(report.findings).toEqual([]);
    expect(report.totals.rows).toBe(rows);
  });

  it('is no longer accepted', async () => {
    const settings = readSettings({
      DATABASE_URL: 'unused',
      EXPORTD_TEMPORAL_REQUEST_TIMEOUT: '500ms',
      TEMPORAL_ADDRESS: temporal.address,
      TEMPORAL_TLS_SERVER_CA_CERT_PATH: authorityFile,
      TEMPORAL_TLS_CLIENT_CERT_DATA: former.certificate,
      TEMPORAL_TLS_CLIENT_KEY_DATA: former.key,
    });
    const connected = await createClient(settings);
    try {
      const error: unknown = await connected.client.workflow.count().catch((thrown: unknown) => thrown);
      expect(await describeProblem(error, settings)).toMatchObject({ type: 'TemporalTlsError' });
    } finally {
      await connected.close();
    }
  });
});
