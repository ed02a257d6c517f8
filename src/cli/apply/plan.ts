import { defaultDefinition } from '../../http/batch_exports/changes.ts';
import { CliError } from '../cli_error.ts';
import type { JsonObject } from '../commands/service_command.ts';
import { readExports } from '../read_exports.ts';
import type { ServiceClient } from '../service_client.ts';
import type { DeclaredExport } from './exports_file.ts';

/** A field that an export gets. The values of secrets are null. */
export interface PlannedField {
  /** Its path, such as `destination.config.prefix`. */
  readonly field: string;
  readonly secret: boolean;
  /** Null for a new export. */
  readonly from: unknown;
  /** Null for the default. */
  readonly to: unknown;
}

/** What becomes of an export. `undeclared`: it is not in the file, and stays. */
export interface PlannedExport {
  readonly action: 'create' | 'update' | 'unchanged' | 'delete' | 'undeclared';
  readonly name: string;
  /** Null before it exists. */
  readonly id: string | null;
  readonly fields: readonly PlannedField[];
}

/** An export of the plan, and the body of the request that carries it out: it can contain secrets. */
export interface PlannedRequest {
  readonly planned: PlannedExport;
  readonly body?: JsonObject;
}

/**
 * Compares the declared exports with those of the project, by name. The API validates each and says what it would change.
 * @throws CliError with every export that the API rejects
 */
export async function makePlan(
  service: ServiceClient,
  declared: readonly DeclaredExport[],
  { prune }: { readonly prune: boolean },
): Promise<PlannedRequest[]> {
  const existing = await readExports(service);
  const problems: string[] = [];
  const requests: PlannedRequest[] = [];
  for (const one of declared) {
    const [current, ...others] = existing.filter(({ name }) => name === one.name);
    if (others.length > 0)
      problems.push(`${one.name}: ${others.length + 1} exports have this name. Rename them.`);
    try {
      requests.push(current ? await planUpdate(service, one, current) : await planCreation(service, one));
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      problems.push(`${one.name}: ${error.message}`);
    }
  }
  if (problems.length > 0) throw new CliError(problems.join('\n'));
  const names = new Set(declared.map(({ name }) => name));
  const undeclared = existing.filter(({ name }) => !names.has(String(name)));
  return [...requests, ...undeclared.map((one) => planUndeclared(one, prune))];
}

async function planCreation(
  service: ServiceClient,
  { name, fields }: DeclaredExport,
): Promise<PlannedRequest> {
  const body = withoutNulls(fields);
  const checked = await service.call('POST', 'batch_exports/check', body);
  const changes = plannedFields(checked.body, {}, body);
  return { planned: { action: 'create', name, id: null, fields: changes }, body };
}

async function planUpdate(
  service: ServiceClient,
  { name, fields }: DeclaredExport,
  current: JsonObject,
): Promise<PlannedRequest> {
  const id = String(current.id);
  const body = updateBodyOf(fields, current);
  const checked = await service.call('POST', `batch_exports/${encodeURIComponent(id)}/check`, body);
  const changes = plannedFields(checked.body, current, body);
  const action = changes.length === 0 ? 'unchanged' : 'update';
  return { planned: { action, name, id, fields: changes }, body };
}

const planUndeclared = (current: JsonObject, prune: boolean): PlannedRequest => ({
  planned: {
    action: prune ? 'delete' : 'undeclared',
    name: String(current.name),
    id: String(current.id),
    fields: [],
  },
});

/**
 * The body that gives an export the declared fields and all others their defaults. Two are left as they are: whether the
 * export is paused, which people change meanwhile, and secrets, which may be kept elsewhere.
 */
export function updateBodyOf(fields: JsonObject, current: JsonObject): JsonObject {
  const { interval, ...resettable } = defaultDefinition;
  const omitted = Object.keys(resettable).map((field) => [field, null] as const);
  const { type, config } = fields.destination as { type?: unknown; config?: JsonObject };
  const { config: currentConfig = {} } = current.destination as { config?: JsonObject };
  const omittedConfig = Object.keys(currentConfig).map((field) => [field, null] as const);
  return {
    ...Object.fromEntries(omitted),
    interval,
    ...fields,
    destination: { type, config: { ...Object.fromEntries(omittedConfig), ...config } },
  };
}

/** Creation has no field to reset. */
/** Fields without those that are null. */
export const withoutNulls = (fields: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));

function plannedFields(checked: JsonObject, current: JsonObject, body: JsonObject): PlannedField[] {
  const secrets = checked.secrets as string[];
  return (checked.changes as string[]).map((name) => {
    const path = name.split('__');
    const secret = secrets.includes(name);
    return {
      field: path.join('.'),
      secret,
      from: secret ? null : valueAt(current, path),
      to: secret ? null : valueAt(body, path),
    };
  });
}

const valueAt = (value: unknown, path: readonly string[]): unknown =>
  path.reduce((inner: unknown, field) => (inner as JsonObject | null | undefined)?.[field], value) ?? null;
