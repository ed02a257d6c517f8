import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { ApiError, type ResultOf } from '../../client/client.ts';
import { stringifyJson } from '../../client/exact_numbers.ts';
import { toResultTable } from '../../client/result_table.ts';
import { CliError } from '../cli_error.ts';
import { confirm, printer, printList, table, yesOption } from '../output.ts';
import {
  allOfThem,
  asWritten,
  type JsonObject,
  openService as connect,
  type ServiceClient,
  serviceCommand,
  type ServiceCommandOptions,
} from '../service_client.ts';

type Options = ServiceCommandOptions;
type SavedQuery = ResultOf<'GET', '/saved_queries/{id}'>;

const openService = (options: Options): ServiceClient =>
  connect(options, { saved_queries: ['saved query', 'query list'] });

const findQuery = async (service: ServiceClient, name: string): Promise<SavedQuery | undefined> =>
  (await service.get('/saved_queries', { query: { name } })).results[0];

/** @throws CliError */
async function requireQuery(service: ServiceClient, name: string): Promise<SavedQuery> {
  const found = await findQuery(service, name);
  if (!found)
    throw new CliError(`The project has no saved query "${name}". "exportd query list" lists what there is.`);
  return found;
}

/** A query as a person wrote it: JSON with a kind, else the text of a query in the SQL dialect. */
function parseQuery(text: string): JsonObject {
  if (!text.trimStart().startsWith('{')) return { kind: 'DialectQuery', query: text };
  try {
    return JSON.parse(text) as JsonObject;
  } catch (error) {
    throw new CliError(
      `The query is no valid JSON: ${error instanceof Error ? error.message : String(error)}.`,
    );
  }
}

const savedTable = (queries: readonly SavedQuery[]): string[] =>
  table(
    ['name', 'kind', 'version', 'changed', 'by'],
    queries.map((one) => [one.name, one.query.kind, one.version, one.last_updated_at, one.last_updated_by]),
  );

interface SaveOptions extends Options {
  readonly file?: string;
  readonly overwrite?: boolean;
}

/** `query run|save|list|rename|delete`. */
export function addSavedQueryCommands(query: Command): void {
  serviceCommand(query, 'run', 'run a saved query and print its rows')
    .argument('<name>', 'name of the saved query')
    .action(async (name: string, options: Options) => {
      const service = openService(options);
      const saved = await requireQuery(service, name);
      const response = await service.post('/query', {
        body: asWritten({ query: saved.query, refresh: 'force_blocking' }),
      });
      if (options.json) {
        process.stdout.write(`${stringifyJson(response)}\n`);
        return;
      }
      const { columns, results } = toResultTable(response);
      const cells = results.map((row) =>
        row.map((value) =>
          typeof value === 'string' || value === null || value === undefined ? value : stringifyJson(value),
        ),
      );
      printer(options)(response, () => (cells.length === 0 ? ['No rows.'] : table(columns, cells)));
      if (response.hasMore) process.stderr.write('More rows were cut: a LIMIT returns up to 10,000.\n');
      if (response.notice) process.stderr.write(`${response.notice}\n`);
    });

  serviceCommand(query, 'save', 'save a query by name; `exportd query run` and the console run it')
    .argument('<name>', 'name of the query in the project')
    .argument('[query]', 'query in the SQL dialect, or JSON with its kind')
    .option('--file <path>', 'read the query from a file; - is standard input')
    .option('--overwrite', 'replace the query that has this name')
    .action(async (name: string, text: string | undefined, options: SaveOptions) => {
      if ((text === undefined) === (options.file === undefined))
        throw new CliError('Pass the query, or --file with the path of a file that has it.');
      const given = text ?? readFileSync(options.file === '-' ? 0 : (options.file ?? ''), 'utf8');
      const service = openService(options);
      const body = asWritten({ name, query: parseQuery(given) });
      const former = options.overwrite ? await findQuery(service, name) : undefined;
      const saved = former
        ? await service.patch('/saved_queries/{id}', {
            path: { id: former.id },
            body: asWritten({ query: parseQuery(given), version: former.version }),
          })
        : await service.post('/saved_queries', { body }).catch((error: unknown) => {
            if (error instanceof CliError && error.cause instanceof ApiError && error.cause.status === 409)
              throw new CliError(`The project has a query "${name}". Pass --overwrite to replace it.`);
            throw error;
          });
      printer(options)(saved, () => savedTable([saved]));
    });

  serviceCommand(query, 'list', 'list the saved queries of the project').action(async (options: Options) => {
    const { results } = await openService(options).get('/saved_queries', allOfThem);
    printList(options)(results, savedTable);
  });

  serviceCommand(query, 'rename', 'rename a saved query; links to it stay valid')
    .argument('<name>', 'its name')
    .argument('<new-name>', 'its new name')
    .action(async (name: string, newName: string, options: Options) => {
      const service = openService(options);
      const { id, version } = await requireQuery(service, name);
      const saved = await service.patch('/saved_queries/{id}', {
        path: { id },
        body: { name: newName, version },
      });
      printer(options)(saved, () => savedTable([saved]));
    });

  serviceCommand(query, 'delete', 'delete a saved query')
    .argument('<name>', 'its name')
    .option(...yesOption)
    .action(async (name: string, options: Options & { readonly yes?: boolean }) => {
      const service = openService(options);
      const { id } = await requireQuery(service, name);
      await confirm(`Delete the saved query "${name}"?`, options);
      await service.command('DELETE', '/saved_queries/{id}', { path: { id } });
      printer(options)({ deleted: name }, () => ['Deleted.']);
    });
}
