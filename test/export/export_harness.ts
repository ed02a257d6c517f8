import { randomBytes, randomUUID } from 'node:crypto';
import { expect } from '@jest/globals';
import type { ActivityContext } from '../../activities/run_step.ts';
import { createExportActivities, type ExportActivityDependencies } from '../../activities/run.ts';
import { createBackfillBarriers } from '../../src/export/backfill_barriers.ts';
import { createPerExportLimit } from '../../src/export/per_export_limit.ts';
import { createKeyRing } from '../../src/config/key_ring.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import {
  createMayShrink,
  createSelectionReader,
  storeConfig,
} from '../../src/destination/config_versions.ts';
import { createDestinationOpener, createLocationOpener } from '../../src/destination/open_destination.ts';
import type { Manifest } from '../../src/destination/manifest.ts';
import type { Model } from '../../src/domain/batch_export.ts';
import { runDecider } from '../../src/domain/run.ts';
import { createMemoryBudget } from '../../src/encoding/memory.ts';
import { inTransaction, type Pool } from '../../src/journal/database.ts';
import { openWorkerJournal } from '../setup/worker_journal.ts';
import { createSource } from '../../src/source/postgres_source.ts';
import { createTableTarget } from '../../src/table_commits/publish_to_table.ts';
import {
  createTableCommitRecorder,
  type TableCommitRecorder,
} from '../../src/table_commits/recorded_commits.ts';
import { readRowQuery } from '../../src/source/row_query/selected_rows.ts';
import { createExportSlots } from '../../src/temporal/worker/activity_slots.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { configOf, s3Settings } from '../destination/bucket_requests.ts';
import { createBucket, type TestBucket } from '../setup/bucket.ts';
import { createTestDatabase } from '../setup/database.ts';
import { createReader } from './reader.ts';
import { createEncoderPool } from '../../src/encoding/encoder_pool.ts';
import { createOutages } from '../../src/failures/outages.ts';
import { runSpecOf } from '../domain/run_spec.ts';

export const interval = { start: '2026-01-01T10:00:00.000Z', end: '2026-01-01T11:00:00.000Z' };
const teamId = 1;

/** Inserts events of about 4 KB that hardly compress, spread over the hour that starts at `start`. */
export const insertEvents = (pool: Pool, rows: number, start: string): Promise<unknown> =>
  pool.query(
    `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
     select $1, gen_random_uuid(), 'event', 'person', jsonb_build_object('noise', noise), moment, moment
     from generate_series(1, $3::int) n
     cross join lateral (select string_agg(encode(sha512((random()::text || n || g)::bytea), 'hex'), '') as noise from generate_series(1, 30) g) r
     cross join lateral (select $2::timestamptz + make_interval(secs => 3600.0 * (n - 1) / $3) as moment) m`,
    [teamId, start, rows],
  );

/**
 * All dependencies of an export except Temporal: a database that is also the source, a bucket and encoders.
 * @param of a bucket of another server
 */
