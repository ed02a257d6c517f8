import { randomUUID } from 'node:crypto';
import {
  changedConfigFields,
  givenConfigFields,
  mergeConfig,
  storeConfig,
} from '../../destination/config_versions.ts';
import {
  batchExportDecider,
  type BatchExportDefinition,
  decideUpdate,
  type LiveBatchExport,
  requireConsistent,
  requireLive,
  supportsOffsets,
} from '../../domain/batch_export.ts';
import {
  type DataInterval,
  intervalContaining,
  intervalFrom,
  previousBoundary,
} from '../../domain/intervals.ts';
import { type FieldChange, fieldChanges } from '../../journal/audit.ts';
import type { Connection, Pool } from '../../journal/database.ts';
import { readRowQuery } from '../../source/row_query/selected_rows.ts';
import type { RowQuery } from '../../source/row_selection.ts';
import { ApiError, invalid, notFound } from '../api_error.ts';
import type { RouteContext } from '../route_context.ts';
import { type BatchExportRow, requireBatchExport, toUtc } from './read_model.ts';
import { type CreateBody, configChecks, type UpdateBody } from './schema.ts';
import type { ConfigStore } from '../../destination/sealed_config.ts';

/** The fields of a definition that a body sets directly; destination configs are stored in versions instead. */
export type WritableDefinition = Omit<BatchExportDefinition, 'destination_type' | 'config_version'>;

/** The value of a field that is omitted on creation or reset with null. */
export const defaultDefinition: Omit<WritableDefinition, 'name'> = {
  model: 'events',
  interval: 'hour',
  timezone: 'UTC',
  offset_hour: 0,
  offset_day: 0,
  start_at: null,
  end_at: null,
  dialect_query: null,
  retention_days: null,
};

/**
 * Applies a body to a definition. An omitted field keeps its value, null resets it to its default, and a new interval
 * resets the offsets that do not apply to it.
 * @throws CommandRejected when the fields are inconsistent.
 */
export function definitionFrom(base: WritableDefinition, body: UpdateBody): WritableDefinition {
  const interval = body.interval ?? base.interval;
  const intervalChanges = interval !== base.interval;
  const keptHour = intervalChanges && !supportsOffsets(interval) ? 0 : base.offset_hour;
  // A day of the week is not a day of the month.
  const keptDay = intervalChanges ? 0 : base.offset_day;
  const wanted: WritableDefinition = {
    name: body.name ?? base.name,
    model: orDefault(body.model, base.model, defaultDefinition.model),
    interval,
    timezone: orDefault(body.timezone, base.timezone, defaultDefinition.timezone),
    offset_hour: orDefault(body.offset_hour, keptHour, 0),
    offset_day: orDefault(body.offset_day, keptDay, 0),
    start_at: timeOr(body.start_at, base.start_at),
    end_at: timeOr(body.end_at, base.end_at),
    dialect_query: textOr(body.dialect_query, base.dialect_query),
    retention_days: orDefault(body.retention_days, base.retention_days, null),
  };
  requireConsistent(wanted, body);
  return wanted;
}

/** The value of a field of a definition: an omitted one keeps its value, null resets it to its default. */
const orDefault = <Value>(given: Value | null | undefined, kept: Value, fallback: Value): Value =>
  given === undefined ? kept : (given ?? fallback);

const timeOr = (given: string | null | undefined, kept: string | null): string | null =>
  given === undefined ? kept : given === null ? null : toUtc(given);

/** An empty query means no query. */
const textOr = (given: string | null | undefined, kept: string | null): string | null =>
  given === undefined ? kept : given === '' ? null : given;

/** What storing a config of the project needs. */
export async function configStoreOf(
  database: Pool | Connection,
  { keyRing, settings }: ConfigStore,
  teamId: number,
): Promise<ConfigStore> {
  const { rows } = await database.query<{ external_id: string }>(
    'select external_id from exportd.projects where id = $1',
    [teamId],
  );
  const [project] = rows;
  if (!project) throw notFound();
  return { keyRing, settings: { ...settings, ...configChecks, external_id: project.external_id } };
}

