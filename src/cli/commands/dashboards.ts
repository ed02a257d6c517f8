import { Option, type Command } from 'commander';
import {
  accessLevels,
  type AccessLevel,
  type RestrictionLevel,
} from '../../http/dashboards/access_levels.ts';
import { createDashboard } from '../../http/dashboards/create_dashboard.ts';
import { listStoredDashboards, type StoredDashboard } from '../../http/reading/dashboards.ts';
import { createDashboardBody } from '../../http/schemas/dashboard.ts';
import { parseId, parseRestrictionLevel } from '../arguments.ts';
import { chosenUser } from '../chosen_user.ts';
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
  const dashboard = program.command('dashboard').description('dashboards of a project');

  dashboard
    .command('create')
    .description('make a dashboard; collaborators are named over HTTP')
    .requiredOption('--project <id>', 'the project that it belongs to', parseId)
    .option('--user <id>', 'its creator; the first user when it is not given', parseId)
    .requiredOption('--name <name>')
    .option('--description <text>')
    .option('--pinned', 'show it before those that are not')
    .option('--tags <list>', 'with commas between them')
    .option(
      '--restriction-level <number>',
      '21: everyone in the project may edit it; 37: only collaborators (default: 21)',
      parseRestrictionLevel,
    )
    .addOption(
      new Option(
        '--default-access-level <level>',
        'of users who are no collaborators (default: editor)',
      ).choices(accessLevels),
    )
    .option('--json', 'print one JSON document')
    .action(async (options: CreateOptions) => {
      const body = bodyOf(options);
      const created = await withPool(async (pool) => {
        const creator = { project_id: options.project, user_id: await chosenUser(pool, options.user) };
        const id = await createDashboard(pool, creator, body);
        return (await listStoredDashboards(pool, options.project)).find((one) => one.id === id);
      });
      printer(options)(created, () => dashboardTable(created ? [created] : []));
    });

  dashboard
    .command('list')
    .description('show every dashboard, whoever may see it')
    .option('--project <id>', 'only those of this project', parseId)
    .option('--json', 'print one JSON document')
    .action(async (options: ListOptions) => {
      const dashboards = await withPool((pool) => listStoredDashboards(pool, options.project));
      printer(options)(dashboards, () => dashboardTable(dashboards));
    });
}

/** What the options describe, by the rules that bodies of the service follow. @throws CliError */
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
  throw new CliError(`--${String(issue?.path[0])}: ${issue?.message ?? 'It is not valid.'}`);
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
