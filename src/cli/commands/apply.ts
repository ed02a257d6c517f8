import type { Command } from 'commander';
import type { BatchExport } from '../../client/client.ts';
import type { PlannedExport, PlannedRequest } from '../apply/plan.ts';
import { CliError } from '../cli_error.ts';
import { counted } from '../../domain/in_words.ts';
import { confirm, printer, yesOption } from '../output.ts';
import {
  asWritten,
  type JsonObject,
  openService,
  type ServiceClient,
  serviceCommand,
  type ServiceCommandOptions,
} from '../service_client.ts';

interface ApplyOptions extends ServiceCommandOptions {
  readonly file: string;
  readonly dryRun?: boolean;
  readonly prune?: boolean;
  readonly yes?: boolean;
  readonly env?: readonly string[];
}

interface GetOptions extends ServiceCommandOptions {
  readonly output: string;
}

/** `apply`: gives the project the exports of a file. */
export function addApplyCommand(program: Command): void {
  serviceCommand(
    program,
    'apply',
    'create and update the batch exports that a YAML file declares (uses the HTTP API)',
  )
    .addHelpText(
      'after',
      '\nA file declares batch exports, and nothing else of a project. "exportd export get" writes one.',
    )
    .requiredOption('-f, --file <path>', 'the file; - reads stdin')
    .option('--dry-run', 'print the plan and change nothing')
    .option('--prune', 'delete the exports of the project that are not in the file')
    .option(...yesOption)
    .option(
      '--env <name>',
      'an environment variable that !env may name, repeatable; by default all',
      (name: string, names: readonly string[] | undefined) => [...(names ?? []), name],
    )
    .action(async (options: ApplyOptions) => {
      const [{ readExportsFile }, { makePlan }, { planLines }] = await Promise.all([
        import('../apply/plan.ts'),
        import('../apply/plan.ts'),
        import('../apply/plan.ts'),
      ]);
      const declared = readExportsFile(options.file, {
        environment: process.env,
        allowedVariables: options.env,
      });
      const prune = options.prune === true;
      if (prune && declared.length === 0)
        throw new CliError(
          'The file declares no exports, so --prune would delete all. Delete them one by one.',
        );
      const service = openService(options);
      const requests = await makePlan(service, declared, { prune });
      const plan = requests.map(({ planned }) => planned);
      const print = printer(options);
      if (options.dryRun === true) {
        print({ applied: false, plan }, () => planLines(plan));
        return;
      }
      // Before the requests: if one fails, the plan shows what the ones before it did.
      if (options.json !== true) print({}, () => planLines(plan));
      const deleted = plan.filter(({ action }) => action === 'delete').length;
      if (deleted > 0) await confirm(`Delete ${counted(deleted, 'batch export')}?`, options);
      for (const request of requests) await carryOut(service, request);
      const changed = plan.some(({ action }) => action !== 'unchanged' && action !== 'undeclared');
      if (options.json === true) print({ applied: true, plan }, () => []);
      else if (changed) print({}, () => ['Applied.']);
    });
}

/** Sends the request of a planned export. An unchanged one needs none. */
async function carryOut(service: ServiceClient, { planned, body }: PlannedRequest): Promise<void> {
  try {
    await sendRequest(service, planned, body);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    throw new CliError(`${planned.name}: ${error.message} Run the command again to continue.`);
  }
}

async function sendRequest(
  service: ServiceClient,
  { action, id }: PlannedExport,
  fields: JsonObject = {},
): Promise<void> {
  const path = { id: id ?? '' };
  switch (action) {
    case 'create':
      await service.post('/batch_exports', { body: asWritten(fields) });
      return;
    case 'update':
      await service.patch('/batch_exports/{id}', { path, body: asWritten(fields) });
      return;
    case 'delete':
      await service.delete('/batch_exports/{id}', { path });
      return;
    default:
      return;
  }
}

/** `export get`: writes exports as a file for `apply`. */
export function addGetCommand(exports: Command): void {
  serviceCommand(exports, 'get', 'write batch exports as a file for "exportd apply"')
    .argument('[id...]', 'by default all of the project')
    .option('-o, --output <format>', 'yaml or json', 'yaml')
    .action(async (ids: string[], options: GetOptions) => {
      const format = options.json === true ? 'json' : options.output;
      if (format !== 'yaml' && format !== 'json')
        throw new CliError(`Unknown format ${format}. Write yaml or json.`);
      const { exportsDocument, toDeclaration } = await import('../apply/plan.ts');
      const service = openService(options);
      const found = ids.length > 0 ? await readNamed(service, ids) : (await service.exports()).reverse();
      const declarations = { exports: found.map(toDeclaration) };
      printer({ json: format === 'json' })(declarations, () => [exportsDocument(found).trimEnd()]);
    });
}

const readNamed = (service: ServiceClient, ids: readonly string[]): Promise<BatchExport[]> =>
  Promise.all(ids.map((id) => service.get('/batch_exports/{id}', { path: { id } })));
