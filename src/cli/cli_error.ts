import { SecretUnreadable } from '../config/key_ring.ts';
import { SettingsError } from '../config/settings.ts';
import { DestinationError } from '../destination/destination.ts';
import { CommandRejected } from '../domain/errors.ts';
import { ReadModelsDiffer } from '../journal/database.ts';
import { CannotSwitch } from '../projections/read_models.ts';
import { CannotRebuild } from '../projections/rebuild.ts';
import { InvalidAccount } from '../http/accounts.ts';
import { LaunchError } from '../local_stack/data_folder.ts';
import { InvalidVariable } from '../queries/prepared_query.ts';
import { InvalidProperty } from '../queries/property_definitions.ts';
import { InvalidWarehouseTable } from '../queries/warehouse_tables.ts';
import { InvalidRelationName, RelationNotFound } from '../source/relations.ts';
import { CannotVerify } from '../verify/report.ts';

/** A command failed. The message is one sentence for the user. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly exitCode: number;

  constructor(message: string, exitCode = 1, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

const userErrors = [
  CliError,
  SettingsError,
  InvalidAccount,
  InvalidVariable,
  InvalidProperty,
  InvalidWarehouseTable,
  LaunchError,
  CannotVerify,
  CannotRebuild,
  CannotSwitch,
  ReadModelsDiffer,
  CommandRejected,
  DestinationError,
  SecretUnreadable,
  InvalidRelationName,
  RelationNotFound,
];

/** The message of an expected error, the stack trace of any other. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (userErrors.some((type) => error instanceof type)) return error.message;
  const code = 'code' in error ? String(error.code) : '';
  switch (code) {
    case 'ECONNREFUSED':
    case 'ENOTFOUND':
    case 'ETIMEDOUT':
      return 'Cannot connect to the database of DATABASE_URL.';
    case '28P01':
    case '28000':
    case '3D000':
      return `The database of DATABASE_URL rejected the connection: ${error.message}.`;
    case '42P01':
    case '3F000':
      return 'The database is not migrated: run "exportd migrate".';
    default:
      return error.stack ?? error.message;
  }
}
