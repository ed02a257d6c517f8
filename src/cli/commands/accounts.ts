import { Option, type Command } from 'commander';
import type { ApiKey, InstallationUser, Project, User } from '../../http/accounts.ts';
import type { RestrictionLevel } from '../../http/dashboards/access_levels.ts';
import { weekStartDays } from '../../http/projects/week_start_days.ts';
import { type Preset, presetNames, presets, scopes } from '../../http/scopes.ts';
import { type FieldChange, fieldChanges } from '../../journal/audit.ts';
import type { Pool } from '../../journal/database.ts';
import { CliError } from '../cli_error.ts';
import {
  parseCount,
  parseId,
  parseIds,
  parseJsonArray,
  parseJsonObject,
  parseRestrictionLevel,
} from '../arguments.ts';
import { commandSettings, resolveUser, withAudit, withPool } from '../running_stack.ts';
import { printer, printList, table } from '../output.ts';
import {
  allOfThem,
  asWritten,
  openService,
  type ServiceClient,
  serviceCommand,
  type ServiceCommandOptions,
} from '../service_client.ts';

/** Reads and changes users, projects and keys in the database. Loaded when a command needs it: it loads pg and zod. */
const accounts = () => import('../../http/accounts.ts');

interface UserOptions extends KeyOptions {
  readonly email: string;
  readonly firstName?: string;
  readonly lastName?: string;
  readonly distinctId?: string;
  readonly emailVerified?: boolean;
  readonly mascotConfig?: Record<string, unknown>;
  readonly roleAtOrganization?: string;
}

/** `user create|list|disable|enable`. */
export function addUserCommands(program: Command): void {
  const user = program
    .command('user')
    .description(
      'manage users, who own API keys: with the HTTP API and a key that has installation:admin, or with the database if there is no key',
    );

  keyCommand(user, 'create', 'create a user', null)
    .requiredOption('--email <address>')
    .option('--first-name <name>')
    .option('--last-name <name>')
    .option('--distinct-id <id>', `random by default; ${onlyDatabase}`)
    .option('--email-verified', `mark the address as verified; ${onlyDatabase}`)
    .option('--mascot-config <JSON>', `a JSON object; ${onlyDatabase}`, parseJsonObject)
    .option('--role-at-organization <role>', 'job title; it grants nothing')
    .action(async (options: UserOptions) => {
      const { email, firstName, lastName, distinctId, emailVerified, mascotConfig, roleAtOrganization } =
        options;
      const body = {
        email,
        ...optional('first_name', firstName),
        ...optional('last_name', lastName),
        ...optional('role_at_organization', roleAtOrganization),
      };
      const created = usesService(options)
        ? await onService(options, {
            '--distinct-id': distinctId,
            '--email-verified': emailVerified,
            '--mascot-config': mascotConfig,
          }).post('/api/users', { body })
        : await withAudit(
            {
              action: 'user.create',
              object: ({ id }: User) => `users/${id}`,
              changes: () => fieldChanges({}, body),
            },
            async (pool) =>
              (await accounts()).createUser(pool, {
                ...body,
                ...optional('distinct_id', distinctId),
                ...optional('is_email_verified', emailVerified),
                ...optional('mascot_config', mascotConfig),
              }),
          );
      printer(options)(created, () => userTable([created]));
    });

  keyCommand(user, 'list', 'list all users; with an API key those who own a key of the project')
    .option('--all', 'with an API key that has installation:admin: all users')
    .action(async (options: KeyOptions & { readonly all?: boolean }) => {
      const users = usesService(options)
        ? (await openService(options).get(options.all === true ? '/api/users' : '/users', allOfThem)).results
        : await withPool(async (pool) => (await accounts()).listUsers(pool));
      printList(options)<PrintedUser>(users, userTable);
    });

  keyCommand(
    user,
    'disable',
    'disable a user: the keys and sessions of the user end at once and permanently',
    null,
  )
    .argument('<id>', 'id of the user, from "user list --all"', parseId)
    .action(async (id: number, options: KeyOptions) => {
      const disabled = usesService(options)
        ? await openService(options, things).post('/api/users/{id}/disable', { path: { id: String(id) } })
        : await withChanges({ action: 'user.disable', object: `users/${id}` }, async (pool) => {
            const { disableUser } = await accounts();
            return (await disableUser(pool, id, { actor_id: null, project_id: null })) ?? unknownUser(id);
          }).then(({ user: found, revokedKeys }) => ({ ...found, revoked_keys: revokedKeys }));
      const { email, revoked_keys, active_keys_of_others: others } = disabled;
      printer(options)(disabled, () => [
        `Disabled ${email}. Keys that ended: ${revoked_keys}.`,
        ...(others === 0
          ? []
          : [`Active keys that ${email} created for other users: ${others}. "key list" shows them.`]),
      ]);
    });

  keyCommand(user, 'enable', 'let keys be created for a user again; those that ended stay revoked', null)
    .argument('<id>', 'id of the user, from "user list --all"', parseId)
    .action(async (id: number, options: KeyOptions) => {
      const enabled = usesService(options)
        ? await openService(options, things).post('/api/users/{id}/enable', { path: { id: String(id) } })
        : await withChanges({ action: 'user.enable', object: `users/${id}` }, async (pool) => {
            const { enableUser } = await accounts();
            return (await enableUser(pool, id)) ?? unknownUser(id);
          }).then(({ user: found }) => found);
      printer(options)(enabled, () => [
        `Enabled ${enabled.email}. Keys that ended stay revoked: create another with "key create --user ${id}".`,
      ]);
    });
}

