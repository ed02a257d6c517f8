/** What the journal knows of the commits to tables, and what is wrong with a table. */
import { createRunSteps } from '../decisions/run_steps.ts';
import { createConfigReader } from '../destination/config_versions.ts';
import { type PartitionColumn, partitionColumnsOf, tableLocationOf } from '../destination/keys.ts';
import { batchExportDecider, type Model, type TableRepairVersion } from '../domain/batch_export.ts';
import { decideTableCommit, requireGeneration, type RunEventData } from '../domain/run.ts';
import type { ExistingRun, RunSpec, TableVersion } from '../domain/run_state.ts';
import type { Pool } from '../journal/database.ts';
import type { Journal, Subscriber } from '../journal/journal.ts';

/** A commit to a table, and what its run exported; nothing for a repair. */
export interface NewestTableCommit {
  readonly version: number;
  readonly etag: string;
  readonly model: Model | null;
  readonly config_version: number | null;
}

/** SQL: the repairs of the export $1 in the order of the journal, by its index of changes. */
const repairs = `from exportd.journal_events event where event.stream_type = 'batch_export' and event.stream_id = $1
  and event.event_type not in ('IntervalScheduled', 'IntervalsSkipped', 'HistoryCollapsed')`;

/** Reads the newest commit to a table that runs and repairs of an export recorded; undefined without one. */
async function readNewestTableCommit(
  pool: Pool,
  { batch_export_id }: Pick<RunSpec, 'batch_export_id'>,
  location: string,
): Promise<NewestTableCommit | undefined> {
  const { rows } = await pool.query<NewestTableCommit>(
    `(select table_version as version, table_etag as etag, model, config_version from exportd.batch_export_runs
       where batch_export_id = $1 and table_location = $2 and table_version is not null
       order by table_version desc limit 1)
     union all
     (select (event.data ->> 'version')::bigint, event.data ->> 'etag', null, null ${repairs}
       and event.event_type = 'TableRepaired' and event.data ->> 'location' = $2
       order by event.stream_version desc limit 1)
     order by version desc limit 1`,
    [batch_export_id, location],
  );
  return rows[0];
}

/** Records the commits of runs. */
export type TableCommitRecorder = ReturnType<typeof createTableCommitRecorder>;

export function createTableCommitRecorder(journal: Journal) {
  const { step } = createRunSteps(journal);
  const readConfig = createConfigReader(journal.pool);
  return {
    /** Plans the commit of the run to a table before it is sent; `decideTableCommit` says when that changes nothing. */
    planTableCommit: (runId: string, generation: number, { location, version }: TableVersion) =>
      step(runId, async (stream) => {
        await stream.append(
          `generation:${generation}/table/${location}/${version}`,
          decideTableCommit(stream.state(), generation, { location, version }),
        );
      }),
    /** Records that the planned commit is in the log of the table. */
    recordTableCommit: (runId: string, commit: RunEventData<'RunTableCommitted'>) =>
      step(runId, async (stream) => {
        requireGeneration(stream.state(), commit.generation);
        await stream.append(`generation:${commit.generation}/table committed`, [
          { type: 'RunTableCommitted', data: commit },
        ]);
      }),
    /** The table that the run writes to, by its location; null without one. @throws ConfigVersionNotFound */
    readTableLocation: async ({ spec }: ExistingRun): Promise<string | null> =>
      tableLocationOf((await readConfig(spec)).config, spec.model),
    /** The partitions of the files of a config version. @throws ConfigVersionNotFound */
    readPartitions: async (
      spec: Pick<RunSpec, 'batch_export_id' | 'config_version'>,
    ): Promise<readonly PartitionColumn[]> => partitionColumnsOf((await readConfig(spec)).config),
    /** The newest commit to a table that runs of the export recorded; undefined without one. */
    readNewestTableCommit: (run: ExistingRun, location: string) =>
      readNewestTableCommit(journal.pool, run.spec, location),
    /** Stores for the condition of the export that its table is not what exportd made it. Other errors are ignored. */
    reportTableError: ({ spec }: ExistingRun, error: { readonly type: string; readonly message: string }) =>
      storeTableFault(journal.pool, spec, error),
  };
}

/** Records the commits of repairs in the stream of their export. */
export const createRepairRecorder = (journal: Journal, batchExportId: string, repairId: string) => ({
  /** The version that the repair has planned last, and its ETag if that was recorded. */
  find: async (): Promise<(TableRepairVersion & { readonly etag: string | null }) | undefined> => {
    const { rows } = await journal.pool.query<{ data: TableRepairVersion & { etag?: string } }>(
      `select event.data ${repairs} and event.event_type in ('TableRepairPlanned', 'TableRepaired')
         and event.data ->> 'repair_id' = $2 order by event.stream_version desc limit 1`,
      [batchExportId, repairId],
    );
    const [found] = rows;
    return found && { ...found.data, etag: found.data.etag ?? null };
  },
  plan: (version: TableRepairVersion): Promise<void> =>
    journal.transaction(async (transaction) => {
      const stream = await transaction.lock(batchExportDecider, batchExportId);
      await stream.append(`table repair:${repairId}/${version.version}`, [
        { type: 'TableRepairPlanned', data: version },
      ]);
    }),
  /** Records that the commit is in the log, which mends what was wrong with the table. */
  record: (
    repaired: TableRepairVersion & {
      readonly etag: string;
      readonly adds: number;
      readonly removes: number;
    },
  ): Promise<void> =>
    journal.transaction(async (transaction) => {
      const stream = await transaction.lock(batchExportDecider, batchExportId);
      await stream.append(`table repair:${repairId}/repaired`, [{ type: 'TableRepaired', data: repaired }]);
      await transaction.connection.query('delete from exportd.table_faults where batch_export_id = $1', [
        batchExportId,
      ]);
    }),
});

/** The types of errors that say that the table of an export is not what exportd made it. */
const faultTypes: ReadonlySet<string> = new Set([
  'TableOverwritten',
  'TableChanged',
  'TableDamaged',
  'TableTooLarge',
  'TableProtocol',
  'TableOfAnother',
]);

/** What is wrong with a table. */
interface TableFault {
  readonly type: string;
  readonly message: string;
}

/** Stores what is wrong with the table of an export, for its condition; other errors are none of the table. */
export async function storeTableFault(
  pool: Pool,
  { batch_export_id, config_version }: Pick<RunSpec, 'batch_export_id' | 'config_version'>,
  { type, message }: TableFault,
): Promise<void> {
  if (!faultTypes.has(type)) return;
  await pool.query(
    `insert into exportd.table_faults (batch_export_id, config_version, type, message) values ($1, $2, $3, $4)
     on conflict (batch_export_id) do update set config_version = excluded.config_version, type = excluded.type,
       message = excluded.message`,
    [batch_export_id, config_version, type, message],
  );
}

/** Forgets what was wrong with the table of an export, because a check found nothing. */
export async function clearTableFault(pool: Pool, batchExportId: string): Promise<void> {
  await pool.query('delete from exportd.table_faults where batch_export_id = $1', [batchExportId]);
}

/** Forgets the fault of the table of an export with it: it can no longer be read. */
export const deleteFaultOfExport: Subscriber = async (connection, { stored }) => {
  if (stored.type === 'BatchExportDeleted')
    await connection.query('delete from exportd.table_faults where batch_export_id = $1', [stored.stream_id]);
  return undefined;
};
