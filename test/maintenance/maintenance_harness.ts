import { keepers } from '../../src/temporal/capabilities.ts';
import {
  AbortMultipartUploadCommand,
  DeleteBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import type { ActivityContext } from '../../activities/run_step.ts';
import { createMaintenanceActivities } from '../../activities/maintenance.ts';
import type { MaintenancePolicy } from '../../src/decisions/policies.ts';
import { applyCommand } from '../../src/decisions/commands/apply_command.ts';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import { createLocationOpener } from '../../src/destination/open_destination.ts';
import { batchExportDecider, type Model } from '../../src/domain/batch_export.ts';
import type { RowRange, Source } from '../../src/source/source.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { definition, quickPolicies } from '../decisions/commander.ts';
import { readLog } from '../decisions/read_log.ts';
import type { TestBucket } from '../setup/bucket.ts';
import { interval, type ExportHarness } from '../export/export_harness.ts';
import { storeTestCommand } from '../journal/store_test_command.ts';

/** Settings that make everything due at once. */
const noDelays = {
  EXPORTD_OLD_GENERATION_RETENTION: '0s',
  EXPORTD_ORPHAN_RETENTION: '0s',
  EXPORTD_RUN_RETRY_LIMIT: '0',
};

/** Lets an export's intervals expire, as if they had been exported long ago. */
export const expire = ({ database }: ExportHarness, batchExportId: string): Promise<unknown> =>
  database.pool.query(
    `with owner as (update exportd.batch_exports set retention_days = 30 where id = $1)
     update exportd.intervals set completed_at = completed_at - interval '31 days' where batch_export_id = $1`,
    [batchExportId],
  );

/** The maintenance of a harness's exports, and changes that people make to their buckets. */
export function createMaintenanceHarness(harness: ExportHarness) {
  const { journal, source, readSelection, settings, keyRing, database, bucket } = harness;
  const { client } = bucket;
  const startedRepairs: string[] = [];
  const comparisons: { statements: number; fail: (range: Omit<RowRange, 'interval'>) => boolean } = {
    statements: 0,
    fail: () => false,
  };
  /** Counts the statements of comparisons and fails those that a test chooses. */
  const observedSource: Source = {
    ...source,
    fingerprints: async (range, intervals, signal) => {
      comparisons.statements += 1;
      if (comparisons.fail(range)) throw new Error('The source is down.');
      return source.fingerprints(range, intervals, signal);
    },
  };

  /** The maintenance activities. `policy` overrides what follows from the settings, which allow shorter times only. */
  const activities = (
    more: Record<string, string> = {},
    policy: Partial<MaintenancePolicy> = {},
    cancellationSignal = new AbortController().signal,
  ) => {
    const policies = quickPolicies({ ...noDelays, ...more });
    const context = (): ActivityContext => ({ heartbeat: () => undefined, cancellationSignal });
    return createMaintenanceActivities({
      journal,
      policies: { maintenance: { ...policies.maintenance, ...policy } },
      source: observedSource,
      readSelection,
      openLocation: createLocationOpener(database.pool, keyRing, settings),
      keepers,
      backfills: {
        start: (id) => {
          startedRepairs.push(id);
          return Promise.resolve();
        },
      },
      logger: createLogger('test', { EXPORTD_LOG_LEVEL: 'silent' }),
      settings,
      context,
    });
  };

  const keysIn = async (of: TestBucket): Promise<string[]> => {
    const { Contents = [] } = await of.client.send(new ListObjectsV2Command({ Bucket: of.bucket }));
    return Contents.map(({ Key = '' }) => Key);
  };
  const deleteObject = (key: string, of: TestBucket = bucket) =>
    of.client.send(new DeleteObjectCommand({ Bucket: of.bucket, Key: key }));
  const uploadsOf = async (batchExportId: string) => {
    const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket: bucket.bucket }));
    return Uploads.filter(({ Key = '' }) => Key.includes(batchExportId));
  };

  return {
    activities,
    comparisons,
    /** The repairs whose workflows were started. */
    startedRepairs,
    /** The queue of an export's repair: the runs whose intervals are exported again. */
    repairsOf: async (batchExportId: string): Promise<string[]> => {
      const { rows } = await database.pool.query<{ run_id: string }>(
        'select run_id from exportd.interval_repairs where batch_export_id = $1 order by data_interval_start',
        [batchExportId],
      );
      return rows.map(({ run_id }) => run_id);
    },
    /** Publishes a run with a new config version: a file and a manifest. */
    publish: async (batchExportId?: string, config: object = {}, of = interval) => {
      const run = await harness.createRun({
        ...(batchExportId !== undefined && { batchExportId }),
        config,
        of,
      });
      const activities = harness.attempt();
      await activities.exportInterval(run);
      const { manifest_key } = await activities.publishManifest(run);
      return { ...run, manifest_key };
    },
    /** Fails a run permanently; its objects stay in the bucket. */
    fail: (runId: string) =>
      endRun(journal, quickPolicies(noDelays), runId, { status: 'Failed', latest_error: 'A reason.' }),
    /** Creates the export; the export harness creates only its runs. */
    createExport: (batchExportId: string, config_version: number, model: Model = 'events') =>
      journal.transaction(async (transaction) => {
        const stream = await transaction.lock(batchExportDecider, batchExportId);
        const data = { team_id: 1, scheduled_until: transaction.now.toISOString(), paused: false };
        await stream.append('created', [
          {
            type: 'BatchExportCreated',
            data: { ...data, definition: { ...definition, model, config_version } },
          },
        ]);
      }),
    /** Deletes the export, as its command does, which also ends its runs. */
    deleteExport: async (batchExportId: string): Promise<void> => {
      const id = await storeTestCommand(database.pool, batchExportId, 'delete');
      await applyCommand(journal, quickPolicies(noDelays), batchExportId, id, (error) => {
        throw error;
      });
    },
    /** Replaces the secret of a stored config with one that the server rejects. */
    revokeSecret: async (batchExportId: string, version: number) => {
      const field = 'aws_secret_access_key';
      await database.pool.query(
        `update exportd.destination_configs set secrets = secrets || $3::jsonb
         where batch_export_id = $1 and version = $2`,
        [
          batchExportId,
          version,
          JSON.stringify({ [field]: keyRing.seal('revoked', `${batchExportId}/${field}`) }),
        ],
      );
    },
    /** Keys of an export's objects. */
    keysOf: async (batchExportId: string, of: TestBucket = bucket): Promise<string[]> =>
      (await keysIn(of)).filter((key) => key.includes(batchExportId)),
    /** Keys of an export's unfinished uploads. */
    uploadsOf: async (batchExportId: string): Promise<string[]> =>
      (await uploadsOf(batchExportId)).map(({ Key = '' }) => Key),
    abortUploads: async (batchExportId: string) => {
      for (const { Key, UploadId } of await uploadsOf(batchExportId))
        await client.send(new AbortMultipartUploadCommand({ Bucket: bucket.bucket, Key, UploadId }));
    },
    deleteObject,
    putObject: (key: string, text: string) =>
      client.send(new PutObjectCommand({ Bucket: bucket.bucket, Key: key, Body: text })),
    readObject: async (key: string): Promise<string> => {
      const { Body } = await client.send(new GetObjectCommand({ Bucket: bucket.bucket, Key: key }));
      return (await Body?.transformToString()) ?? '';
    },
    deleteBucket: async (of: TestBucket) => {
      for (const key of await keysIn(of)) await deleteObject(key, of);
      await of.client.send(new DeleteBucketCommand({ Bucket: of.bucket }));
      of.client.destroy();
    },
    /** Log lines of the export, without those of its runs. */
    logLines: (batchExportId: string): Promise<string[]> =>
      readLog(database.pool, { batch_export_id: batchExportId }, ({ run_id }) => run_id === null),
    /** Keys of an export's obsolete objects that still have to be deleted. */
    obsoleteKeys: async (batchExportId: string): Promise<string[]> => {
      const { rows } = await database.pool.query<{ key: string }>(
        `select key from exportd.destination_objects where batch_export_id = $1 and obsolete_at is not null
         order by position`,
        [batchExportId],
      );
      return rows.map(({ key }) => key);
    },
  };
}

export type MaintenanceHarness = ReturnType<typeof createMaintenanceHarness>;