/** Runs `work` as `withAudit` does. It returns what it has changed. */
const withChanges = <Result extends { readonly changes: readonly FieldChange[] }>(
  change: { readonly action: string; readonly team_id?: number; readonly object: string },
  work: (pool: Pool) => Promise<Result>,
): Promise<Result> => withAudit({ ...change, changes: (result: Result) => result.changes }, work);

/** What messages call what these commands are about. */
const things = { users: ['user', 'user list --all'], projects: ['project', 'project list'] } as const;

const unknownUser = (id: number): never => {
  throw new CliError(`There is no user ${id}. "exportd user list" lists what there is.`);
};

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
              (await accounts()).createProject(pool, {
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
        : await withPool(async (pool) => (await accounts()).listProjects(pool));
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
              const { renameProject } = await accounts();
              return (await renameProject(pool, id, name)) ?? unknownProject(id);
            },
          ).then(({ project: found }) => found);
      printer(options)(renamed, () => projectTable([renamed]));
    });
}

const unknownProject = (id: number): never => {
  throw new CliError(`There is no project ${id}. "exportd project list" lists what there is.`);
};

interface KeyOptions extends ServiceCommandOptions {
  /** Work on the database also if the environment has an API key. */
  readonly database?: boolean;
}

interface CreateKeyOptions extends Omit<KeyOptions, 'project'> {
  readonly name?: string;
  readonly user?: number;
  readonly project?: readonly number[];
  readonly preset?: Preset;
  readonly scopes?: string;
  readonly expiresAt?: string;
}

/** Whether a command uses the HTTP API. Without an API key it uses the database: so the first key is created. */
export const usesService = ({ database, key, baseUrl }: Omit<KeyOptions, 'project'>): boolean =>
  database !== true && (key !== undefined || baseUrl !== undefined || Boolean(process.env.EXPORTD_API_KEY));

const onlyDatabase = 'only with the database';

/** Opens the service for a command. @throws CliError for a given option that only the database has */
function onService(options: KeyOptions, unsupported: Readonly<Record<string, unknown>>): ServiceClient {
  const [option] = Object.entries(unsupported).find(([, value]) => value !== undefined) ?? [];
  if (option !== undefined) throw new CliError(`${option} is ${onlyDatabase}: omit it, or add --database.`);
  return openService(options);
}

const keyCommand = (parent: Command, name: string, description: string, project?: Option | null): Command =>
  serviceCommand(parent, name, description, project).option(
    '--database',
    'use the control database, also if there is EXPORTD_API_KEY',
  );

/** With the database, a key is changed in all of its projects. @throws CliError */
function requireNoProject({ project }: KeyOptions): void {
  if (project !== undefined)
    throw new CliError('With the database, the key is changed in all of its projects: omit --project.');
}

