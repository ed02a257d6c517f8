import { type Command, Option } from 'commander';
import type { ApiKey } from '../../http/accounts/api_keys.ts';
import { type Preset, presetNames, presets, scopes } from '../../http/scopes.ts';
import { type FieldChange, fieldChanges } from '../../journal/audit.ts';
import type { Pool } from '../../journal/database.ts';
import { keyCommand, type KeyOptions, optional, usesService } from '../account_command.ts';
import { parseCount, parseId, parseIds } from '../arguments.ts';
import { CliError } from '../cli_error.ts';
import { printer, printList, table } from '../output.ts';
import { commandSettings } from '../running_stack.ts';
import { allOfThem, asWritten, openService } from '../service_client.ts';
import { resolveUser, withAudit, withPool } from '../control_database.ts';

/** Loaded when a command needs the database: it loads pg and zod. */
const loadApiKeys = () => import('../../http/accounts/api_keys.ts');

interface CreateKeyOptions extends Omit<KeyOptions, 'project'> {
  readonly name?: string;
  readonly user?: number;
  readonly project?: readonly number[];
  readonly preset?: Preset;
  readonly scopes?: string;
  readonly expiresAt?: string;
}

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
        return (await loadApiKeys()).createKey(
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
      : await withPool(async (pool) => (await loadApiKeys()).listKeys(pool, options.project));
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
              const { rotateKey } = await loadApiKeys();
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
  const { findKey, keyFields } = await loadApiKeys();
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
    const { findKey, revokeKey } = await loadApiKeys();
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