/**
 * Stores a new version of the export's config when the body changes one of its fields or the row query (`rowQuery`,
 * undefined when unchanged). A secret that is sent again is no change.
 * @returns the new version, or undefined when nothing changes, and the fields that change.
 * @throws ApiError or CommandRejected when the destination is invalid.
 */
async function updatedConfigVersion(
  connection: Connection,
  store: ConfigStore,
  current: BatchExportRow,
  {
    destination,
    rowQuery,
  }: { destination: UpdateBody['destination']; rowQuery: RowQuery | null | undefined },
  pendingVersion: number | null,
): Promise<{ readonly version: number | undefined; readonly changed: readonly FieldChange[] }> {
  rejectTypeChange(current, destination?.type);
  const config = destination?.config ?? {};
  if (!destination?.config && rowQuery === undefined) return { version: undefined, changed: [] };
  // A pending update has a newer version, whose changes this one must keep.
  const base = Math.max(current.config_version, pendingVersion ?? 0);
  const update = { batch_export_id: current.id, base_version: base, config, row_query: rowQuery };
  const changed = await changedConfigFields(connection, store, update);
  if (changed.length === 0 && rowQuery === undefined && base === current.config_version)
    return { version: undefined, changed };
  return { version: await mergeConfig(connection, store, update), changed };
}

/** The type of a destination cannot change. @throws ApiError 400 */
export function rejectTypeChange(current: BatchExportRow, type: string | undefined): void {
  if (type !== undefined && type !== current.destination_type)
    throw invalid(
      `Cannot change destination type from '${current.destination_type}' to '${type}'.`,
      'destination__type',
    );
}

/**
 * The newest config version of the export's pending updates, or null. Blocks other updates of this export until the
 * transaction ends. Call it before reading the export, so that an update decided in between is seen there.
 */
async function lockPendingConfigVersion(
  connection: Connection,
  batchExportId: string,
): Promise<number | null> {
  await connection.query(`select pg_advisory_xact_lock(hashtextextended('batch_export_update/' || $1, 0))`, [
    batchExportId,
  ]);
  const { rows } = await connection.query<{ version: number | null }>(
    `select max((body #>> '{changes,config_version}')::integer) as version from exportd.commands
     where batch_export_id = $1 and name = 'update' and status = 'pending'`,
    [batchExportId],
  );
  return rows[0]?.version ?? null;
}

type QueryFields = Pick<WritableDefinition, 'model' | 'dialect_query'>;

/**
 * Compiles the query of a definition; null when it has none. The project's current time zone and week start are stored
 * with it and interpret its dates from then on.
 * @throws ApiError 400 with the position of the error in the query.
 */
export async function rowQueryOf(
  connection: Connection | Pool,
  teamId: number,
  { model, dialect_query }: QueryFields,
): Promise<RowQuery | null> {
  if (dialect_query === null) return null;
  const { rows } = await connection.query<Pick<RowQuery, 'timezone' | 'week_start_day'>>(
    'select timezone, week_start_day from exportd.projects where id = $1',
    [teamId],
  );
  const [settings] = rows;
  if (!settings) throw new Error(`Project ${teamId} does not exist.`);
  try {
    return readRowQuery(model, { dialect_query, ...settings });
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'DialectError') throw error;
    throw new ApiError(400, 'dialect_error', error.message, { attr: 'dialect_query' });
  }
}

/**
 * The query after an update; undefined when it is unchanged. A pending update of the export may change the query too, so
 * with one the query is never treated as unchanged.
 * @throws ApiError 400
 */
async function updatedRowQuery(
  connection: Connection,
  current: QueryFields & { readonly team_id: number; readonly row_query: RowQuery | null },
  wanted: QueryFields,
  { body, hasPendingUpdate }: { readonly body: object; readonly hasPendingUpdate: boolean },
): Promise<RowQuery | null | undefined> {
  const stored = current.row_query?.dialect_query ?? null;
  const isUnchanged = wanted.dialect_query === stored && wanted.model === current.model && !hasPendingUpdate;
  if (isUnchanged || !('dialect_query' in body || 'model' in body)) return undefined;
  return rowQueryOf(connection, current.team_id, wanted);
}

