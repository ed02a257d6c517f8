import type { Command } from 'commander';
import type { ResultOf } from '../../client/client.ts';
import { parseId, parseJsonArray } from '../arguments.ts';
import { CliError } from '../cli_error.ts';
import { printer, table } from '../output.ts';
import {
  allOfThem,
  asWritten,
  openService as connect,
  type ServiceClient,
  serviceCommand,
  type ServiceCommandOptions,
} from '../service_client.ts';

type Options = ServiceCommandOptions;
type Action = ResultOf<'GET', '/actions/{id}'>;

const openService = (options: Options): ServiceClient =>
  connect(options, { actions: ['action', 'action list'] });

interface FieldOptions {
  readonly name?: string;
  readonly description?: string;
  readonly event?: readonly string[];
  readonly steps?: unknown[];
}

/** Adds the options of what an action consists of. */
const withFields = (command: Command): Command =>
  command
    .option('--description <text>', 'what it is for')
    .option(
      '--event <name>',
      'a step: events of this name; repeat it for others',
      (name: string, former: readonly string[] | undefined) => [...(former ?? []), name],
    )
    .option(
      '--steps <JSON>',
      'steps with URLs and property filters, such as \'[{"event": "$pageview", "url": "/buy"}]\'',
      parseJsonArray,
    );

/** The fields of the request that options set. */
const fieldsOf = ({ name, description, event, steps }: FieldOptions): Record<string, unknown> => ({
  ...(name !== undefined && { name }),
  ...(description !== undefined && { description }),
  ...((event !== undefined || steps !== undefined) && {
    steps: [...(event ?? []).map((one) => ({ event: one })), ...(steps ?? [])],
  }),
});

const describeStep = ({ event, url, url_matching, properties }: Action['steps'][number]): string =>
  [
    event ?? 'any event',
    ...(url === null ? [] : [`URL ${url_matching ?? 'contains'} ${url}`]),
    ...(properties.length === 0 ? [] : [`${properties.length} filters`]),
  ].join(', ');

const actionTable = (actions: readonly Action[]): string[] =>
  table(
    ['id', 'name', 'steps'],
    actions.map((one) => [one.id, one.name, one.steps.map(describeStep).join('; ')]),
  );

/** `action create|list|get|update|delete`. */
export function addActionCommands(program: Command): void {
  const actions = program
    .command('action')
    .description('manage actions: named events, which queries use (uses the HTTP API)');

  withFields(serviceCommand(actions, 'create', 'name events by what they are called, where and with what'))
    .requiredOption('--name <name>', 'unique in the project')
    .action(async (options: Options & FieldOptions) => {
      const body = fieldsOf(options);
      if (body.steps === undefined) throw new CliError('Pass --event or --steps.');
      const created = await openService(options).post('/actions', { body: asWritten(body) });
      printer(options)(created, () => actionTable([created]));
    });

  serviceCommand(actions, 'list', 'list the actions of the project').action(async (options: Options) => {
    const found = await openService(options).get('/actions', allOfThem);
    printer(options)(found, () => actionTable(found.results));
  });

  serviceCommand(actions, 'get', 'print an action')
    .argument('<id>', 'from "action list"', parseId)
    .action(async (id: number, options: Options) => {
      const found = await openService(options).get('/actions/{id}', { path: { id: String(id) } });
      printer(options)(found, () => actionTable([found]));
    });

  withFields(
    serviceCommand(
      actions,
      'update',
      'change an action, and with it what queries answer; omitted options stay unchanged',
    ),
  )
    .argument('<id>', 'from "action list"', parseId)
    .option('--name <name>', 'unique in the project')
    .action(async (id: number, options: Options & FieldOptions) => {
      const body = fieldsOf(options);
      if (Object.keys(body).length === 0)
        throw new CliError('Nothing to change: pass at least one option, such as --name.');
      const updated = await openService(options).patch('/actions/{id}', {
        path: { id: String(id) },
        body: asWritten(body),
      });
      printer(options)(updated, () => actionTable([updated]));
    });

  serviceCommand(actions, 'delete', 'delete an action; queries that use it then fail')
    .argument('<id>', 'from "action list"', parseId)
    .action(async (id: number, options: Options) => {
      await openService(options).delete('/actions/{id}', { path: { id: String(id) } });
      printer(options)({ id, deleted: true }, () => ['Deleted.']);
    });
}
