import { SecretUnreadable } from '../config/key_ring.ts';
import { SettingsError } from '../config/settings.ts';
import { DestinationFault } from '../destination/destination.ts';
import { CommandRefused } from '../domain/errors.ts';
import { LaunchError } from '../local_stack/launch_error.ts';
import { AccountRefused } from '../http/accounts.ts';
import { PropertyRefused } from '../queries/property_definitions.ts';
import { VariableRefused } from '../queries/variables.ts';
import { WarehouseRefused } from '../queries/warehouse_refused.ts';
import { BadRelationName, RelationNotFound } from '../source/relations.ts';
import { CannotVerify } from '../verify/report.ts';
import { CliError } from './cli_error.ts';

const forPeople = [
  CliError,
  SettingsError,
  AccountRefused,
  VariableRefused,
  PropertyRefused,
  WarehouseRefused,
  LaunchError,
  CannotVerify,
  CommandRefused,
  DestinationFault,
  SecretUnreadable,
  BadRelationName,
  RelationNotFound,
];

/** One clear sentence about what went wrong; a fault of the program keeps its stack. */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (forPeople.some((kind) => error instanceof kind)) return error.message;
  const code = 'code' in error ? String(error.code) : '';
  switch (code) {
    case 'ECONNREFUSED':
    case 'ENOTFOUND':
    case 'ETIMEDOUT':
      return 'The database of DATABASE_URL does not answer.';
    case '28P01':
    case '28000':
    case '3D000':
      return `The database of DATABASE_URL refuses: ${error.message}.`;
    case '42P01':
    case '3F000':
      return 'The database is not migrated: run "exportd migrate".';
    default:
      return error.stack ?? error.message;
  }
}
