import { bounds } from '../../config/bounds.ts';
import { type KeyRing, SecretUnreadable } from '../../config/key_ring.ts';
import { defaultFields, destinationType } from '../../destination/config.ts';
import {
  type BatchExportDefinition,
  type Model,
  supportsDayOffset,
  supportsOffsets,
} from '../../domain/batch_export.ts';
import { explain, suspectOf } from '../../domain/condition.ts';
import { readChangedFields } from '../../journal/audit.ts';
import type { Connection, Pool } from '../../journal/database.ts';
import { readStandings } from '../../projections/export_conditions.ts';
import type { RowQuery } from '../../source/row_selection.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { notFound } from '../api_error.ts';
import { countRows } from '../paging.ts';
import { latestRuns, type RunLink, toRunResponse } from '../runs/read_model.ts';
import { runSchema } from '../runs/schema.ts';
import { type BatchExportResponse, batchExportSchema, type WhyResponse } from './schema.ts';
import { openSealed } from '../../destination/sealed_config.ts';
import { toReadableResponses } from '../readable_responses.ts';

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
  /** The sealed access key ID of its destination. */
  readonly sealed_access_key_id: string | null;
}

const maxLatestRuns = 10;

const selection = `
  select export.id, export.team_id, export.name, export.model, export.destination_type, export.config_version,
    export.interval, export.timezone, export.offset_hour, export.offset_day, export.start_at, export.end_at,
    export.dialect_query, export.retention_days, export.paused, export.created_at, export.last_updated_at, export.last_paused_at,
    version.config, version.row_query, version.secrets ->> 'aws_access_key_id' as sealed_access_key_id
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

/** The size that a definition has in a response, which shows the query as given and as resolved. */
const definitionBytes = `octet_length(config::text) + coalesce(octet_length(to_jsonb(dialect_query)::text), 0)
  + coalesce(octet_length(row_query::text), 0)`;

/** A page of the project's live exports, newest first: one at least, and no more than fit into a response. */
export async function listBatchExports(
  pool: Pool,
  teamId: number,
  window: { readonly limit: number; readonly offset: number },
): Promise<{ count: number; rows: BatchExportRow[] }> {
  const count = await countRows(pool, 'from exportd.batch_exports where team_id = $1 and not deleted', [
    teamId,
  ]);
  const { rows } = await pool.query<BatchExportRow & { readonly place: number; readonly bytes: number }>(
    `select * from (
       select page.*, row_number() over newest_first as place, sum(${definitionBytes}) over newest_first as bytes
       from (${selection} order by export.created_at desc, export.id limit $2 offset $3) page
       window newest_first as (order by created_at desc, id rows unbounded preceding)
     ) measured where place = 1 or bytes <= $4 order by place`,
    [teamId, window.limit, window.offset, bounds.listedExports.max],
  );
  return { count, rows: rows.map(({ place: _place, bytes: _bytes, ...row }) => withDefaults(row)) };
}

/** What exports are converted to responses with. */
interface ResponseDependencies {
  readonly pool: Pool;
  readonly keyRing: KeyRing;
  readonly runLink: RunLink;
  readonly logger: Logger;
}

/** Converts exports to responses, each with its newest runs, lag and condition. Those that cannot be read are left out. */
export async function toBatchExportResponses(
  { pool, keyRing, runLink, logger }: ResponseDependencies,
  rows: readonly BatchExportRow[],
): Promise<BatchExportResponse[]> {
  const ids = rows.map(({ id }) => id);
  const [runs, standings] = await Promise.all([
    latestRuns(pool, ids, maxLatestRuns),
    readStandings(pool, ids, (id, error) => {
      logger.error({ err: error, batch_export_id: id }, 'The lag of a batch export cannot be computed.');
    }),
  ]);
  const runsOf = Map.groupBy(runs, ({ batch_export_id }) => batch_export_id);
  const toRuns = (batchExportId: string) =>
    toReadableResponses(runsOf.get(batchExportId) ?? [], {
      what: 'run',
      schema: runSchema,
      convert: (run) => toRunResponse(run, runLink),
      logger,
    });
  // An export without an entry was deleted since it was read.
  const existing = rows.flatMap((row) => {
    const standing = standings.get(row.id);
    return standing ? [{ ...row, lag: standing.lag, condition: standing.condition }] : [];
  });
  return toReadableResponses(existing, {
    what: 'batch export',
    schema: batchExportSchema,
    logger,
    convert: ({ destination_type, config, row_query, sealed_access_key_id: sealed, ...row }) => ({
      ...row,
      destination: {
        type: destination_type,
        config,
        access_key_id_end: sealed === null ? null : accessKeyIdEnd(keyRing, row.id, sealed),
      },
      offset_hour: supportsOffsets(row.interval) ? row.offset_hour : null,
      offset_day: supportsDayOffset(row.interval) ? row.offset_day : null,
      latest_runs: toRuns(row.id),
      schema: row_query && schemaOf(row_query),
    }),
  });
}

/** How many characters of an access key ID are shown, and of how many at least. It is no secret, but nothing needs all of it. */
const [shownOfKey, shortestKey] = [4, 12];

/** The end of an access key ID, which tells keys apart; null if it is short, or if this server cannot decrypt it. */
function accessKeyIdEnd(keyRing: KeyRing, id: string, sealed: string): string | null {
  try {
    const secrets = { aws_access_key_id: sealed };
    const { config } = openSealed(keyRing, id, { destination_type: destinationType, config: {}, secrets });
    const key = String(config.aws_access_key_id);
    return key.length < shortestKey ? null : key.slice(-shownOfKey);
  } catch (error) {
    if (error instanceof SecretUnreadable) return null;
    throw error;
  }
}

/** Explains the condition of an export: what may have caused it, and who has to act. */
export async function readExplanation(
  pool: Pool,
  { id, team_id, config }: BatchExportRow,
  condition: BatchExportResponse['condition'],
): Promise<WhyResponse> {
  const object = `batch_exports/${id}`;
  const changes = await readChangedFields(pool, { object, action: 'batch_export.update' });
  const others = (await readExportsOfBucket(pool, { id, team_id, config })).length;
  const change = suspectOf(condition, changes);
  return { summary: explain(condition, change, others), condition, change: change ?? null, others };
}

/** Reads the other exports of the project that write to the same bucket. */
export async function readExportsOfBucket(
  pool: Pool,
  { id, team_id, config }: Pick<BatchExportRow, 'id' | 'team_id' | 'config'>,
): Promise<{ readonly id: string; readonly name: string }[]> {
  const { rows } = await pool.query<{ id: string; name: string }>(
    `select export.id, export.name from exportd.batch_exports export
     join exportd.destination_configs version
       on version.batch_export_id = export.id and version.version = export.config_version
     where export.team_id = $1 and not export.deleted and export.id <> $2
       and version.config->>'bucket_name' = $3
       and version.config->>'endpoint_url' is not distinct from $4
     order by export.name, export.id`,
    [team_id, id, config.bucket_name, config.endpoint_url],
  );
  return rows;
}

/** The columns that a query selects, as resolved. */
const schemaOf = ({ fields, printed }: RowQuery): BatchExportResponse['schema'] => ({
  fields: fields.map(({ name, type, expression }) => ({ alias: name, expression, type })),
  values: {},
  hogql_query: printed,
  dialect_query: printed,
});

/** Formats a time as responses do, so that sending a response back changes nothing. */
export const toUtc = (time: string): string => new Date(time).toISOString();
