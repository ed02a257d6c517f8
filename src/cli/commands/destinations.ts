import type { Command } from 'commander';
import { CliError } from '../cli_error.ts';
import { printer, table } from '../output.ts';
import { openService, type ServiceClient } from '../service_client.ts';
import {
  destinationFieldsOf,
  keysHelp,
  newDestinationOf,
  withDestinationOptions,
  type DestinationOptions,
} from './destination_options.ts';
import { serviceCommand, type JsonObject, type ServiceCommandOptions } from './service_command.ts';

type Options = ServiceCommandOptions & DestinationOptions;

interface TestedStep {
  readonly name: string;
  readonly result: { readonly status: string; readonly message: string | null; readonly details?: string };
}

/** `destination test`. */
export function addDestinationCommands(program: Command): void {
  const destinations = program
    .command('destination')
    .description('destinations of batch exports (uses the HTTP API)');

  const test = serviceCommand(
    destinations,
    'test',
    'test a destination step by step: writes and deletes a small object below the prefix, saves nothing',
  ).argument('[export id]', 'test the destination of this batch export, with the options as changes');
  withDestinationOptions(test)
    .addHelpText('after', `${keysHelp}\nExit codes: 0 every step passed or was skipped, 1 one failed.`)
    .action(async (id: string | undefined, options: Options) => {
      const service = openService(options);
      const steps =
        id === undefined
          ? await testDestination(service, await newDestinationOf(options, {}, process.env))
          : await testDestination(service, { config: destinationFieldsOf(options) }, id);
      printer(options)({ steps }, () => stepTable(steps));
      if (hasFailed(steps)) process.exitCode = 1;
    });
}

/** Tests a new destination, or that of a batch export. @returns its steps */
export async function testDestination(
  service: ServiceClient,
  destination: JsonObject,
  id?: string,
): Promise<readonly TestedStep[]> {
  if (id === undefined && destination.config === undefined)
    throw new CliError('Name the destination: pass the id of a batch export, or --bucket.');
  const path = id === undefined ? 'batch_exports/test/' : `batch_exports/${encodeURIComponent(id)}/test/`;
  const { body } = await service.call('POST', path, { destination });
  return body.steps as readonly TestedStep[];
}

/** Whether a step failed. */
export const hasFailed = (steps: readonly TestedStep[]): boolean =>
  steps.some(({ result }) => result.status === 'Failed');

/** Formats the steps of a test. */
export const stepTable = (steps: readonly TestedStep[]): string[] =>
  table(
    ['result', 'step', 'detail'],
    steps.map(({ name, result: { status, message, details } }) => [status, name, message ?? details]),
  );
