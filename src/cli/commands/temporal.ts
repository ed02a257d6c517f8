import type { Command } from 'commander';
import type { Settings } from '../../config/settings.ts';
import { CliError } from '../cli_error.ts';
import { counted, printer } from '../output.ts';
import { commandSettings } from '../running_stack.ts';

interface SetupOptions {
  readonly print?: boolean;
  readonly json?: boolean;
}

/** `temporal setup`: prepares the Temporal namespace of a deployment. */
export function addTemporalCommands(program: Command): void {
  program
    .command('temporal')
    .description('Temporal, on which exportd runs')
    .command('setup')
    .description(
      'register the search attributes of exportd in the namespace, with the permissions of an operator',
    )
    .option('--print', 'print what to register and which dynamic config is useful, and change nothing')
    .option('--json', 'print JSON')
    .action(async (options: SetupOptions) => {
      const settings = commandSettings(process.env);
      const { setupInstructions } = await import('../../temporal/search_attributes.ts');
      const instructions = setupInstructions(settings);
      if (options.print === true) {
        printer(options)(instructions, () => [
          `Search attributes of namespace ${instructions.namespace}, in a Temporal cluster:`,
          '',
          instructions.cluster_command,
          '',
          'In Temporal Cloud:',
          '',
          instructions.cloud_command,
          '',
          'Useful dynamic config of a cluster; exportd works without it, only less evenly:',
          '',
          instructions.dynamic_config,
        ]);
        return;
      }
      const registered = await register(settings);
      printer(options)({ namespace: instructions.namespace, registered }, () => [
        registered.length === 0
          ? `Namespace ${instructions.namespace} has all search attributes of exportd.`
          : `Registered ${counted(registered.length, 'search attribute')} in namespace ${instructions.namespace}: ${registered.join(', ')}.`,
        'For useful dynamic config, run "exportd temporal setup --print".',
      ]);
    });
}

/** Registers the missing search attributes and returns their names. */
async function register(settings: Settings): Promise<string[]> {
  const [{ createClient }, { registerSearchAttributes }, { describeConnection }, { describeProblem }] =
    await Promise.all([
      import('../../temporal/connections.ts'),
      import('../../temporal/search_attributes.ts'),
      import('../../temporal/connections.ts'),
      import('../../temporal/problems.ts'),
    ]);
  const temporal = await createClient(settings);
  try {
    return await registerSearchAttributes(temporal, AbortSignal.timeout(registrationTimeoutMs));
  } catch (error) {
    const { message } = await describeProblem(error, settings);
    throw new CliError(
      `${describeConnection(settings)}: ${message} Registering search attributes needs the permissions of an operator; "exportd temporal setup --print" shows what to register.`,
    );
  } finally {
    await temporal.close();
  }
}

/** Longer than a server takes to make new attributes usable. */
const registrationTimeoutMs = 90_000;
