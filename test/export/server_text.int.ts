/** What a store says of an error is for the owner of the export: short, in one line, without secrets. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { createDestinationOpener } from '../../src/destination/open_destination.ts';
import { createCircuitBreaker } from '../../src/failures/circuits.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { createS3Proxy, type S3Proxy } from '../e2e/s3_proxy.ts';
import { createExportHarness, type ExportHarness } from './export_harness.ts';
import { createCircuitStore } from '../../src/failures/circuit_store.ts';

let harness: ExportHarness;
let proxy: S3Proxy;
let stop: (() => void) | undefined;
beforeAll(async () => {
  harness = await createExportHarness();
  proxy = await createS3Proxy(harness.bucket.endpoint);
  await harness.insertEvents(10);
});
afterEach(async () => {
  stop?.();
  await harness.database.pool.query('delete from exportd.destination_circuits');
});
afterAll(async () => {
  await proxy.close();
  await harness.close();
});

const kms =
  'User: arn:aws:iam::123456789012:user/exports is not authorized to perform: kms:GenerateDataKey on resource: arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab';

/** Exports through a store that refuses each request that has a text as its answer. @returns the error of the attempt */
async function refused(status: number, code: string, text: string) {
  const body = `<Error><Code>${code}</Code><Message>${text}</Message></Error>`;
  stop = proxy.intercept({
    before: ({ operation }) => (operation === 'HeadObject' ? undefined : { status, body }),
  });
  const { run_id } = await harness.createRun({ config: { endpoint_url: proxy.endpoint } });
  const settings = { ...harness.settings, EXPORTD_S3_RETRY_BUDGET: 0 };
  const { pool } = harness.database;
  const circuits = createCircuitBreaker(
    createCircuitStore(pool, settings, createLogger('test', settings)),
    settings,
  );
  const openDestination = createDestinationOpener(pool, harness.keyRing, settings, circuits);
  const failed = await harness
    .attempt({ openDestination })
    .exportInterval({ run_id })
    .then(
      () => new Error('It succeeded.'),
      (error: unknown) => error as Error & { type?: string },
    );
  const { rows } = await pool.query<{ error: string | null }>(
    'select error from exportd.destination_circuits',
  );
  return { failed, circuit: rows.map(({ error }) => error ?? '').join(' ') };
}

describe('what a store says of an error', () => {
  it('is in the message for the owner of the export', async () => {
    const { failed } = await refused(403, 'AccessDenied', kms);
    expect(failed.message).toContain('check that the credentials of the destination may write');
    expect(failed.message).toContain(kms);
  });

  it('is cut, in one line and without markup', async () => {
    const { failed } = await refused(
      403,
      'AccessDenied',
      `&lt;b&gt;&#10;\u202eline${' and more'.repeat(5_000)}`,
    );
    expect(failed.message).toMatch(/The server says: b line and more.*…$/u);
    expect(failed.message).not.toMatch(/[<>\p{Cc}\u202e]/u);
    expect(failed.message.length).toBeLessThan(800);
  });

  it('has no secrets', async () => {
    const { accessKeyId, secretAccessKey } = harness.bucket;
    const token = 'IQoJb3JpZ2luX2VjEAoaCWV1LXdlc3QtMSJHMEUCIQDlongerThanFortyCharacters';
    const { failed } = await refused(
      403,
      'SignatureDoesNotMatch',
      `The key ${accessKeyId} with ${secretAccessKey}, AKIAIOSFODNN7EXAMPLE and the token ${token} is wrong`,
    );
    expect(failed.message).toContain('The server says: The key … with …, … and the token … is wrong');
  });

  it('of a fault of the server is not in its circuit, which others with the same bucket see', async () => {
    const { circuit } = await refused(503, 'ServiceUnavailable', 'of one tenant');
    expect(circuit).toContain('ServiceUnavailable');
    expect(circuit).not.toContain('of one tenant');
  });
});