/** `key create|list|rotate|revoke`. */
export function addKeyCommands(program: Command): void {
  const key = program
    .command('key')
    .description(
      'manage personal API keys: with the HTTP API and a key that has key:admin, or with the database if there is no key',
    );

  const projects = new Option(
    '--project <ids>',
    'projects that the key gives access to, separated by commas',
  ).argParser(parseIds);
  keyCommand(key, 'create', 'create a key; it is printed once, only its hash is stored', projects)
    .option('--name <text>', 'what the key is for')
    .option(
      '--user <id>',
      'owner of the key; by default the user of the API key, which otherwise needs installation:admin, or with the database the first user',
      parseId,
    )
    .addOption(
      new Option(
        '--preset <preset>',
        presetNames.map((name) => `${name}: ${presets[name].description}`).join(' '),
      )
        .choices(presetNames)
        .conflicts('scopes'),
    )
    .option('--scopes <list>', `instead of --preset: ${scopes.join(', ')}, separated by commas`)
    .option('--expires-at <time>', 'ISO 8601; by default it does not expire')
    .action(async (options: CreateKeyOptions) => {
      const { name, project, preset, expiresAt: expires_at } = options;
      const list = options.scopes?.split(',').map((scope) => scope.trim());
      if (list === undefined && preset === undefined)
        throw new CliError(`Pass --preset ${presetNames.join('|')}, or --scopes with a list.`);
      if (usesService(options)) {
        const service = openService({ ...options, project: project?.[0] });
        const created = await service.post('/keys', {
          body: asWritten({
            name: name ?? 'Command line',
            ...optional('scopes', list),
            ...optional('preset', preset),
            ...optional('projects', project),
            ...optional('user_id', options.user),
            ...optional('expires_at', expires_at),
          }),
        });
        printer(options)(created, () => keyLines(created));
        return;
      }
      if (project === undefined) throw new CliError('Pass --project with the id of a project.');
      const change = {
        action: 'key.create',
        team_id: project[0],
        object: ({ id }: { readonly id: string }) => `keys/${id}`,
        changes: changesOfKey,
      };
      const created = await withAudit(change, async (pool) => {
        const user_id = await resolveUser(pool, options.user);
        const maxLifetimeMs = (await commandSettings(process.env)).EXPORTD_KEY_MAX_LIFETIME;
        const ofPreset = preset === undefined ? [] : presets[preset].scopes;
        return (await accounts()).createKey(
          pool,
          { user_id, project_ids: project, scopes: list ?? ofPreset, name, expires_at },
          maxLifetimeMs,
        );
      });
      printer(options)(created, () => keyLines(created));
    });

  keyCommand(
    key,
    'list',
    'list keys, without their secrets: those of the project, or all of the database',
  ).action(async (options: KeyOptions) => {
    const keys = usesService(options)
      ? (await openService(options).get('/keys', allOfThem)).results
      : await withPool(async (pool) => (await accounts()).listKeys(pool, options.project));
    printList(options)<PrintedKey>(keys, keyTable);
  });

  keyCommand(key, 'rotate', 'create the successor of a key; the old one works until the overlap ends')
    .argument('<id>', 'id of the key, from "key list"')
    .option('--overlap <seconds>', 'how long the old key still works', parseCount, 86_400)
    .action(async (id: string, options: KeyOptions & { readonly overlap: number }) => {
      const overlap_seconds = options.overlap;
      if (!usesService(options)) requireNoProject(options);
      const created = usesService(options)
        ? await openService(options).post('/keys/{id}/rotate', { path: { id }, body: { overlap_seconds } })
        : await withAudit(
            { action: 'key.rotate', object: `keys/${id}`, changes: changesOfKey },
            async (pool) => {
              const { rotateKey } = await accounts();
              const successor = await rotateKey(pool, id, {
                overlapMs: overlap_seconds * 1_000,
                maxLifetimeMs: (await commandSettings(process.env)).EXPORTD_KEY_MAX_LIFETIME,
                createdBy: null,
                createdWith: null,
              });
              if (successor) return successor;
              throw new CliError(`There is no active key ${id}.`);
            },
          );
      printer(options)(created, () => keyLines(created));
    });

  keyCommand(key, 'revoke', 'revoke a key permanently')
    .argument('<id>', 'id of the key, from "key list"')
    .option('--descendants', 'also revoke the keys that were created with it, or with one of these in turn')
    .action(async (id: string, options: RevokeOptions) => {
      const active_descendants = usesService(options)
        ? await revokeByService(id, options)
        : await revokeInDatabase(id, options);
      printer(options)({ id, revoked: true, active_descendants }, () => [
        `Revoked key ${id}.`,
        ...(active_descendants === 0
          ? []
          : [
              `Active keys that were created with it, or with one of these in turn: ${String(active_descendants)}. --descendants revokes them too.`,
            ]),
      ]);
    });
}

