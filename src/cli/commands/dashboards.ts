import { type Command, InvalidArgumentError, Option } from 'commander';
import type { JsonValue } from '../../domain/event.ts';
import {
  type AccessLevel,
  accessLevels,
  type RestrictionLevel,
} from '../../http/dashboards/access_levels.ts';
import type { Collaborator, StoredDashboard } from '../../http/dashboards/dashboards.ts';
import type { Variable } from '../../queries/prepared_query.ts';
import { parseId, parseRestrictionLevel } from '../arguments.ts';
import { CliError } from '../cli_error.ts';
import { printer, table } from '../output.ts';
import { addListCommand, resolveUser, withAudit } from '../running_stack.ts';

interface CreateOptions {
  readonly project: number;
  readonly user?: number;
  readonly name: string;
  readonly description?: string;
  readonly pinned?: boolean;
  readonly tags?: string;
  readonly restrictionLevel?: RestrictionLevel;
  readonly defaultAccessLevel?: AccessLevel;
  readonly collaborator: readonly Collaborator[];
  readonly json?: boolean;
}

/** `dashboard create|list`. */
export function addDashboardCommands(program: Command): void {
  const dashboard = program.command('dashboard').description('create dashboards, which the API lists');

  dashboard
    .command('create')
    .description('create a dashboard')
    .requiredOption('--project <id>', 'id of its project', parseId)
    .option('--user <id>', 'creator; by default the first user', parseId)
    .requiredOption('--name <name>')
    .option('--description <text>')
    .option('--pinned', 'list it before dashboards that are not pinned')
    .option('--tags <list>', 'separated by commas')
    .option(
      '--restriction-level <number>',
      '21: everyone in the project can edit it; 37: only collaborators (default: 21)',
      parseRestrictionLevel,
    )
    .addOption(
      new Option(
        '--default-access-level <level>',
        'access of users who are not collaborators (default: editor)',
      ).choices(accessLevels),
    )
    .option(
      '--collaborator <user>=<level>',
      'access of one user, such as 7=editor; repeat it for others',
      (text: string, former: readonly Collaborator[]) => [...former, parseCollaborator(text)],
      [],
    )
    .option('--json', 'print JSON')
    .action(async (options: CreateOptions) => {
      const { project, user } = options;
      const { createDashboard, listStoredDashboards } = await import('../../http/dashboards/dashboards.ts');
      const change = { action: 'dashboard.create', team_id: project };
      const created = await withAudit(change, async (pool) => {
        const creator = { project_id: project, user_id: await resolveUser(pool, user) };
        const id = await createDashboard(pool, creator, {
          name: options.name,
          description: options.description,
          pinned: options.pinned,
          tags: options.tags?.split(','),
          restriction_level: options.restrictionLevel,
          default_access_level: options.defaultAccessLevel,
          collaborators: options.collaborator,
        });
        return (await listStoredDashboards(pool, project)).find((one) => one.id === id);
      });
      printer(options)(created, () => dashboardTable(created ? [created] : []));
    });

  addListCommand(
    dashboard,
    'list all dashboards, regardless of access',
    async (pool, project) =>
      (await import('../../http/dashboards/dashboards.ts')).listStoredDashboards(pool, project),
    dashboardTable,
  );
}

/** Parses `7=editor`. */
function parseCollaborator(text: string): Collaborator {
  const [user = '', given] = text.split('=', 2);
  const access_level = accessLevels.find((level) => level === given);
  if (access_level === undefined)
    throw new InvalidArgumentError(`It must be <user id>=<level>, with one of: ${accessLevels.join(', ')}.`);
  return { user_id: parseId(user), access_level };
}

const dashboardTable = (dashboards: readonly StoredDashboard[]): string[] =>
  table(
    ['id', 'project', 'name', 'pinned', 'tags', 'restriction', 'creator'],
    dashboards.map((one) => [
      one.id,
      one.project_id,
      one.name,
      one.pinned,
      one.tags.join(','),
      one.restriction_level,
      one.created_by?.email,
    ]),
  );

const types = ['String', 'Number', 'Boolean', 'List', 'Date'] as const;

interface SetOptions {
  readonly project: number;
  readonly codeName: string;
  readonly default: string;
  readonly name?: string;
  readonly type?: (typeof types)[number];
  readonly json?: boolean;
}

/** `variable set|list`. */
export function addVariableCommands(program: Command): void {
  const variable = program.command('variable').description('manage query variables');

  variable
    .command('set')
    .description('create a variable or change its default; queries read it as {variables.<code name>}')
    .requiredOption('--project <id>', 'id of its project', parseId)
    .requiredOption('--code-name <name>', 'letters, digits and _')
    .requiredOption('--default <value>', 'value when a request does not override it')
    .option('--name <name>', 'display name; by default the code name')
    .addOption(
      new Option(
        '--type <type>',
        'type of the default value (default: JSON if it is valid JSON, otherwise text)',
      ).choices(types),
    )
    .option('--json', 'print JSON')
    .action(async (options: SetOptions) => {
      const { project: team_id, codeName: code_name, name } = options;
      const default_value = valueOf(options.default, options.type);
      const change = { action: 'variable.set', team_id, object: `variables/${code_name}` };
      const { setVariable } = await import('../../queries/prepared_query.ts');
      const stored = await withAudit(change, (pool) =>
        setVariable(pool, { team_id, code_name, default_value, name }),
      );
      printer(options)(stored, () => variableTable([stored]));
    });

  addListCommand(
    variable,
    'list all variables',
    async (pool, project) => (await import('../../queries/prepared_query.ts')).listVariables(pool, project),
    variableTable,
  );
}

/** Parses a default value by its type. @throws CliError */
function valueOf(text: string, type: SetOptions['type']): JsonValue {
  const json = jsonOf(text);
  const isValid: Record<(typeof types)[number], boolean> = {
    String: true,
    Number: typeof json === 'number',
    Boolean: typeof json === 'boolean',
    List: Array.isArray(json),
    Date: /^\d{4}-\d{2}-\d{2}/.test(text) && !Number.isNaN(Date.parse(text)),
  };
  if (type !== undefined && !isValid[type])
    throw new CliError(`--default: "${text}" is not a valid ${type}.`);
  return type === 'String' || type === 'Date' || json === undefined ? text : json;
}

function jsonOf(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

const variableTable = (variables: readonly Variable[]): string[] =>
  table(
    ['id', 'project', 'code name', 'name', 'default'],
    variables.map((one) => [one.id, one.team_id, one.code_name, one.name, one.default_value]),
  );
