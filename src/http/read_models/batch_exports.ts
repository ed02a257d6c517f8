import {
  type BatchExportDefinition,
  type Model,
  supportsDayOffset,
  supportsOffsets,
} from '../../domain/batch_export.ts';
import type { Connection, Pool } from '../../journal/database.ts';
import { defaultFields } from '../../destination/config.ts';
import type { RowQuery } from '../../source/row_selection.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { notFound } from '../api_error.ts';
import { toReadableResponses } from '../readable_items.ts';
import { batchExportSchema, type BatchExportResponse } from '../schemas/batch_export.ts';
import { runSchema } from '../schemas/run.ts';
import { readLags } from './lag.ts';
import { latestRuns, toRunResponse, type RunLink } from './runs.ts';

/** A live export as stored in the read model, with the public fields of its config. */
export interface BatchExportRow extends BatchExportDefinition {
  readonly id: string;
  readonly team_id: number;
  readonly model: Model;
  readonly paused: boolean;
  readonly created_at: string;
  readonly last_updated_at: string;
  readonly last_paused_at: string | null;
  readonly config: Record<string, unknown>;
  readonly row_query: RowQuery | null;
}

const maxLatestRuns = 10;

const selection = `
  select export.id, export.team_id, export.name, export.model, export.destination_type, export.config_version,
    export.interval, export.timezone, export.offset_hour, export.offset_day, export.start_at, export.end_at,
    export.dialect_query, export.retention_days, export.paused, export.created_at, export.last_updated_at, export.last_paused_at,
    version.config, version.row_query
  from exportd.batch_exports export
  join exportd.destination_configs version
    on version.batch_export_id = export.id and version.version = export.config_version
  where export.team_id = $1 and not export.deleted`;

/** A live export of the project. @throws ApiError 404 */
export async function requireBatchExport(
  database: Pool | Connection,
  teamId: number,
  id: string,
): Promise<BatchExportRow> {
  const { rows } = await database.query<BatchExportRow>(`${selection} and export.id = $2`, [teamId, id]);
  const [found] = rows;
  if (!found) throw notFound();
  return withDefaults(found);
}

/** Adds the defaults of config fields that the stored version lacks. A destination type may be unknown to this version. */
const withDefaults = (row: BatchExportRow): BatchExportRow => ({
  ...row,
  config: { ...defaultFields, ...row.config },
});

/** A page of the project's live exports, newest first. */
export async function listBatchExports(
  pool: Pool,
  teamId: number,
  window: { readonly limit: number; readonly offset: number },
): Promise<{ count: number; rows: BatchExportRow[] }> {
  const counted = await pool.query<{ count: number }>(
    'select count(*) as count from exportd.batch_exports where team_id = $1 and not deleted',
    [teamId],
  );
  const { rows } = await pool.query<BatchExportRow>(
    `${selection} order by export.created_at desc, export.id limit $2 offset $3`,
    [teamId, window.limit, window.offset],
  );
  return { count: counted.rows[0]?.count ?? 0, rows: rows.map(withDefaults) };
}

/** What exports are converted to responses with. */
interface ResponseDependencies {
  readonly pool: Pool;
  readonly runLink: RunLink;
  readonly logger: Logger;
}

/** Converts exports to responses, each with its newest runs and its lag. Those that cannot be read are left out. */
export async function toBatchExportResponses(
  { pool, runLink, logger }: ResponseDependencies,
  rows: readonly BatchExportRow[],
): Promise<BatchExportResponse[]> {
  const ids = rows.map(({ id }) => id);
  const [runs, lags] = await Promise.all([
    latestRuns(pool, ids, maxLatestRuns),
    readLags(pool, rows, (id, error) => {
      logger.error({ err: error, batch_export_id: id }, 'The lag of a batch export cannot be computed.');
    }),
  ]);
  const toRuns = (row: BatchExportRow) =>
    toReadableResponses(
      runs.filter((run) => run.batch_export_id === row.id),
      { what: 'run', schema: runSchema, convert: (run) => toRunResponse(run, runLink), logger },
    );
  // An export without an entry was deleted since it was read.
  const existing = rows.filter(({ id }) => lags.has(id));
  return toReadableResponses(existing, {
    what: 'batch export',
    schema: batchExportSchema,
    logger,
    convert: (row) => ({
      id: row.id,
      team_id: row.team_id,
      name: row.name,
      model: row.model,
      destination: { type: row.destination_type, config: row.config },
      interval: row.interval,
      timezone: row.timezone,
      offset_hour: supportsOffsets(row.interval) ? row.offset_hour : null,
      offset_day: supportsDayOffset(row.interval) ? row.offset_day : null,
      paused: row.paused,
      created_at: row.created_at,
      last_updated_at: row.last_updated_at,
      last_paused_at: row.last_paused_at,
      start_at: row.start_at,
      end_at: row.end_at,
      latest_runs: toRuns(row),
      dialect_query: row.dialect_query,
      retention_days: row.retention_days,
      schema: row.row_query && schemaOf(row.row_query),
      lag: lags.get(row.id) ?? null,
    }),
  });
}

/** The columns that a query selects, as resolved. */
const schemaOf = ({ fields, printed }: RowQuery): BatchExportResponse['schema'] => ({
  fields: fields.map(({ name, type, expression }) => ({ alias: name, expression, type })),
  dialect_query: printed,
});