/** What the audit trail says of a key that a command has created. */
const changesOfKey = async ({ id }: { readonly id: string }, pool: Pool): Promise<readonly FieldChange[]> => {
  const { findKey, keyFields } = await accounts();
  const found = await findKey(pool, { id, project_id: undefined, visible: null });
  return found ? keyFields(found) : [];
};

interface RevokeOptions extends KeyOptions {
  readonly descendants?: true;
}

/** Revokes a key. @returns how many of the keys that were created with it are still active @throws CliError */
async function revokeByService(id: string, options: RevokeOptions): Promise<number> {
  const service = openService(options);
  const path = { id };
  const query = options.descendants === true ? ({ descendants: 'true' } as const) : {};
  await service.delete('/keys/{id}', { path, query });
  return (await service.get('/keys/{id}', { path })).active_descendants;
}

async function revokeInDatabase(id: string, options: RevokeOptions): Promise<number> {
  requireNoProject(options);
  const changes = () => fieldChanges({ status: 'active' }, { status: 'revoked' });
  return withAudit({ action: 'key.revoke', object: `keys/${id}`, changes }, async (pool) => {
    const revocation = options.descendants === true ? 'descendants' : 'key';
    const { findKey, revokeKey } = await accounts();
    if ((await revokeKey(pool, id, undefined, revocation)) === 0)
      throw new CliError(`There is no active key ${id}.`);
    return (await findKey(pool, { id, project_id: undefined, visible: null }))?.active_descendants ?? 0;
  });
}

const keyLines = ({ id, key }: { readonly id: string; readonly key: string }): string[] => [
  `id   ${id}`,
  `key  ${key}`,
];

/** What both the service and the database say of a key. */
type PrintedKey = Pick<
  ApiKey,
  | 'id'
  | 'name'
  | 'prefix'
  | 'user'
  | 'projects'
  | 'scopes'
  | 'preset'
  | 'status'
  | 'created_at'
  | 'created_with'
  | 'expires_at'
  | 'last_used_at'
>;

const keyTable = (keys: readonly PrintedKey[]): string[] =>
  table(
    [
      'id',
      'name',
      'prefix',
      'user',
      'projects',
      'preset or scopes',
      'status',
      'created',
      'created with',
      'expires',
      'last used',
    ],
    keys.map((one) => [
      one.id,
      one.name,
      one.prefix,
      one.user.email,
      one.projects.join(','),
      one.preset ?? one.scopes.join(','),
      one.status,
      one.created_at,
      one.created_with,
      one.expires_at,
      one.last_used_at,
    ]),
  );

/** A field, omitted when its value is undefined. */
const optional = <Name extends string, Value>(
  name: Name,
  value: Value | undefined,
): Partial<Record<Name, Value>> =>
  value === undefined ? {} : ({ [name]: value } as Partial<Record<Name, Value>>);

type PrintedUser = Pick<User, 'id' | 'email' | 'first_name' | 'last_name'> &
  Partial<Pick<InstallationUser, 'active_keys' | 'disabled_at'>>;

const userTable = (users: readonly PrintedUser[]): string[] =>
  table(
    ['id', 'email', 'first name', 'last name', 'active keys', 'disabled'],
    users.map((user) => [
      user.id,
      user.email,
      user.first_name,
      user.last_name,
      user.active_keys,
      user.disabled_at,
    ]),
  );

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
