import { setFlagsFromString } from 'node:v8';
import type { Command } from 'commander';
import type { Settings } from '../../config/settings.ts';
import type { PendingChanges } from '../../migrate/migrate.ts';
import { CliError } from '../cli_error.ts';
import { counted } from '../../domain/in_words.ts';
import { printer } from '../output.ts';
import { commandSettings } from '../running_stack.ts';
import { withOwnSignals } from '../startup_signals.ts';
import { describeSwitch, rebuildOptions } from './projections.ts';

// Modules are imported when a command runs: loading the SDKs takes most of a second.

/** `up`, `demo`, `server`, `worker`, `bundle` and `migrate`. */
export function addProcessCommands(program: Command): void {
  program
    .command('up')
    .description('start the local stack: PostgreSQL, Temporal, an S3 server, the worker and the HTTP server')
    .option('--no-demo', 'start without demo data')
    .action(async (options: { demo: boolean }) => {
      const { up } = await import('../../local_stack/up.ts');
      await withOwnSignals(() => up(options));
    });

  program
    .command('demo')
    .description('fill a trial that runs: a project with rows, a bucket, an hourly export and a key')
    .requiredOption('--base-url <url>', 'of the HTTP API, as this command reaches it')
    .requiredOption('--console-url <url>', 'of the console, as a browser reaches it')
    .requiredOption(
      '--endpoint-url <url>',
      'of the S3 server, whose keys are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
    )
    .option('--region <name>', 'of the S3 server', 'us-east-1')
    .action(async (options: DemoOptions) => {
      const [{ fillTrial }, { createReport }] = await Promise.all([
        import('../../local_stack/demo/trial.ts'),
        import('../../local_stack/report.ts'),
      ]);
      const { AWS_ACCESS_KEY_ID: accessKeyId = '', AWS_SECRET_ACCESS_KEY: secretAccessKey = '' } =
        process.env;
      const { baseUrl, consoleUrl, endpointUrl: endpoint, region } = options;
      const objectStore = { endpoint, region, accessKeyId, secretAccessKey };
      const settings = await commandSettings(process.env);
      await fillTrial({ settings, baseUrl, consoleUrl, objectStore }, createReport());
    });

  program
    .command('server')
    .description('run the HTTP server')
    .action(async () => {
      const { runServer } = await import('../../http/server.ts');
      const settings = await commandSettings(process.env);
      await withOwnSignals(() => runServer(settings));
    });

  program
    .command('worker')
    .description('run a worker: workflows, exports, queries and the reconciler')
    .action(async () => {
      // The old generation of each thread would grow to three times what is in use before it is collected: 300 MB less for a
      // worker with thousands of runs.
      setFlagsFromString('--heap-growing-percent=40');
      const { runWorker } = await import('../../temporal/worker/worker_process.ts');
      const settings = await commandSettings(process.env);
      await withOwnSignals(() => runWorker(settings));
    });

  program
    .command('bundle <file>')
    .description('write the workflow bundle for EXPORTD_WORKFLOW_BUNDLE, which makes workers start faster')
    .action(async (file: string) => {
      const { writeWorkflowBundle } = await import('../../temporal/worker/bundle.ts');
      await writeWorkflowBundle(file);
    });

  program
    .command('migrate')
    .description('apply missing migrations to the control database')
    .option('--source', 'also create missing tables of the source')
    .option('--dry-run', 'print what would change in the control database, and change nothing')
    .option('--json', 'print JSON')
    .action(async (options: { source?: boolean; dryRun?: boolean; json?: boolean }) => {
      if (options.dryRun) {
        const { findPendingChanges } = await import('../../migrate/migrate.ts');
        const changes = await findPendingChanges((await commandSettings(process.env)).DATABASE_URL);
        printer(options)(changes, () => pendingChangeLines(changes));
        return;
      }
      const { migrateControl } = await import('../../migrate/migrate.ts');
      const { migrateSource } = await import('../../migrate/migrate.ts');
      const settings = await commandSettings(process.env);
      const { applied, switched } = await migrateControl(settings.DATABASE_URL, await rebuildOptions());
      if (options.source) applied.push(...(await migrateSource(settings.SOURCE_DATABASE_URL)));
      printer(options)({ applied, ...(switched && { switched }) }, () =>
        applied.length === 0 && !switched
          ? ['The database is up to date.']
          : [
              ...applied.map((migration) => `Applied ${migration}`),
              ...(switched ? [describeSwitch(switched)] : []),
            ],
      );
    });
}

interface DemoOptions {
  readonly baseUrl: string;
  readonly consoleUrl: string;
  readonly endpointUrl: string;
  readonly region: string;
}

function pendingChangeLines({ migrations, rebuilt_read_models: rebuilt }: PendingChanges): string[] {
  if (migrations.length === 0 && rebuilt.length === 0)
    return ['The database is up to date: servers and workers can be replaced one after another.'];
  return [
    ...migrations.map((name) => `Would apply ${name}`),
    ...(rebuilt.length > 0
      ? [`Would build ${rebuilt.join(', ')} from the journal beside the live read models, and switch to them`]
      : []),
    migrations.length > 0
      ? 'Stop all servers and workers of the previous version before you migrate.'
      : 'Servers and workers of the previous version may run until it switches. From then on they wait: replace them.',
  ];
}

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
      const settings = await commandSettings(process.env);
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
  const [{ createClient, describeConnection }, { registerSearchAttributes }, { describeProblem }] =
    await Promise.all([
      import('../../temporal/connections.ts'),
      import('../../temporal/search_attributes.ts'),
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
