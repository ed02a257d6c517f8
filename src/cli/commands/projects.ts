import { type Command, Option } from 'commander';
import type { Project } from '../../http/accounts/projects.ts';
import type { RestrictionLevel } from '../../http/dashboards/access_levels.ts';
import { weekStartDays } from '../../http/projects/week_start_days.ts';
import { fieldChanges } from '../../journal/audit.ts';
import {
  keyCommand,
  type KeyOptions,
  onlyDatabase,
  onService,
  optional,
  things,
  usesService,
  withChanges,
} from '../account_command.ts';
import { parseId, parseJsonArray, parseRestrictionLevel } from '../arguments.ts';
import { CliError } from '../cli_error.ts';
import { printer, printList, table } from '../output.ts';
import { allOfThem, openService } from '../service_client.ts';
import { withAudit, withPool } from '../control_database.ts';

/** Loaded when a command needs the database: it loads pg and zod. */
const loadProjects = () => import('../../http/accounts/projects.ts');

interface ProjectOptions extends KeyOptions {
  readonly id?: number;
  readonly name: string;
  readonly timezone: string;
  readonly weekStartDay: Project['week_start_day'];
  readonly testAccountFilters?: unknown[];
  readonly dashboardRestrictionLevel?: RestrictionLevel;
}

/** `project create|list|rename`. */
export function addProjectCommands(program: Command): void {
  const project = program
    .command('project')
    .description(
      'manage projects, which own events and exports: with the HTTP API and a key that has installation:admin, or with the database if there is no key',
    );

  keyCommand(project, 'create', 'create a project; an API key that creates it gets access to it', null)
    .requiredOption('--name <name>')
    .option('--id <number>', 'the team_id of its rows; by default the next free one', parseId)
    .option('--timezone <name>', 'an IANA time zone', 'UTC')
    .addOption(
      new Option('--week-start-day <day>', 'first day of the week').choices(weekStartDays).default('sunday'),
    )
    .option('--test-account-filters <JSON>', `a JSON array; ${onlyDatabase}`, parseJsonArray)
    .option(
      '--dashboard-restriction-level <number>',
      `21: everyone in the project can edit dashboards; 37: only the collaborators of each dashboard (default: 21); ${onlyDatabase}`,
      parseRestrictionLevel,
    )
    .action(async (options: ProjectOptions) => {
      const { id, name, timezone, weekStartDay, testAccountFilters, dashboardRestrictionLevel } = options;
      const body = { ...optional('id', id), name, timezone, week_start_day: weekStartDay };
      const created = usesService(options)
        ? await onService(options, {
            '--test-account-filters': testAccountFilters,
            '--dashboard-restriction-level': dashboardRestrictionLevel,
          }).post('/api/projects', { body })
        : await withAudit(
            {
              action: 'project.create',
              object: ({ id }: Project) => `projects/${id}`,
              changes: () => fieldChanges({}, body),
            },
            async (pool) =>
              (await loadProjects()).createProject(pool, {
                ...body,
                test_account_filters: testAccountFilters,
                dashboard_restriction_level: dashboardRestrictionLevel,
              }),
          );
      printer(options)(created, () => projectTable([created]));
    });

  keyCommand(project, 'list', 'list all projects; with an API key those of the key').action(
    async (options: KeyOptions) => {
      const projects = usesService(options)
        ? (await openService(options).get('/api/projects', allOfThem)).results
        : await withPool(async (pool) => (await loadProjects()).listProjects(pool));
      printList(options)<PrintedProject>(projects, projectTable);
    },
  );

  keyCommand(project, 'rename', 'give a project another name; its id stays', null)
    .argument('<id>', 'id of the project, from "project list"', parseId)
    .argument('<name>', 'the new name')
    .action(async (id: number, name: string, options: KeyOptions) => {
      const renamed = usesService(options)
        ? await openService(options, things).patch('/api/projects/{id}', {
            path: { id: String(id) },
            body: { name },
          })
        : await withChanges(
            { action: 'project.rename', team_id: id, object: `projects/${id}` },
            async (pool) => {
              const { renameProject } = await loadProjects();
              return (await renameProject(pool, id, name)) ?? unknownProject(id);
            },
          ).then(({ project: found }) => found);
      printer(options)(renamed, () => projectTable([renamed]));
    });
}

const unknownProject = (id: number): never => {
  throw new CliError(`There is no project ${id}. "exportd project list" lists what there is.`);
};

type PrintedProject = Pick<Project, 'id' | 'name' | 'timezone' | 'week_start_day' | 'external_id'>;

const projectTable = (projects: readonly PrintedProject[]): string[] =>
  table(
    ['id', 'name', 'timezone', 'week starts on', 'external id'],
    projects.map(({ id, name, timezone, week_start_day, external_id }) => [
      id,
      name,
      timezone,
      week_start_day,
      external_id,
    ]),
  );
