/** A command failed. The message is one sentence for the user. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly exitCode: number;

  constructor(message: string, exitCode = 1, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** Errors whose message is for the user, by name: to load their modules takes a command a second. */
const userErrors = new Set([
  'CliError',
  'SettingsError',
  'InvalidAccount',
  'InvalidVariable',
  'InvalidProperty',
  'InvalidWarehouseTable',
  'LaunchError',
  'CannotVerify',
  'CannotRebuild',
  'CannotSwitch',
  'ReadModelsDiffer',
  'CommandRejected',
  'DestinationError',
  'SecretUnreadable',
  'InvalidRelationName',
  'InvalidMapping',
  'RelationNotFound',
]);

/** The message of an expected error, the stack trace of any other. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (userErrors.has(error.name)) return error.message;
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
