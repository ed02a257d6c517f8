import { Command } from 'commander';
import { addKeyCommands, addProjectCommands, addUserCommands } from './commands/accounts.ts';
import { describeInstallation } from './installation.ts';
import { addApplyCommand } from './commands/apply.ts';
import { addBackfillCommands } from './commands/backfills.ts';
import { addDashboardCommands } from './commands/dashboards.ts';
import { addDestinationCommands } from './commands/destinations.ts';
import { addDoctorCommand } from './commands/doctor.ts';
import { addExportCommands } from './commands/exports.ts';
import { addProcessCommands } from './commands/processes.ts';
import { addPropertyCommands } from './commands/properties.ts';
import { addQueryCommands } from './commands/query.ts';
import { addRunCommands } from './commands/runs.ts';
import { addSourceCommands } from './commands/source.ts';
import { addSecretCommands } from './commands/secrets.ts';
import { addStatusCommand } from './commands/status.ts';
import { addTemporalCommands } from './commands/temporal.ts';
import { addVariableCommands } from './commands/variables.ts';
import { addVerifyCommand } from './commands/verify.ts';
import { addWarehouseCommands } from './commands/warehouse.ts';
import { addWebhookCommands } from './commands/webhooks.ts';
import { version } from '../telemetry/version.ts';

/** The command line `exportd`. */
export function createProgram(): Command {
  const program = new Command('exportd')
    .description('Batch exports of events and persons from PostgreSQL to S3.')
    .version(version, '-V, --version', 'print the version of exportd')
    .option('--verbose', 'print which servers and databases the command uses')
    .showHelpAfterError('(add --help for usage)')
    .hook('preAction', (_, command) => {
      const options = command.optsWithGlobals<{ verbose?: boolean; baseUrl?: string }>();
      if (options.verbose)
        for (const line of describeInstallation(process.env, options)) process.stderr.write(`${line}\n`);
    });
  addProcessCommands(program);
  addDoctorCommand(program);
  addSourceCommands(program);
  addTemporalCommands(program);
  addQueryCommands(program);
  addUserCommands(program);
  addProjectCommands(program);
  addKeyCommands(program);
  addDashboardCommands(program);
  addVariableCommands(program);
  addSecretCommands(program);
  addPropertyCommands(program);
  addWarehouseCommands(program);
  addStatusCommand(program);
  addApplyCommand(program);
  addExportCommands(program);
  addRunCommands(program);
  addBackfillCommands(program);
  addDestinationCommands(program);
  addWebhookCommands(program);
  addVerifyCommand(program);
  return program;
}
