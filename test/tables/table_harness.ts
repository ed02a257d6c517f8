import { randomUUID } from 'node:crypto';
import { expect } from '@jest/globals';
import { batchExportDecider, type BatchExportEvent } from '../../src/domain/batch_export.ts';
import { repairTable } from '../../src/table_commits/repair_table.ts';
import { checkTable } from '../../src/table_commits/check_table.ts';
import type { ExportHarness } from '../export/export_harness.ts';
import { createReruns } from '../export/rerun.ts';
import { createDeltaReader } from './delta_reader.ts';

export const publishRun = (
  harness: ExportHarness,
  run_id: string,
  more: Parameters<ExportHarness['attempt']>[0] = {},
) => harness.attempt(more).publishManifest({ run_id });

/** An export to a table, several of its hours, and a reader of the table. @param endpoint of the bucket */
export function createTestedTable(
  harness: ExportHarness,
  endpoint: string,
  nextHour: () => { start: string; end: string },
) {
  const batchExportId = randomUUID();
  const config = {
    endpoint_url: endpoint,
    file_format: 'Parquet',
    compression: 'zstd',
    table_format: 'delta',
  };
  const table = createDeltaReader(harness.bucket, batchExportId);
  const hour = () => {
    const of = nextHour();
    const reruns = createReruns(harness, of, { batchExportId });
    return {
      ...reruns,
      of,
      /** A run whose files are there, and which is not published. */
      exported: async (): Promise<string> => {
        const { run_id } = await reruns.create({ config });
        await reruns.count(run_id);
        await harness.attempt().exportInterval({ run_id });
        return run_id;
      },
      run: (more: object = {}, attempt?: Parameters<typeof reruns.proceed>[1]) =>
        reruns.run({ config: { ...config, ...more } }, attempt),
      uuids: async (): Promise<string[]> => {
        const { rows: found } = await harness.database.pool.query<{ uuid: string }>(
          'select uuid::text from events where inserted_at >= $1 and inserted_at < $2 order by uuid',
          [of.start, of.end],
        );
        return found.map(({ uuid }) => uuid);
      },
    };
  };
  type Hour = ReturnType<typeof hour>;
  /** Expects that the table has the rows of the hours, each once. */
  const expectRows = async (...hours: readonly Hour[]): Promise<void> => {
    const expected = (await Promise.all(hours.map(({ uuids }) => uuids()))).flat().sort();
    expect((await table.rows()).map(({ uuid }) => String(uuid)).sort()).toEqual(expected);
  };
  const twoHours = async () => {
    const [one, other] = [hour(), hour()];
    for (const { insert, run } of [one, other]) {
      await insert(1, 20);
      expect(await run()).toMatchObject({ latest_error: null });
    }
    return { one, other };
  };
  return {
    batchExportId,
    config,
    table,
    hour,
    expectRows,
    twoHours,
    /** The versions that a run has committed. */
    commitsOf: async (runId: string): Promise<number[]> => {
      const found: number[] = [];
      for (const version of await table.versions())
        if ((await table.linesOf(version)).some(({ commitInfo }) => commitInfo?.run_id === runId))
          found.push(version);
      return found;
    },
    /** Exports an hour of two again, stores the export in the journal, and returns how to check and to repair its table. */
    repairable: async () => {
      const { one, other } = await twoHours();
      await one.insert(30, 31);
      const { run_id } = await one.run();
      const { spec } = await harness.recorder.read(run_id);
      await harness.journal.transaction(async (transaction) => {
        const stream = await transaction.lock(batchExportDecider, batchExportId);
        const event: BatchExportEvent = {
          type: 'BatchExportCreated',
          data: {
            team_id: spec.team_id,
            definition: {
              name: 'Table',
              model: 'events',
              interval: 'hour',
              timezone: 'UTC',
              offset_hour: 0,
              offset_day: 0,
              destination_type: 'S3',
              config_version: spec.config_version,
              start_at: null,
              end_at: null,
              dialect_query: null,
              retention_days: null,
            },
            scheduled_until: one.of.end,
            paused: true,
          },
        };
        await stream.append('created', [event]);
      });
      const { signal } = new AbortController();
      const { keyRing, settings, journal } = harness;
      const { pool } = harness.database;
      const dependencies = { pool, keyRing, settings, journal, onError: () => undefined };
      return {
        one,
        other,
        dependencies,
        signal,
        check: async () => {
          const { findings, ...rest } = await checkTable(dependencies, batchExportId, signal);
          return { ...rest, kinds: [...new Set(findings.map(({ kind }) => kind))].sort() };
        },
        repair: (repairId = randomUUID()) => repairTable(dependencies, { batchExportId, repairId, signal }),
      };
    },
  };
}
