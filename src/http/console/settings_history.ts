import { isDeepStrictEqual } from 'node:util';
import type { BatchExportDefinition, BatchExportEvent } from '../../domain/batch_export.ts';
import type { Pool } from '../../journal/database.ts';
import { countRows } from '../paging.ts';
import type { FieldChange, SettingsChange } from './schema.ts';

/** Reads the fields and the sealed secrets of each config version of an export, by their paths in the API. */
export async function readConfigFields(
  pool: Pool,
  batchExportId: string,
): Promise<ReadonlyMap<number, ExportFields>> {
  const { rows } = await pool.query<{
    version: number;
    config: Record<string, unknown>;
    secrets: Record<string, string>;
  }>('select version, config, secrets from exportd.destination_configs where batch_export_id = $1', [
    batchExportId,
  ]);
  return new Map(
    rows.map(({ version, config, secrets }) => [
      version,
      { fields: inDestination(config), secrets: inDestination(secrets) },
    ]),
  );
}

const inDestination = <Value>(fields: Readonly<Record<string, Value>>): Record<string, Value> =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [`destination.config.${name}`, value]));

/** The fields of an export by their paths, and its sealed secrets by theirs. */
export interface ExportFields {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly secrets: Readonly<Record<string, string>>;
}

/** No fields: what a new export is compared with. */
export const noFields: ExportFields = { fields: {}, secrets: {} };

/**
 * The fields in which two states of an export differ. A secret differs if its sealed value does: a kept secret is copied
 * without being sealed again.
 */
export function fieldChanges(before: ExportFields, after: ExportFields): FieldChange[] {
  const changed = (one: Readonly<Record<string, unknown>>, other: Readonly<Record<string, unknown>>) =>
    [...new Set([...Object.keys(other), ...Object.keys(one)])].filter(
      (field) => !isDeepStrictEqual(one[field] ?? null, other[field] ?? null),
    );
  return [
    ...changed(before.fields, after.fields).map((field) => ({
      field,
      before: before.fields[field] ?? null,
      after: after.fields[field] ?? null,
      secret: false,
    })),
    ...changed(before.secrets, after.secrets).map((field) => ({
      field,
      before: null,
      after: null,
      secret: true,
    })),
  ];
}

type ChangeRow = BatchExportEvent & {
  readonly stream_version: number;
  readonly recorded_at: string;
  /** Whether a command or a request caused it, and the user who sent that; null for a signal sent by hand. */
  readonly is_commanded: boolean;
  readonly email: string | null;
  readonly first_name: string | null;
  readonly key_name: string | null;
  readonly signal_identity: string | null;
};

/** A definition of the export, and the event of its stream from which on it holds. */
interface DefinitionVersion {
  readonly stream_version: number;
  readonly definition: BatchExportDefinition;
}

/** SQL condition: the event is no step of the schedule, and no digest. It is that of the index journal_events_history. */
const isChange = `event.stream_type = 'batch_export' and event.stream_id = $1
  and event.event_type not in ('IntervalScheduled', 'IntervalsSkipped', 'HistoryCollapsed')
  and event.event_type <> 'TableRepairPlanned'`;

