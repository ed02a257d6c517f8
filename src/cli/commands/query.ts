import type { Command } from 'commander';
import type { Settings } from '../../config/settings.ts';
import type { Pool } from '../../journal/database.ts';
import type { QueryRole } from '../../queries/query_role/query_role.ts';
import type { QueryRoleSetup, QueryRoleSetupOptions } from '../../queries/query_role/set_up_query_role.ts';
import { parseId } from '../arguments.ts';
import { CliError } from '../cli_error.ts';
import { counted } from '../../domain/in_words.ts';
import { printer } from '../output.ts';
import { commandSettings } from '../running_stack.ts';
import { addSavedQueryCommands } from './saved_queries.ts';
import { withAudit, withPool } from '../control_database.ts';

interface SetupOptions {
  readonly print?: boolean;
  /** By default. */
  readonly closeCatalog: boolean;
  readonly json?: boolean;
}

interface ExplainOptions {
  readonly project: number;
  readonly json?: boolean;
}

/** `query setup|explain`, and those of saved queries. */
export function addQueryCommands(program: Command): void {
  const query = program.command('query').description('queries of the source');
  addSavedQueryCommands(query);

  query
    .command('setup')
    .description(
      'create or update the role that queries run under (EXPORTD_QUERY_DATABASE_URL), with the rights of SOURCE_DATABASE_URL',
    )
    .option('--print', 'print the SQL, which contains secrets, and change nothing')
    .option(
      '--no-close-catalog',
      'leave PUBLIC the catalogue and functions; otherwise a superuser takes them away, and other roles keep them by exportd_other_roles',
    )
    .option('--json', 'print JSON')
    .action(async (options: SetupOptions) => {
      const settings = await commandSettings(process.env);
      const role = await roleOf(settings);
      const setup = { closeCatalog: options.closeCatalog };
      if (options.print === true) {
        const { sql } = await prepare(settings, role, setup);
        printer(options)({ role: role.name, sql }, () => [sql]);
        return;
      }
      const { relations, loaders } = await apply(settings, role, setup);
      const names = relations.map(({ quoted }) => quoted);
      printer(options)({ role: role.name, relations: names, loaders }, () => [
        `Role ${role.name} reads ${counted(names.length, 'relation')}: ${names.join(', ')}.`,
        ...(loaders.length > 0
          ? [
              `Row security stops COPY FROM by ${loaders.join(', ')}: make them members of the tables' owner, or run "alter role … bypassrls".`,
            ]
          : []),
        'Run this command again after a relation was added or a key was rotated; "exportd doctor" checks the role.',
      ]);
    });

  query
    .command('explain')
    .description('print the typed tree of a query and its SQL, without running it')
    .argument('<query>', 'query in the SQL dialect')
    .option('--project <id>', 'id of the project', parseId, 1)
    .option('--json', 'print JSON')
    .action(async (text: string, options: ExplainOptions) => {
      const { explainForProject } = await import('../../queries/query_source.ts');
      const { explainedLines } = await import('@exportd/dialect/compile/compile_query');
      const settings = await commandSettings(process.env);
      const { tree, statement } = await withPool((pool) =>
        explainForProject(pool, settings, options.project, text),
      ).catch((error: unknown) => {
        throw error instanceof Error && error.name === 'DialectError' ? new CliError(error.message) : error;
      });
      const { sql, parameters } = statement;
      printer(options)({ tree, sql, parameters }, () => [
        ...explainedLines(tree),
        '',
        sql,
        ...parameters.map((value, index) => `$${index + 1} = ${value}`),
      ]);
    });
}

async function roleOf(settings: Settings): Promise<QueryRole> {
  const { queryRoleOf } = await import('../../queries/query_role/query_role.ts');
  const role = queryRoleOf(settings);
  if (!role)
    throw new CliError(
      'EXPORTD_QUERY_DATABASE_URL is not set: set it to the URL of the source with a new role and its password, such as postgresql://exportd_query:password@host/database.',
    );
  return role;
}

async function prepare(
  settings: Settings,
  role: QueryRole,
  options: QueryRoleSetupOptions,
): Promise<QueryRoleSetup> {
  const { prepareQueryRoleSetup } = await import('../../queries/query_role/set_up_query_role.ts');
  return withPool((pool) => prepareQueryRoleSetup(pool, settings, role, options));
}

const insufficientPrivilege = '42501';

async function apply(
  settings: Settings,
  role: QueryRole,
  options: QueryRoleSetupOptions,
): Promise<QueryRoleSetup> {
  const { setUpQueryRole } = await import('../../queries/query_role/set_up_query_role.ts');
  try {
    return await withAudit({ action: 'query_role.set_up' }, (pool) =>
      setUpQueryRole(pool, settings, role, options),
    );
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === insufficientPrivilege)
      throw new CliError(
        `The role of SOURCE_DATABASE_URL may not set up another one (${error.message}). Set SOURCE_DATABASE_URL to a superuser for this command, or run the SQL of "exportd query setup --print" as one.`,
      );
    throw error;
  }
}

/** The role that queries read the source with, for `exportd doctor`. @throws Error if it may do more, or less, than it should */
export async function describeQueryRole(pool: Pool, source: Pool, settings: Settings): Promise<string> {
  const [{ checkQueryRole }, { listWarehouseTables }] = await Promise.all([
    import('../../queries/query_role/check_query_role.ts'),
    import('../../queries/warehouse_tables.ts'),
  ]);
  const found = await checkQueryRole(source, settings, await listWarehouseTables(pool));
  if (!found)
    return 'none: queries run under the role of the source. Set EXPORTD_QUERY_DATABASE_URL and run "exportd query setup"';
  if (found.problems.length > 0) throw new Error(found.problems.join('; '));
  return [
    `${found.role} reads ${counted(found.relations, 'relation')}`,
    found.isCatalogClosed
      ? 'cannot read the catalogue'
      : 'can read the catalogue: to close it, run "exportd query setup" as a superuser',
    ...(found.limitsTemporaryFiles
      ? []
      : ['has no limit on temporary files: run "exportd query setup" as a superuser']),
  ].join(', ');
}
