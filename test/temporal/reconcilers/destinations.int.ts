import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { storeConfig } from '../../../src/destination/config_versions.ts';
import { inTransaction } from '../../../src/journal/database.ts';
import { readStandings } from '../../../src/projections/export_conditions.ts';
import { definition } from '../../decisions/commander.ts';
import { bucketAt, configOf } from '../../destination/bucket_requests.ts';
import { startFakeServer, type FakeServer } from '../../destination/fake_server.ts';
import { waitFor } from '../../setup/wait_for.ts';
import { createControlPlaneHarness, type ControlPlaneHarness } from '../control_plane_harness.ts';

let harness: ControlPlaneHarness;
let store: FakeServer;
let responds = true;
beforeAll(async () => {
  store = await startFakeServer(({ method }, response) => {
    if (responds) response.writeHead(method === 'HEAD' ? 404 : 200).end();
    else response.destroy();
  });
  harness = await createControlPlaneHarness({
    EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
    EXPORTD_S3_PROBE_AFTER: '10ms',
    EXPORTD_S3_PROBE_INITIAL: '10ms',
    EXPORTD_S3_PROBE_MAX: '20ms',
    EXPORTD_LOG_LEVEL: 'silent',
  });
  await harness.startWorker();
});
afterAll(async () => {
  await harness.stopWorker();
  await harness.close();
  await store.close();
});

/** Creates a daily export, whose next run is hours away, to a bucket that has responded before. */
async function createExport(bucket: string, paused = false): Promise<string> {
  const id = randomUUID();
  const { pool, keyRing, settings } = harness;
  const config = configOf(bucketAt(store.endpoint), { bucket_name: bucket, prefix: id });
  const config_version = await inTransaction(pool, (connection) =>
    storeConfig(connection, { keyRing, settings }, { batch_export_id: id, destination_type: 'S3', config }),
  );
  await harness.command(id, 'create', {
    definition: { ...definition, interval: 'day', config_version },
    paused,
  });
  await pool.query(
    `insert into exportd.destination_circuits (destination, responded_at)
     select circuit, clock_timestamp() - interval '1 hour' from exportd.destination_configs where batch_export_id = $1
     on conflict do nothing`,
    [id],
  );
  return id;
}

/** The buckets that requests were sent to since the last call. */
let seen = 0;
const askedBuckets = (): string[] => {
  const asked = store.received.slice(seen).map(({ path }) => path.split('/')[1] ?? '');
  seen = store.received.length;
  return asked;
};

it('a bucket that is down is noticed between the runs, with one request for all its exports, and so is its end', async () => {
  const ids = [await createExport('shared'), await createExport('shared')];
  await createExport('idle', true);
  const causes = async () =>
    [...(await readStandings(harness.pool, ids, () => undefined)).values()].map(
      ({ condition: { cause, incident } }) => [cause, incident?.subject],
    );
  await harness.reconcile();
  expect(askedBuckets()).toEqual(['shared']);
  expect(await causes()).toEqual([
    ['ok', undefined],
    ['ok', undefined],
  ]);

  responds = false;
  await waitFor(async () => {
    await harness.reconcile();
    return (await causes()).every(([cause]) => cause === 'destination_unavailable');
  }, 'the outage is noticed');
  const subject = `the bucket shared at ${new URL(store.endpoint).host}`;
  expect((await causes()).map(([, found]) => found)).toEqual([subject, subject]);

  responds = true;
  await waitFor(async () => {
    await harness.reconcile();
    return (await causes()).every(([cause]) => cause === 'ok');
  }, 'its end is noticed');
  expect(new Set(askedBuckets())).toEqual(new Set(['shared']));
});