/** A command that creates or updates an export. Its config is stored in the transaction. */
interface PreparedCommand {
  readonly batch_export_id: string;
  readonly body: Record<string, unknown>;
  /** The fields that it sets to another value. */
  readonly changed: readonly FieldChange[];
}

/**
 * Rejects one more export of a project that has as many as it may have. It holds a lock until the transaction ends, so that
 * requests at the same time do not exceed the limit together. @throws ApiError 409
 */
async function requirePlace(connection: Connection, teamId: number, max: number): Promise<void> {
  await connection.query(`select pg_advisory_xact_lock(hashtextextended('batch_exports/' || $1::text, 0))`, [
    teamId,
  ]);
  const { rows } = await connection.query<{ exports: number }>(
    `select (select count(*) from exportd.batch_exports where team_id = $1 and not deleted)
       + (select count(*) from exportd.commands where team_id = $1 and name = 'create' and status = 'pending') as exports`,
    [teamId],
  );
  if ((rows[0]?.exports ?? 0) < max) return;
  throw new ApiError(
    409,
    'too_many_batch_exports',
    `The project has ${max} batch exports, the most that it may have (EXPORTD_MAX_EXPORTS_PER_PROJECT). Delete one first.`,
  );
}

/** Validates a new export and stores its config. @throws CommandRejected, ApiError */
export async function prepareCreation(
  connection: Connection,
  context: RouteContext,
  teamId: number,
  body: CreateBody,
): Promise<PreparedCommand> {
  const definition = definitionFrom({ ...defaultDefinition, name: body.name }, body);
  const { name, model, interval } = definition;
  await requirePlace(connection, teamId, context.settings.EXPORTD_MAX_EXPORTS_PER_PROJECT);
  const batchExportId = randomUUID();
  const store = await configStoreOf(connection, context, teamId);
  const version = await storeConfig(connection, store, {
    batch_export_id: batchExportId,
    destination_type: body.destination.type,
    config: body.destination.config ?? {},
    row_query: await rowQueryOf(connection, teamId, definition),
  });
  return {
    batch_export_id: batchExportId,
    body: {
      definition: { ...definition, destination_type: body.destination.type, config_version: version },
      paused: body.paused ?? false,
    },
    changed: [
      ...fieldChanges({}, { name, model, interval }),
      ...fieldChanges({ ...defaultDefinition, name, model, interval }, definition),
      ...(body.paused === true ? fieldChanges({}, { paused: true }) : []),
      ...givenConfigFields(body.destination.config ?? {}),
    ],
  };
}

/**
 * Validates an update and stores its config if it changes.
 * @throws CommandRejected, ApiError
 */
export async function prepareUpdate(
  connection: Connection,
  context: RouteContext,
  teamId: number,
  id: string,
  body: UpdateBody,
): Promise<PreparedCommand> {
  const pendingVersion = await lockPendingConfigVersion(connection, id);
  const current = await requireBatchExport(connection, teamId, id);
  const definition = definitionFrom(current, body);
  const hasPendingUpdate = pendingVersion !== null;
  const rowQuery = await updatedRowQuery(connection, current, definition, { body, hasPendingUpdate });
  const change = { destination: body.destination, rowQuery };
  const store = await configStoreOf(connection, context, teamId);
  const config = await updatedConfigVersion(connection, store, current, change, pendingVersion);
  const changes = Object.entries(definition).filter(
    ([field, value]) => field in body || value !== current[field as keyof WritableDefinition],
  );
  const lastPausedAt = body.last_paused_at && toUtc(body.last_paused_at);
  return {
    batch_export_id: id,
    body: {
      changes: {
        ...Object.fromEntries(changes),
        ...(config.version !== undefined && { config_version: config.version }),
      },
      ...(body.paused !== undefined && { paused: body.paused ?? false }),
      // Omitted when unchanged, since setting it appends an event.
      ...(lastPausedAt !== undefined &&
        lastPausedAt !== current.last_paused_at && { last_paused_at: lastPausedAt }),
    },
    changed: [
      ...fieldChanges(current, definition),
      ...(body.paused === undefined ? [] : fieldChanges(current, { paused: body.paused ?? false })),
      ...config.changed,
    ],
  };
}

