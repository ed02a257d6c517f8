import { Option, type Command } from 'commander';
import {
  accessLevels,
  type AccessLevel,
  type RestrictionLevel,
} from '../../http/dashboards/access_levels.ts';
import {
  createDashboard,
  listStoredDashboards,
  type StoredDashboard,
} from '../../http/dashboards/dashboards.ts';
import { createDashboardBody } from '../../http/dashboards/schema.ts';
import { parseId, parseRestrictionLevel } from '../arguments.ts';
import { resolveUser } from '../resolve_user.ts';
import { CliError } from '../cli_error.ts';
import { printer, table } from '../output.ts';
import { withPool } from '../with_pool.ts';

interface CreateOptions {
  readonly project: number;
  readonly user?: number;
  readonly name: string;
  readonly description?: string;
  readonly pinned?: boolean;
  readonly tags?: string;
  readonly restrictionLevel?: RestrictionLevel;
  readonly defaultAccessLevel?: AccessLevel;
  readonly json?: boolean;
}

interface ListOptions {
  readonly project?: number;
  readonly json?: boolean;
}

/** `dashboard create|list`. */
export function addDashboardCommands(program: Command): void {
  const dashboard = program.command('dashboard').description('manage dashboards');

  dashboard
    .command('create')
    .description('create a dashboard; add collaborators with the HTTP API')
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
    .option('--json', 'print JSON')
    .action(async (options: CreateOptions) => {
      const body = bodyOf(options);
      const created = await withPool(async (pool) => {
        const creator = { project_id: options.project, user_id: await resolveUser(pool, options.user) };
        const id = await createDashboard(pool, creator, body);
        return (await listStoredDashboards(pool, options.project)).find((one) => one.id === id);
      });
      printer(options)(created, () => dashboardTable(created ? [created] : []));
    });

  dashboard
    .command('list')
    .description('list all dashboards, regardless of access')
    .option('--project <id>', 'only of this project', parseId)
    .option('--json', 'print JSON')
    .action(async (options: ListOptions) => {
      const dashboards = await withPool((pool) => listStoredDashboards(pool, options.project));
      printer(options)(dashboards, () => dashboardTable(dashboards));
    });
}

/** Validates the options with the schema of the HTTP API. @throws CliError */
function bodyOf(options: CreateOptions) {
  const parsed = createDashboardBody.safeParse({
    name: options.name,
    description: options.description,
    pinned: options.pinned,
    tags: options.tags?.split(','),
    restriction_level: options.restrictionLevel,
    default_access_level: options.defaultAccessLevel,
  });
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new CliError(`--${String(issue?.path[0])}: ${issue?.message ?? 'Invalid value.'}`);
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
