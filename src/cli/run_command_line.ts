import { Command } from 'commander';
import { version } from '../telemetry/version.ts';
import { CliError, describeError } from './cli_error.ts';
import { addActionCommands } from './commands/actions.ts';
import { addApplyCommand } from './commands/apply.ts';
import { addAuditCommand } from './commands/audit.ts';
import { addDashboardCommands } from './commands/dashboards.ts';
import { addDestinationCommands } from './commands/destinations.ts';
import { addDoctorCommand } from './commands/doctor.ts';
import { addExportCommands, addWhyCommand } from './commands/exports.ts';
import { addImportCommands } from './commands/import.ts';
import { addInstallationCommands } from './commands/installation.ts';
import { addProcessCommands, addTemporalCommands } from './commands/processes.ts';
import { addProjectionCommands } from './commands/projections.ts';
import { addPropertyCommands, addWarehouseCommands } from './commands/properties.ts';
import { addQueryCommands } from './commands/query.ts';
import { addRunCommands } from './commands/runs.ts';
import { addSecretCommands } from './commands/secrets.ts';
import { addSourceCommands } from './commands/source.ts';
import { addVariableCommands } from './commands/variables.ts';
import { addVerifyCommand } from './commands/verify.ts';
import { addTableCommands } from './commands/tables.ts';
import { addWebhookCommands } from './commands/webhooks.ts';
import { stdoutFlushed } from './output.ts';
import { commandSettings, databaseNameOf, serverUrlOf } from './running_stack.ts';
import { addKeyCommands } from './commands/keys.ts';
import { addProjectCommands } from './commands/projects.ts';
import { addUserCommands } from './commands/users.ts';
import { addBackfillCommands } from './commands/backfills.ts';
import { addStatusCommand } from './commands/status.ts';

/** What a command works on, for `--verbose`: a line for each server. */
async function describeInstallation(
  environment: Readonly<Record<string, string | undefined>>,
  options: { readonly baseUrl?: string },
): Promise<string[]> {
  const server = serverUrlOf(environment, options.baseUrl) ?? 'none';
  return [`server: ${server}`, ...(await describeServers(environment))];
}

async function describeServers(environment: Readonly<Record<string, string | undefined>>): Promise<string[]> {
  try {
    const settings = await commandSettings(environment);
    return [
      `control database: ${databaseNameOf(settings.DATABASE_URL)}`,
      `source: ${databaseNameOf(settings.SOURCE_DATABASE_URL)}`,
      `Temporal: ${settings.TEMPORAL_ADDRESS}, namespace ${settings.TEMPORAL_NAMESPACE}`,
    ];
  } catch (error) {
    return [`control database: none (${error instanceof Error ? error.message : String(error)})`];
  }
}

/** The command line `exportd`. */
export function createProgram(): Command {
  const program = new Command('exportd')
    .description('Batch exports of events and persons from PostgreSQL to S3.')
    .version(version, '-V, --version', 'print the version of exportd')
    .option('--verbose', 'print which servers and databases the command uses')
    .showHelpAfterError('(add --help for usage)')
    .hook('preAction', async (_, command) => {
      const options = command.optsWithGlobals<{ verbose?: boolean; baseUrl?: string }>();
      if (options.verbose)
        for (const line of await describeInstallation(process.env, options))
          process.stderr.write(`${line}\n`);
    });
  addProcessCommands(program);
  addProjectionCommands(program);
  addDoctorCommand(program);
  addSourceCommands(program);
  addTemporalCommands(program);
  addQueryCommands(program);
  addUserCommands(program);
  addProjectCommands(program);
  addKeyCommands(program);
  addAuditCommand(program);
  addDashboardCommands(program);
  addVariableCommands(program);
  addSecretCommands(program);
  addActionCommands(program);
  addPropertyCommands(program);
  addWarehouseCommands(program);
  addStatusCommand(program);
  addWhyCommand(program);
  addTableCommands(program);
  addApplyCommand(program);
  addImportCommands(program);
  addExportCommands(program);
  addRunCommands(program);
  addBackfillCommands(program);
  addDestinationCommands(program);
  addWebhookCommands(program);
  addVerifyCommand(program);
  addInstallationCommands(program);
  return program;
}

/** Runs the command of the process's arguments, and ends the process. */
export async function runCommandLine(): Promise<never> {
  try {
    await createProgram().parseAsync();
    await stdoutFlushed();
    // Without an argument: a command may have set the exit code.
    return process.exit();
  } catch (error) {
    process.stderr.write(`exportd: ${describeError(error)}\n`);
    return process.exit(error instanceof CliError ? error.exitCode : 1);
  }
}