export async function createExportHarness(of?: TestBucket) {
  const [database, bucket] = [await createTestDatabase(), of ?? (await createBucket())];
  // PostgreSQL would try to compress each document of noise, which takes as long as to make it.
  await database.pool.query('alter table public.events alter column properties set storage external');
  const settings = s3Settings({
    EXPORTD_S3_PART_SIZE: '5MiB',
    EXPORTD_SOURCE_PAGE_SIZE: '1000000B',
    // The cores belong to several files.
    EXPORTD_ENCODER_THREADS: '1',
  });
  const encryptionKeys = `main:${randomBytes(32).toString('base64')}`;
  const keyRing = createKeyRing(encryptionKeys);
  const journal = openWorkerJournal(database.pool);
  const recorder = createRunRecorder(journal);
  const source = createSource({ sourceUrl: database.url, settings });
  const barriers = createBackfillBarriers(recorder.readBackfillRange, settings.EXPORTD_SETTLE_DELAY);
  const encoders = createEncoderPool({ threads: settings.EXPORTD_ENCODER_THREADS });
  const memory = createMemoryBudget(settings.EXPORTD_MEMORY_BUDGET);
  const openDestination = createDestinationOpener(database.pool, keyRing, settings);
  const openLocation = createLocationOpener(database.pool, keyRing, settings, {
    retryBudgetMs: settings.EXPORTD_S3_RETRY_BUDGET,
  });
  const commits = createTableCommitRecorder(journal);
  const mayShrink = createMayShrink(database.pool);
  const readSelection = createSelectionReader(database.pool);
  const logger = createLogger('test', { EXPORTD_LOG_LEVEL: 'silent' });
  const outages = createOutages(database.pool, settings, logger);

  /** The activities of one attempt, with the details of its heartbeats. */
  const attempt = (
    more: { signal?: AbortSignal } & Pick<ActivityContext, 'info'> &
      Partial<
        Pick<
          ExportActivityDependencies,
          | 'encoders'
          | 'memory'
          | 'openDestination'
          | 'openLocation'
          | 'outages'
          | 'recorder'
          | 'settings'
          | 'slots'
          | 'source'
        >
      > & { commits?: TableCommitRecorder } = {},
  ) => {
    const heartbeats: unknown[] = [];
    const context = (): ActivityContext => ({
      heartbeat: (details) => heartbeats.push(details),
      cancellationSignal: more.signal ?? new AbortController().signal,
      ...(more.info && { info: more.info }),
    });
    const defaults = {
      recorder,
      source,
      encoders,
      memory,
      slots: createExportSlots(settings),
      perExportLimit: createPerExportLimit(Infinity),
      openDestination,
      openLocation,
      mayShrink,
      readSelection,
      logger,
      outages,
      settings,
      context,
    };
    const dependencies = { ...defaults, commits, ...more };
    const targets = [createTableTarget(dependencies)];
    return { ...createExportActivities({ ...dependencies, targets }), heartbeats };
  };

  /** Creates a run of `interval`, or of another one, with a new config version. */
  const createRun = async (
    more: {
      config?: object;
      batchExportId?: string;
      model?: Model;
      of?: typeof interval;
      allow_shrink?: boolean;
      query?: string | undefined;
    } = {},
  ) => {
    const { batchExportId = randomUUID(), of = interval } = more;
    const config_version = await inTransaction(database.pool, (connection) =>
      storeConfig(
        connection,
        { keyRing, settings },
        {
          batch_export_id: batchExportId,
          destination_type: 'S3',
          config: configOf(bucket, { prefix: `${batchExportId}/{year}`, ...more.config }),
          row_query: rowQueryOf(more),
        },
      ),
    );
    const run_id = randomUUID();
    await journal.transaction(async (transaction) => {
      const stream = await transaction.lock(runDecider, run_id);
      const spec = runSpecOf({
        batch_export_id: batchExportId,
        team_id: teamId,
        model: more.model ?? 'events',
        config_version,
        data_interval_start: of.start,
        data_interval_end: of.end,
        allow_shrink: more.allow_shrink ?? false,
      });
      await stream.append('opened', [{ type: 'RunCreated', data: spec }]);
    });
    return { run_id, batchExportId };
  };

  /** Reads the bucket, and expects the rows of `interval`. */
  const reader = createReader(database.pool, bucket, interval);

  /** Checks that a reader of the manifest finds exactly the rows of the source. @returns the manifest */
  const verifyManifest = async (key: string, expected: Partial<Manifest>): Promise<Manifest> => {
    const manifest = await reader.manifestAt(key);
    const uuids = await reader.sourceUuids();
    expect(uuids).not.toEqual([]);
    expect(await reader.uuidsIn(manifest)).toEqual(uuids);
    expect(manifest).toMatchObject({ rows: uuids.length, source_rows: uuids.length, ...expected });
    return manifest;
  };
  /** Publishes a run, and verifies its manifest. */
  const publishAndVerify = async (run_id: string, expected: Partial<Manifest> = {}): Promise<Manifest> => {
    const { manifest_key } = await attempt().publishManifest({ run_id });
    return verifyManifest(manifest_key, { run_id, ...expected });
  };

  const close = async (): Promise<void> => {
    await encoders.close();
    await source.close();
    bucket.client.destroy();
    await database.drop();
  };
  return {
    database,
    bucket,
    encryptionKeys,
    keyRing,
    journal,
    recorder,
    commits,
    targets: [createTableTarget({ recorder, commits, readSelection })],
    source,
    encoders,
    memory,
    settings,
    openDestination,
    openLocation,
    mayShrink,
    readSelection,
    attempt,
    barriers,
    createRun,
    reader,
    verifyManifest,
    publishAndVerify,
    insertEvents: (rows: number) => insertEvents(database.pool, rows, interval.start),
    close,
  };
}

export type ExportHarness = Awaited<ReturnType<typeof createExportHarness>>;

/** An export's query as the API stores it. */
const rowQueryOf = ({ model = 'events', query }: { model?: Model; query?: string | undefined }) =>
  query === undefined
    ? null
    : readRowQuery(model, { dialect_query: query, timezone: 'UTC', week_start_day: 'sunday' });
