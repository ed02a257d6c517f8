import { randomUUID } from 'node:crypto';
import { storeConfig } from '../destination/config_versions.ts';
import { secretFields } from '../destination/config.ts';
import type { Connection } from '../journal/database.ts';
import {
  defaultDefinition,
  definitionFrom,
  toUtc,
  type WritableDefinition,
} from './batch_export_definition.ts';
import { configStoreOf, lockPendingConfigVersion, updatedConfigVersion } from './destination_config.ts';
import { requireBatchExport } from './read_models/batch_exports.ts';
import type { RouteContext } from './route_context.ts';
import { rowQueryOf, updatedRowQuery } from './row_query.ts';
import type { CreateBody, UpdateBody } from './schemas/batch_export.ts';

/** A field that a request changes, as `attr` of errors names it. */
export interface ChangedField {
  readonly attr: string;
  /** Whether responses never contain it. */
  readonly secret: boolean;
}

/** A command that creates or updates an export. Its config is stored in the transaction. */
interface PreparedCommand {
  readonly batch_export_id: string;
  readonly body: Record<string, unknown>;
  readonly changed: readonly ChangedField[];
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
      ...plainFields(['name', 'model', 'interval']),
      ...plainFields(differingFields(definition, { ...defaultDefinition, name, model, interval })),
      ...(body.paused === true ? plainFields(['paused']) : []),
      ...configFields(givenFields(body.destination.config ?? {})),
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
  const pauses = body.paused !== undefined && (body.paused ?? false) !== current.paused;
  return {
    batch_export_id: id,
    body: {
      changes: {
        ...Object.fromEntries(changes),
        ...(config.version === undefined ? {} : { config_version: config.version }),
      },
      ...(body.paused === undefined ? {} : { paused: body.paused ?? false }),
      // Omitted when unchanged, since setting it appends an event.
      ...(lastPausedAt === undefined || lastPausedAt === current.last_paused_at
        ? {}
        : { last_paused_at: lastPausedAt }),
    },
    changed: [
      ...plainFields(differingFields(definition, current)),
      ...(pauses ? plainFields(['paused']) : []),
      ...configFields(config.changed),
    ],
  };
}

const differingFields = (one: WritableDefinition, other: WritableDefinition): string[] =>
  Object.entries(one)
    .filter(([field, value]) => value !== other[field as keyof WritableDefinition])
    .map(([field]) => field);

const plainFields = (attrs: readonly string[]): ChangedField[] =>
  attrs.map((attr) => ({ attr, secret: false }));

function configFields(fields: readonly string[]): ChangedField[] {
  return fields.map((field) => ({
    attr: `destination__config__${field}`,
    secret: secretFields.includes(field),
  }));
}

const givenFields = (config: Readonly<Record<string, unknown>>): string[] =>
  Object.keys(config).filter((field) => config[field] !== null);
