/** The scopes that a key can have, each with what it allows. Write does not imply read. */
export const scopeDescriptions = {
  'batch_export:read': 'See exports, runs, backfills, intervals, logs and webhooks.',
  'batch_export:write':
    'Create, change, pause, backfill and delete exports, manage webhooks, test buckets, see first rows.',
  'dashboard:read': 'List dashboards.',
  'query:read': 'Run queries on the events and persons of the project, see its actions and saved queries.',
  'query:write': 'Define actions, and save, rename and delete queries.',
  'key:admin': 'List, create and revoke API keys, with no more scopes than the own key has.',
  'audit:read': 'Read and download the audit trail.',
  'source:read': 'See columns and first rows of any table that exportd can read, also of other projects.',
  'installation:admin':
    'Manage the users of all projects, create and rename projects, see faults of the service.',
} as const;
export type Scope = keyof typeof scopeDescriptions;

export const scopes = Object.keys(scopeDescriptions) as readonly Scope[];

export const isScope = (text: string): text is Scope => Object.hasOwn(scopeDescriptions, text);

/** Names of common sets of scopes. */
export const presetNames = ['viewer', 'editor', 'owner'] as const;
export type Preset = (typeof presetNames)[number];

/**
 * The scopes of each preset, and who it is for. A key keeps the scopes that its preset had when the key was created: a preset
 * that grows later gives existing keys nothing.
 */
export const presets: Readonly<
  Record<Preset, { readonly description: string; readonly scopes: readonly Scope[] }>
> = {
  viewer: {
    description: 'Sees exports, their runs and logs, and queries the rows of the project. Changes nothing.',
    scopes: ['batch_export:read', 'dashboard:read', 'query:read'],
  },
  editor: {
    description:
      'Does what a viewer does, defines actions, saves queries, and creates, changes, backfills and deletes exports and webhooks.',
    scopes: ['batch_export:read', 'batch_export:write', 'dashboard:read', 'query:read', 'query:write'],
  },
  owner: {
    description:
      'Does everything: also manages keys, users and projects, reads the audit trail, and sees any table of the source.',
    scopes,
  },
};

/** The preset that has exactly these scopes; null if none has. */
export const presetOf = (given: readonly string[]): Preset | null =>
  presetNames.find((name) => {
    const { scopes: own } = presets[name];
    return own.length === given.length && own.every((scope) => given.includes(scope));
  }) ?? null;
