import { commandSettings, databaseNameOf, serverUrlOf } from './running_stack.ts';

/** What a command works on, for `--verbose`: a line for each server. */
export function describeInstallation(
  environment: Readonly<Record<string, string | undefined>>,
  options: { readonly baseUrl?: string },
): string[] {
  const server = serverUrlOf(environment, options.baseUrl) ?? 'none';
  return [`server: ${server}`, ...describeServers(environment)];
}

function describeServers(environment: Readonly<Record<string, string | undefined>>): string[] {
  try {
    const settings = commandSettings(environment);
    return [
      `control database: ${databaseNameOf(settings.DATABASE_URL)}`,
      `source: ${databaseNameOf(settings.SOURCE_DATABASE_URL)}`,
      `Temporal: ${settings.TEMPORAL_ADDRESS}, namespace ${settings.TEMPORAL_NAMESPACE}`,
    ];
  } catch (error) {
    return [`control database: none (${error instanceof Error ? error.message : String(error)})`];
  }
}
