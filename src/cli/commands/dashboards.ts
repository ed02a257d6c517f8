import { type Command, InvalidArgumentError, Option } from 'commander';
import {
  type AccessLevel,
  accessLevels,
  type RestrictionLevel,
} from '../../http/dashboards/access_levels.ts';
import type { Collaborator, StoredDashboard } from '../../http/dashboards/dashboards.ts';
import { parseId, parseRestrictionLevel } from '../arguments.ts';
import { printer, table } from '../output.ts';
import { addListCommand, resolveUser, withAudit } from '../control_database.ts';

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