/** The fields of a config that decide where files are. */
const placeFields = ['bucket_name', 'region', 'endpoint_url', 'prefix'];
/** Those that decide which rows and columns files have, and how they are written. */
const contentFields = [
  'model',
  'dialect_query',
  'include_events',
  'exclude_events',
  'filters',
  'file_format',
  'compression',
  'table_format',
];

/**
 * What an update does to intervals and files beyond the fields that it sets, a sentence each. Times are in UTC. Call it in the
 * transaction that has prepared the update.
 */
export async function consequencesOf(
  connection: Connection,
  teamId: number,
  id: string,
  { body, changed }: { readonly body: UpdateBody; readonly changed: readonly FieldChange[] },
): Promise<string[]> {
  const current = await requireBatchExport(connection, teamId, id);
  const definition = definitionFrom(current, body);
  const fields = changed.map(({ field }) => field.split('.').at(-1) ?? field);
  const changesAny = (names: readonly string[]) => fields.some((field) => names.includes(field));
  const bridge = await bridgeOf(connection, id, definition);
  const { bucket_name, prefix } = current.config;
  return [
    ...(bridge === null
      ? []
      : [
          `One interval from ${bridge.start} to ${bridge.end} connects the old schedule with the new one. Ended intervals stay as they are.`,
        ]),
    ...(changesAny(placeFields)
      ? [
          `Files that are already exported stay in ${String(bucket_name)} below ${String(prefix)}: their readers get nothing new there. A backfill exports earlier intervals to the new place.`,
        ]
      : []),
    ...(changesAny(contentFields)
      ? [
          'Exported files stay as they are; intervals have the new rows, columns or format from the next run on. A backfill exports earlier ones again.',
        ]
      : []),
    ...(fields.includes('on_missing_rows') && body.destination?.config?.on_missing_rows === 'follow'
      ? ['Exporting an interval again deletes rows from the bucket that the source no longer has.']
      : []),
  ];
}

/** The interval between the boundaries of the schedule and those of the new one; null if no boundary changes, or all fit. */
async function bridgeOf(
  connection: Connection,
  id: string,
  definition: WritableDefinition,
): Promise<DataInterval | null> {
  const { rows } = await connection.query<{ state: LiveBatchExport; now: Date }>(
    `select state, statement_timestamp() as now from exportd.stream_states
     where stream_type = 'batch_export' and stream_id = $1 and state->>'status' = 'live'`,
    [id],
  );
  const [row] = rows;
  if (!row) return null;
  const now = new Date(row.now);
  const { interval, timezone, offset_hour, offset_day } = definition;
  const [updated] = decideUpdate(row.state, {
    changes: { interval, timezone, offset_hour, offset_day },
    now,
  });
  if (updated?.type !== 'BatchExportUpdated' || updated.data.schedule_effective_from === null) return null;
  const { revisions } = requireLive(
    batchExportDecider.evolve(row.state, { ...updated, recorded_at: now.toISOString() }),
  );
  const boundary = new Date(updated.data.schedule_effective_from);
  const [before, after] = [
    intervalContaining(revisions, new Date(boundary.getTime() - 1)),
    intervalFrom(revisions, boundary),
  ];
  const isWhole = ({ start, end }: DataInterval, schedule = definition) =>
    previousBoundary(schedule, new Date(start)).toISOString() === start &&
    previousBoundary(schedule, new Date(end)).toISOString() === end;
  if (!isWhole(after)) return after;
  return isWhole(before, { ...definition, ...row.state.definition }) ? null : before;
}