/** Reads what changed an export, newest first: who, when, and each field before and after. */
export async function readSettingsHistory(
  pool: Pool,
  batchExportId: string,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<{ count: number; results: SettingsChange[] }> {
  const count = await countRows(pool, `from exportd.journal_events event where ${isChange}`, [batchExportId]);
  const { rows } = await pool.query<ChangeRow>(
    `select event.stream_version, event.event_type as type, event.data, event.recorded_at,
       command.id is not null or event.data ? 'user_id' as is_commanded, users.email, users.first_name,
       nullif(key.name, '') as key_name, command.signal_identity
     from exportd.journal_events event
     left join exportd.commands command
       on command.id = case when event.cause like 'command:%' then substr(event.cause, 9, 36)::uuid end
     left join exportd.users users on users.id = coalesce(command.user_id, (event.data ->> 'user_id')::integer)
     left join exportd.api_keys key on key.id = command.key_id
     where ${isChange} order by event.stream_version desc limit $2 offset $3`,
    [batchExportId, limit, offset],
  );
  const definitions = await readDefinitions(pool, batchExportId);
  const configs = await readConfigFields(pool, batchExportId);
  const fieldsAt = (isIncluded: (version: number) => boolean): ExportFields => {
    const found = definitions.findLast(({ stream_version }) => isIncluded(stream_version));
    return found ? fieldsOf(found.definition, configs) : noFields;
  };
  return {
    count,
    results: rows.map((row) => {
      const { stream_version: own } = row;
      const changes = fieldChanges(
        fieldsAt((version) => version < own),
        fieldsAt((version) => version <= own),
      );
      return {
        at: row.recorded_at,
        by: authorOf(row),
        changes,
        backfill_id: null,
        run_id: null,
        ...describe(row),
      };
    }),
  };
}

/** The definitions that an export has had, oldest first. */
async function readDefinitions(pool: Pool, batchExportId: string): Promise<DefinitionVersion[]> {
  const { rows } = await pool.query<BatchExportEvent & { readonly stream_version: number }>(
    `select event.stream_version, event.event_type as type, event.data from exportd.journal_events event
     where ${isChange} and event.event_type in ('BatchExportCreated', 'BatchExportUpdated')
     order by event.stream_version`,
    [batchExportId],
  );
  const definitions: DefinitionVersion[] = [];
  for (const { stream_version, ...event } of rows) {
    const former = definitions.at(-1)?.definition;
    if (event.type === 'BatchExportCreated')
      definitions.push({ stream_version, definition: event.data.definition });
    if (event.type === 'BatchExportUpdated' && former)
      definitions.push({ stream_version, definition: { ...former, ...event.data.changes } });
  }
  return definitions;
}

/** The fields of a definition under the names of the API. */
function fieldsOf(
  { config_version, destination_type, ...definition }: BatchExportDefinition,
  configs: ReadonlyMap<number, ExportFields>,
): ExportFields {
  const config = configs.get(config_version) ?? noFields;
  return {
    fields: { ...definition, 'destination.type': destination_type, ...config.fields },
    secrets: config.secrets,
  };
}

function authorOf({
  is_commanded,
  email,
  first_name,
  key_name,
  signal_identity: identity,
}: ChangeRow): SettingsChange['by'] {
  if (!is_commanded) return { type: 'exportd' };
  return email === null
    ? { type: 'signal', identity }
    : { type: 'user', email, first_name: first_name ?? '', key: key_name };
}

type Description = Pick<SettingsChange, 'kind' | 'summary'> & { backfill_id?: string; run_id?: string };

function describe(event: BatchExportEvent): Description {
  switch (event.type) {
    case 'BatchExportCreated':
      return { kind: 'created', summary: event.data.paused ? 'Created, paused' : 'Created' };
    case 'BatchExportPaused':
      return event.data.run_ids
        ? { kind: 'paused', summary: `Paused after ${event.data.run_ids.length} failed runs in a row` }
        : { kind: 'paused', summary: 'Paused' };
    case 'BatchExportUnpaused':
      return { kind: 'unpaused', summary: 'Unpaused' };
    case 'BackfillRequested':
      return {
        kind: 'backfill_requested',
        summary: `Backfill from ${event.data.start_at} to ${event.data.end_at}${shrinking(event.data)}`,
        backfill_id: event.data.backfill_id,
      };
    case 'RunRetryRequested':
      return {
        kind: 'retry_requested',
        summary: `Retry of ${event.data.start} to ${event.data.end}${shrinking(event.data)}`,
        backfill_id: event.data.backfill_id,
        run_id: event.data.run_id,
      };
    case 'FailedRunsRetryRequested':
      return {
        kind: 'failed_runs_retry_requested',
        summary: `Retry of ${event.data.runs} failed runs`,
        backfill_id: event.data.backfill_id,
      };
    case 'TableRepaired':
      return {
        kind: 'table_repaired',
        summary: `Repaired the table: version ${event.data.version}, ${event.data.adds} files added, ${event.data.removes} removed`,
      };
    case 'BatchExportLastPausedAtSet':
      return { kind: 'updated', summary: `Set last_paused_at to ${event.data.last_paused_at ?? 'null'}` };
    // A deleted export has no history to read, and steps of the schedule are left out.
    default:
      return { kind: 'updated', summary: 'Updated' };
  }
}

const shrinking = ({ allow_shrink }: { readonly allow_shrink: boolean }): string =>
  allow_shrink ? ', which may remove rows from the bucket' : '';
