import {
  AbortMultipartUploadCommand,
  DeleteBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import type { ActivityContext } from '../../activities/heartbeats.ts';
import { createMaintenanceActivities } from '../../activities/maintenance.ts';
import type { MaintenancePolicy } from '../../src/decisions/policies.ts';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import { createLocationOpener } from '../../src/destination/open_location.ts';
import { batchExportDecider, type Model } from '../../src/domain/batch_export.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { definition, quickPolicies } from '../decisions/commander.ts';
import type { TestBucket } from '../setup/bucket.ts';
import type { Stage } from '../export/export_harness.ts';

/** Settings with which everything is due at once. */
const atOnce = {
  EXPORTD_OLD_GENERATION_RETENTION: '0s',
  EXPORTD_ORPHAN_RETENTION: '0s',
  EXPORTD_RUN_RETRY_LIMIT: '0',
};

/** The upkeep of a stage's exports, and what people do to buckets behind its back. */
export function createUpkeepStage(stage: Stage) {
  const { journal, source, readSelection, settings, keyRing, database, bucket } = stage;
  const { client } = bucket;
  const signalled: { batch_export_id: string; name: string; id: string }[] = [];

  /** The activities of the upkeep under these settings, and with these moments, which may be longer than settings. */
  const upkeep = (
    more: Record<string, string> = {},
    moments: Partial<MaintenancePolicy> = {},
    cancellationSignal = new AbortController().signal,
  ) => {
    const policies = quickPolicies({ ...atOnce, ...more });
    const context = (): ActivityContext => ({ heartbeat: () => undefined, cancellationSignal });
    return createMaintenanceActivities({
      journal,
      policies: { maintenance: { ...policies.maintenance, ...moments } },
      source,
      readSelection,
      openLocation: createLocationOpener(database.pool, keyRing, settings),
      schedules: {
        signal: (command) => {
          signalled.push(command);
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
  const removeByHand = (key: string, of: TestBucket = bucket) =>
    of.client.send(new DeleteObjectCommand({ Bucket: of.bucket, Key: key }));
  const uploadsOf = async (batchExportId: string) => {
    const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket: bucket.bucket }));
    return Uploads.filter(({ Key = '' }) => Key.includes(batchExportId));
  };

  return {
    upkeep,
    /** What schedules were told. */
    signalled,
    /** A run of an export under a config of its own, with a file and a manifest. */
    publish: async (batchExportId?: string, config: object = {}) => {
      const run = await stage.openRun({ ...(batchExportId !== undefined && { batchExportId }), config });
      const activities = stage.attempt();
      await activities.exportInterval(run);
      const { manifest_key } = await activities.publishManifest(run);
      return { ...run, manifest_key };
    },
    /** Ends a run for good, with what it leaves behind. */
    fail: (runId: string) =>
      endRun(journal, quickPolicies(atOnce), runId, { status: 'Failed', latest_error: 'A reason.' }),
    /** Creates the export itself, of which the stage has only runs. */
    createExport: (batchExportId: string, config_version: number) =>
      journal.transaction(async (transaction) => {
        const stream = await transaction.lock(batchExportDecider, batchExportId);
        const model: Model = 'events';
        const data = { team_id: 1, scheduled_until: transaction.now.toISOString(), paused: false };
        await stream.append('created', [
          {
            type: 'BatchExportCreated',
            data: { ...data, definition: { ...definition, model, config_version } },
          },
        ]);
      }),
    /** Makes the secret of a stored config one that the server does not accept. */
    revokeSecret: async (batchExportId: string, version: number) => {
      const member = 'aws_secret_access_key';
      await database.pool.query(
        `update exportd.destination_configs set secrets = secrets || $3::jsonb
         where batch_export_id = $1 and version = $2`,
        [
          batchExportId,
          version,
          JSON.stringify({ [member]: keyRing.seal('revoked', `${batchExportId}/${member}`) }),
        ],
      );
    },
    /** The keys of an export's objects. */
    keysOf: async (batchExportId: string, of: TestBucket = bucket): Promise<string[]> =>
      (await keysIn(of)).filter((key) => key.includes(batchExportId)),
    /** The keys of an export's unfinished uploads. */
    uploadsOf: async (batchExportId: string): Promise<string[]> =>
      (await uploadsOf(batchExportId)).map(({ Key = '' }) => Key),
    abortByHand: async (batchExportId: string) => {
      for (const { Key, UploadId } of await uploadsOf(batchExportId))
        await client.send(new AbortMultipartUploadCommand({ Bucket: bucket.bucket, Key, UploadId }));
    },
    removeByHand,
    putByHand: (key: string, text: string) =>
      client.send(new PutObjectCommand({ Bucket: bucket.bucket, Key: key, Body: text })),
    read: async (key: string): Promise<string> => {
      const { Body } = await client.send(new GetObjectCommand({ Bucket: bucket.bucket, Key: key }));
      return (await Body?.transformToString()) ?? '';
    },
    removeBucket: async (of: TestBucket) => {
      for (const key of await keysIn(of)) await removeByHand(key, of);
      await of.client.send(new DeleteBucketCommand({ Bucket: of.bucket }));
      of.client.destroy();
    },
    /** What was told of the export, but for its runs. */
    logLines: async (batchExportId: string): Promise<string[]> => {
      const { rows } = await database.pool.query<{ message: string }>(
        'select message from exportd.log_lines where batch_export_id = $1 and run_id is null order by id',
        [batchExportId],
      );
      return rows.map(({ message }) => message);
    },
    /** What is still to be removed of an export. */
    obsolete: async (batchExportId: string): Promise<string[]> => {
      const { rows } = await database.pool.query<{ key: string }>(
        `select key from exportd.destination_objects where batch_export_id = $1 and obsolete_at is not null
         order by position`,
        [batchExportId],
      );
      return rows.map(({ key }) => key);
    },
  };
}

export type UpkeepStage = ReturnType<typeof createUpkeepStage>;
