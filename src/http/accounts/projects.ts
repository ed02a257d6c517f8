/** Projects of the installation. */
import { isTimeZone } from '../../domain/intervals.ts';
import { type FieldChange, fieldChanges } from '../../journal/audit.ts';
import type { Pool } from '../../journal/database.ts';
import type { RestrictionLevel } from '../dashboards/access_levels.ts';
import type { weekStartDays } from '../projects/week_start_days.ts';
import { nameText } from '../schemas.ts';
import { InvalidAccount } from './invalid_account.ts';

/** A project. Its id is the `team_id` of everything that it owns. */
export interface Project {
  readonly id: number;
  readonly name: string;
  readonly timezone: string;
  readonly week_start_day: (typeof weekStartDays)[number];
  /** Identifies the project to AWS when exportd assumes a role for it. */
  readonly external_id: string;
}
const projectColumns = 'id, name, timezone, week_start_day, external_id';

/** The name of a project. */
export const projectName = nameText(200);

/** @throws InvalidAccount */
function requireProjectName(name: string): void {
  const problem = projectName.safeParse(name).error?.issues[0]?.message;
  if (problem !== undefined) throw new InvalidAccount(`The name of the project: ${problem}`);
}

/**
 * Creates a project, and gives a key access to it at once.
 * @throws InvalidAccount when the name is blank, the time zone is unknown or the id is already used.
 */
export async function createProject(
  pool: Pool,
  given: {
    readonly id?: number | undefined;
    readonly name: string;
    readonly timezone?: string | undefined;
    readonly week_start_day?: Project['week_start_day'] | undefined;
    readonly test_account_filters?: readonly unknown[] | undefined;
    /** The lowest restriction level of its dashboards. */
    readonly dashboard_restriction_level?: RestrictionLevel | undefined;
    /** The key that gets access to it. */
    readonly key_id?: string | undefined;
  },
): Promise<Project> {
  requireProjectName(given.name);
  const timezone = given.timezone ?? 'UTC';
  if (!isTimeZone(timezone))
    throw new InvalidAccount(`Unknown time zone "${timezone}". Use an IANA name such as Europe/Berlin.`);
  // Explicit ids may be ahead of a sequence, so the next id is the one after the highest that has a free one after it.
  const { rows } = await pool.query<Project>(
    `with created as (
       insert into exportd.projects (id, name, timezone, week_start_day, test_account_filters,
         dashboard_restriction_level)
       values (coalesce($1, (
         select max(id) + 1 from exportd.projects project
         where id < 2147483647 and not exists (select from exportd.projects where id = project.id + 1)), 1),
         $2, $3, $4, $5, $6)
       on conflict do nothing returning ${projectColumns}),
     granted as (
       update exportd.api_keys set project_ids = project_ids || created.id from created where api_keys.id = $7)
     select * from created`,
    [
      given.id ?? null,
      given.name,
      timezone,
      given.week_start_day ?? 'sunday',
      JSON.stringify(given.test_account_filters ?? []),
      given.dashboard_restriction_level ?? 21,
      given.key_id ?? null,
    ],
  );
  const [project] = rows;
  if (project) return project;
  if (given.id !== undefined) throw new InvalidAccount(`Project ${given.id} already exists.`);
  return createProject(pool, given);
}

/**
 * Gives a project another name.
 * @returns undefined when there is no such project
 * @throws InvalidAccount when the name is blank
 */
export async function renameProject(
  pool: Pool,
  id: number,
  name: string,
): Promise<{ readonly project: Project; readonly changes: readonly FieldChange[] } | undefined> {
  requireProjectName(name);
  const { rows } = await pool.query<Project & { readonly former_name: string }>(
    `with former as (select id as former_id, name as former_name from exportd.projects where id = $1 for update)
     update exportd.projects set name = $2 from former where id = former_id
     returning ${projectColumns}, former_name`,
    [id, name],
  );
  const [row] = rows;
  if (!row) return undefined;
  const { former_name, ...project } = row;
  return { project, changes: fieldChanges({ name: former_name }, { name: project.name }) };
}

/** All projects, by id. */
export const listProjects = async (pool: Pool): Promise<Project[]> =>
  (await pool.query<Project>(`select ${projectColumns} from exportd.projects order by id`)).rows;

/** The projects with these ids. */
export const findProjects = async (pool: Pool, ids: readonly number[]): Promise<Project[]> =>
  (
    await pool.query<Project>(
      `select ${projectColumns} from exportd.projects where id = any($1) order by id`,
      [ids],
    )
  ).rows;
