/** What exportd knows of the commits to tables, and what is wrong with a table. */
import { createRunSteps } from '../decisions/run_steps.ts';
import { createConfigReader } from '../destination/config_versions.ts';
import { tableLocationOf } from '../tables/table_store.ts';
import { type PartitionColumn, partitionColumnsOf } from '../destination/partitions.ts';
import type { Model } from '../domain/batch_export.ts';
import { requireGeneration } from '../domain/run.ts';
import type { ExistingRun, RunSpec, RunState } from '../domain/run_state.ts';
import { type Connection, inTransaction, type Pool } from '../journal/database.ts';
import type { Journal } from '../journal/journal.ts';
import { deletedWithExport, type StoredRows } from '../journal/stored_rows.ts';
import type { RunEvent } from '../domain/run_events.ts';

/** A commit to a table, and what its run exported; nothing for a repair. */
export interface NewestTableCommit {
  readonly version: number;
  readonly etag: string;
  readonly model: Model | null;
  readonly config_version: number | null;
}

/** A version of a table: the commit that makes it is an object that is written once. */
interface TableVersion {
  /** Server, bucket and folder of the table. */
  readonly location: string;
  readonly version: number;
}

/** A planned commit to a table. `etag` is null until it is known to be written. */
interface TableCommit extends TableVersion {
  readonly etag: string | null;
}

/** A commit that is in the log of a table, with the numbers of its files. */
interface WrittenCommit extends TableVersion {
  readonly etag: string;
  readonly adds: number;
  readonly removes: number;
}

/** The name of tables among the targets of a run. */
const target = 'table';

/** The commit of a run to a table, as its stream has it; undefined before it is planned. */
export function tableCommitOf({
  target_commits,
}: Pick<ExistingRun, 'target_commits'>): TableCommit | undefined {
  const found = target_commits?.[target];
  if (!found) return undefined;
  const { location, version, etag } = found.commit;
  return {
    location: String(location),
    version: Number(version),
    etag: found.isWritten ? String(etag) : null,
  };
}

/**
 * Plans the commit of a run to a table, before it is sent. No event if it is planned already, or if another attempt has gone
 * on to a later version: an attempt does that only once another commit has the version before.
 */
function decideTableCommit(
  state: RunState,
  generation: number,
  { location, version }: TableVersion,
): RunEvent[] {
  const planned = tableCommitOf(requireGeneration(state, generation));
  if (planned?.location === location && planned.version >= version) return [];
  return [{ type: 'RunTargetPlanned', data: { generation, target, commit: { location, version } } }];
}

/** The commits of an export. They stay as long as its history, since checks compare them with the log of the table. */
export const tableCommitRows: StoredRows = { tables: ['table_commits'], expired: [] };

/** Reads the newest commit to a table that runs and repairs of an export recorded; undefined without one. */
async function readNewestTableCommit(
  pool: Pool,
  { batch_export_id }: Pick<RunSpec, 'batch_export_id'>,
  location: string,
): Promise<NewestTableCommit | undefined> {
  const { rows } = await pool.query<NewestTableCommit>(
    `select version, etag, model, config_version from exportd.table_commits
     where batch_export_id = $1 and location = $2 and etag is not null order by version desc limit 1`,
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
    recordTableCommit: (
      runId: string,
      { generation, location, version, etag, adds, removes }: WrittenCommit & { readonly generation: number },
    ) =>
      step(runId, async (stream, { connection }) => {
        const { spec } = requireGeneration(stream.state(), generation);
        const commit = { location, version, etag, adds, removes };
        await stream.append(`generation:${generation}/table committed`, [
          { type: 'RunTargetCommitted', data: { generation, target, commit } },
        ]);
        await connection.query(
          `insert into exportd.table_commits (id, generation, is_repair, batch_export_id, location, version, etag, adds,
             removes, data_interval_start, data_interval_end, model, config_version)
           values ($1, $2, false, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) on conflict (id, generation) do nothing`,
          [
            runId,
            generation,
            spec.batch_export_id,
            location,
            version,
            etag,
            adds,
            removes,
            spec.data_interval_start,
            spec.data_interval_end,
            spec.model,
            spec.config_version,
          ],
        );
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

/** Records the commit of a repair. */
export const createRepairRecorder = (pool: Pool, batchExportId: string, repairId: string) => ({
  /** The version that the repair has planned last, and its ETag if that was recorded. */
  find: async (): Promise<TableCommit | undefined> => {
    const { rows } = await pool.query<TableCommit>(
      'select location, version, etag from exportd.table_commits where id = $1 and is_repair',
      [repairId],
    );
    return rows[0];
  },
  /** Plans the commit before it is sent, instead of an earlier one whose version another commit got. */
  plan: async ({ location, version }: TableVersion): Promise<void> => {
    await pool.query(
      `insert into exportd.table_commits (id, is_repair, batch_export_id, location, version)
       values ($1, true, $2, $3, $4) on conflict (id, generation) do update
         set location = excluded.location, version = excluded.version where table_commits.etag is null`,
      [repairId, batchExportId, location, version],
    );
  },
  /** Records that the commit is in the log, which mends what was wrong with the table. */
  record: ({ version, etag, adds, removes }: Omit<WrittenCommit, 'location'>): Promise<void> =>
    inTransaction(pool, async (connection) => {
      await connection.query(
        `update exportd.table_commits set etag = $3, adds = $4, removes = $5, recorded_at = clock_timestamp()
         where id = $1 and is_repair and version = $2`,
        [repairId, version, etag, adds, removes],
      );
      await clearTableFault(connection, batchExportId);
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
    `insert into exportd.target_faults (batch_export_id, config_version, type, message) values ($1, $2, $3, $4)
     on conflict (batch_export_id) do update set config_version = excluded.config_version, type = excluded.type,
       message = excluded.message`,
    [batch_export_id, config_version, type, message],
  );
}

/** Forgets what was wrong with the table of an export: a check found nothing, or a repair mended it. */
export async function clearTableFault(database: Pool | Connection, batchExportId: string): Promise<void> {
  await database.query('delete from exportd.target_faults where batch_export_id = $1', [batchExportId]);
}

export const deleteFaultOfExport = deletedWithExport('target_faults');
