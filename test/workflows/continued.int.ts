import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createExportActivities } from '../../activities/run.ts';
import { createPerExportLimit } from '../../src/export/per_export_limit.ts';
import { createKeyRing } from '../../src/config/key_ring.ts';
import {
  createMayShrink,
  createSelectionReader,
  storeConfig,
} from '../../src/destination/config_versions.ts';
import { createDestinationOpener, createLocationOpener } from '../../src/destination/open_destination.ts';
import { createMemoryBudget } from '../../src/encoding/memory.ts';
import { inTransaction } from '../../src/journal/database.ts';
import { createSource } from '../../src/source/postgres_source.ts';
import { createExportSlots } from '../../src/temporal/worker/activity_slots.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { workflowIds } from '../../src/contract/workflow_ids.ts';
import { insertEvents } from '../export/export_harness.ts';
import { createReader } from '../export/reader.ts';
import { definition } from '../decisions/commander.ts';
import { readBackfills } from '../decisions/read_backfills.ts';
import { configOf } from '../destination/bucket_requests.ts';
import { createBucket, type TestBucket } from '../setup/bucket.ts';
import { waitFor } from '../setup/wait_for.ts';
import {
  type ControlPlaneHarness,
  createControlPlaneHarness,
  lastHours,
} from '../temporal/control_plane_harness.ts';
import { readEvents } from '../journal/read_stream.ts';
import { createEncoderPool } from '../../src/encoding/encoder_pool.ts';
import { createOutages } from '../../src/failures/outages.ts';

const keyRing = createKeyRing(`main:${randomBytes(32).toString('base64')}`);
/** More than three parts. */
const eventCount = 4_500;
const range = lastHours(1);

let stack: ControlPlaneHarness;
let bucket: TestBucket;
const closing: (() => Promise<unknown>)[] = [];
beforeAll(async () => {
  bucket = await createBucket();
  stack = await createControlPlaneHarness(
    {
      EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
      EXPORTD_PARTS_PER_EXECUTION: '1',
      EXPORTD_SOURCE_PAGE_SIZE: '1000000B',
      EXPORTD_SETTLE_DELAY: '0s',
    },
    (database, settings, recorder) => {
      const source = createSource({ sourceUrl: database.url, settings });
      const encoders = createEncoderPool({ threads: 2 });
      closing.push(
        () => source.close(),
        () => encoders.close(),
      );
      const openDestination = createDestinationOpener(database.pool, keyRing, settings);
      const logger = createLogger('test', settings);
      const readSelection = createSelectionReader(database.pool);
      const memory = createMemoryBudget(settings.EXPORTD_MEMORY_BUDGET);
      const exporting = {
        recorder,
        source,
        encoders,
        memory,
        slots: createExportSlots(settings),
        perExportLimit: createPerExportLimit(Infinity),
        openDestination,
        openLocation: createLocationOpener(database.pool, keyRing, settings),
        mayShrink: createMayShrink(database.pool),
        targets: [],
        readSelection,
        logger,
        outages: createOutages(database.pool, settings, logger),
        settings,
      };
      return { source, exportActivities: createExportActivities(exporting) };
    },
  );
  await insertEvents(stack.pool, eventCount, range.start_at);
  await stack.startWorker();
});
afterAll(async () => {
  await stack.stopWorker();
  for (const close of closing) await close();
  await stack.close();
  bucket.client.destroy();
});

async function createExport(): Promise<string> {
  const id = randomUUID();
  const config_version = await inTransaction(stack.pool, (connection) =>
    storeConfig(
      connection,
      { keyRing, settings: stack.settings },
      { batch_export_id: id, destination_type: 'S3', config: configOf(bucket, { prefix: id }) },
    ),
  );
  const created = { ...definition, interval: 'hour', end_at: range.end_at, config_version };
  await stack.command(id, 'create', { definition: created, paused: false });
  return id;
}

describe('an export with more parts than one execution may send', () => {
  it('continues as new from run to run, and publishes one manifest of all rows', async () => {
    const id = await createExport();
    const { outcome } = await stack.command(id, 'backfill', range);
    const backfillId = String(outcome?.backfill_id);
    await waitFor(async () => {
      // A pass may also happen after the run has continued as new in the journal, but not yet in Temporal.
      await stack.reconcile();
      return (await stack.runsOf(id)).at(-1)?.status === 'Completed';
    }, 'the last run');

    const runs = await stack.runsOf(id);
    const last = runs.at(-1);
    if (!last) throw new Error('There is no run.');
    expect(runs.length).toBeGreaterThan(2);
    expect(runs.map(({ status }) => status)).toEqual([
      ...runs.slice(1).map(() => 'ContinuedAsNew'),
      'Completed',
    ]);
    const counts = runs.map(({ records_completed }) => records_completed);
    expect(counts).toEqual([...new Set(counts)].toSorted((one, other) => one - other));
    expect(counts.at(-1)).toBe(eventCount);
    for (const run of runs)
      expect(run).toMatchObject({
        records_total_count: eventCount,
        generation: 1,
        backfill_id: backfillId,
        cursor: expect.any(String),
      });

    const read = createReader(stack.pool, bucket, { start: range.start_at, end: range.end_at });
    const keys = await read.keysWithPrefix(id);
    expect(keys).toHaveLength(2);
    const manifest = await read.manifestAt(keys.find((key) => key.includes('_manifests')) ?? '');
    expect(manifest).toMatchObject({ run_id: last.id, generation: 1, rows: eventCount });
    expect(await read.uuidsIn(manifest)).toEqual(await read.sourceUuids());
    expect(await read.openUploads()).toEqual([]);

    const handle = stack.client.workflow.getHandle(workflowIds(stack.settings).run(last));
    await handle.result();
    // Temporal drops the details that the first execution was started with.
    const { currentDetails = '' } = await handle.query<{ currentDetails?: string }>(
      '__temporal_workflow_metadata',
    );
    expect(currentDetails).toMatch(/^[^\n]+\n\nThis run exports one interval of /);
    expect(currentDetails).toContain(`- Run: \`${last.id}\``);
    const { memo, typedSearchAttributes } = await handle.describe();
    expect(memo).toEqual({ run_id: last.id });
    expect(typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value])).toEqual(
      expect.arrayContaining([
        ['ExportdRun', last.id],
        ['ExportdBatchExport', id],
        ['ExportdBackfill', backfillId],
        ['ExportdStatus', 'Completed'],
      ]),
    );
    await waitFor(async () => {
      const [backfill] = await readBackfills(stack.pool, { id: backfillId });
      return backfill?.status === 'Completed';
    }, 'the end of the backfill');
    expect(await readEvents(stack.pool, backfillId, 'BackfillRunEnded')).toEqual([
      { type: 'BackfillRunEnded', data: { run_id: last.id, status: 'Completed' } },
    ]);
  });
});
