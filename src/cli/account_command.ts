/** Commands about users, projects and keys: they use the HTTP API, or the database when there is no key yet. */
import { type Command, Option } from 'commander';
import type { FieldChange } from '../journal/audit.ts';
import type { Pool } from '../journal/database.ts';
import { CliError } from './cli_error.ts';
import {
  openService,
  type ServiceClient,
  serviceCommand,
  type ServiceCommandOptions,
} from './service_client.ts';
import { withAudit } from './control_database.ts';

/** Runs `work` as `withAudit` does. It returns what it has changed. */
export const withChanges = <Result extends { readonly changes: readonly FieldChange[] }>(
  change: { readonly action: string; readonly team_id?: number; readonly object: string },
  work: (pool: Pool) => Promise<Result>,
): Promise<Result> => withAudit({ ...change, changes: (result: Result) => result.changes }, work);

/** What messages call what these commands are about. */
export const things = { users: ['user', 'user list --all'], projects: ['project', 'project list'] } as const;

export interface KeyOptions extends ServiceCommandOptions {
  /** Work on the database also if the environment has an API key. */
  readonly database?: boolean;
}

/** Whether a command uses the HTTP API. Without an API key it uses the database: so the first key is created. */
export const usesService = ({ database, key, baseUrl }: Omit<KeyOptions, 'project'>): boolean =>
  database !== true && (key !== undefined || baseUrl !== undefined || Boolean(process.env.EXPORTD_API_KEY));

export const onlyDatabase = 'only with the database';

/** Opens the service for a command. @throws CliError for a given option that only the database has */
export function onService(
  options: KeyOptions,
  unsupported: Readonly<Record<string, unknown>>,
): ServiceClient {
  const [option] = Object.entries(unsupported).find(([, value]) => value !== undefined) ?? [];
  if (option !== undefined) throw new CliError(`${option} is ${onlyDatabase}: omit it, or add --database.`);
  return openService(options);
}

export const keyCommand = (
  parent: Command,
  name: string,
  description: string,
  project?: Option | null,
): Command =>
  serviceCommand(parent, name, description, project).option(
    '--database',
    'use the control database, also if there is EXPORTD_API_KEY',
  );

/** A field, omitted when its value is undefined. */
export const optional = <Name extends string, Value>(
  name: Name,
  value: Value | undefined,
): Partial<Record<Name, Value>> =>
  value === undefined ? {} : ({ [name]: value } as Partial<Record<Name, Value>>);
