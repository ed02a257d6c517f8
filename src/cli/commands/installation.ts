import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { installedPath, root } from '../../config/installation.ts';
import { readBuildInformation, version } from '../../telemetry/version.ts';
import { CliError } from '../cli_error.ts';
import { printer } from '../output.ts';
import { runDoctor } from './doctor.ts';
import { createSecrets } from './secrets.ts';

/** `version` and `init`. */
export function addInstallationCommands(program: Command): void {
  program
    .command('version')
    .description('print the version; with --json also commit, build, Node, schema and workflow build id')
    .option('--json', 'print JSON')
    .action((options: { json?: boolean }) => {
      printer(options)(describeVersion(), () => [version]);
    });

  program
    .command('init')
    .argument('[folder]', 'an empty or new folder', 'exportd')
    .description(
      'write settings, a compose file and systemd units for your own PostgreSQL, Temporal and bucket, with new secrets',
    )
    .action(async (path: string) => {
      const folder = resolve(path);
      const files = initialFiles(folder, process.env, new Date());
      writeFiles(folder, files);
      const isGiven = Boolean(process.env.DATABASE_URL);
      for (const line of nextSteps(folder, Object.keys(files), isGiven)) process.stdout.write(`${line}\n`);
      if (!isGiven) return;
      Object.assign(process.env, variablesOf(files));
      const failed = await runDoctor({});
      if (failed.length > 0) process.stdout.write(`Still to do: ${failed.join(', ')}.\n`);
    });
}

/** What this exportd is, for reports of problems and for upgrades. */
const describeVersion = () => ({
  version,
  ...readBuildInformation(),
  node: process.versions.node,
  schema: readdirSync(installedPath('src/journal/migrations')).sort().at(-1)?.replace('.sql', '') ?? null,
});

/** Names and contents of files, by their path in a folder. */
type Files = Readonly<Record<string, string>>;

/** The settings that a command finds in the environment, and what stands for those that it does not. */
const placeholders = {
  DATABASE_URL: 'postgres://exportd:password@localhost:5432/exportd',
  SOURCE_DATABASE_URL: 'postgres://reader:password@localhost:5432/app',
  EXPORTD_EVENTS_RELATION: 'public.exportd_events',
  TEMPORAL_ADDRESS: 'localhost:7233',
  TEMPORAL_NAMESPACE: 'default',
  EXPORTD_BASE_URL: 'http://127.0.0.1:8000',
} as const;

/** What `init` writes. @param environment its settings replace those of the template */
function initialFiles(
  folder: string,
  environment: Readonly<Record<string, string | undefined>>,
  now: Date,
): Files {
  const line = (name: keyof typeof placeholders): string => {
    const given = environment[name];
    return `${name}=${given === undefined || given === '' ? placeholders[name] : given}`;
  };
  const { SERVER_ENCRYPTION_KEYS, WORKER_ENCRYPTION_KEYS } = createSecrets(now);
  const password = randomBytes(24).toString('base64url');
  return {
    'exportd.env': `# Settings of all processes of exportd ${version}. All others: src/config/README.md of its repository.

# The journal: an empty database of PostgreSQL 15 or newer, whose owner exportd is.
${line('DATABASE_URL')}

# Your data, which exportd only reads, and the table or view of its events.
${line('SOURCE_DATABASE_URL')}
${line('EXPORTD_EVENTS_RELATION')}
# EXPORTD_PERSONS_RELATION=public.exportd_persons

# The role that queries of users run under: "exportd query setup" creates it in the database of your data.
# EXPORTD_QUERY_DATABASE_URL=postgres://exportd_query:${password}@localhost:5432/app

# Temporal. A namespace of Temporal Cloud also needs TEMPORAL_API_KEY.
${line('TEMPORAL_ADDRESS')}
${line('TEMPORAL_NAMESPACE')}

# Where users reach the server.
${line('EXPORTD_BASE_URL')}

# An S3 server in a private network: loopback for this machine, or networks such as 10.20.0.0/16.
# EXPORTD_ALLOW_PRIVATE_ENDPOINTS=loopback
`,
    'server.env': `# Servers encrypt the secrets of destinations with this key.\nEXPORTD_ENCRYPTION_KEYS=${SERVER_ENCRYPTION_KEYS}\n`,
    'worker.env': `# Workers also decrypt them: keep a copy, without which no export can write to its bucket again.\nEXPORTD_ENCRYPTION_KEYS=${WORKER_ENCRYPTION_KEYS}\n`,
    'compose.yaml': composeFile(),
    ...systemdUnits(folder),
  };
}

/** Runs the image of this version with the settings of the folder. */
const composeFile = (): string => `# docker compose up --detach --scale worker=2
# Build the image first: .config/README.md of exportd's repository. In a container localhost is the container.
x-exportd: &exportd
  image: exportd:${version}
  restart: unless-stopped
  # Longer than EXPORTD_SHUTDOWN_TIMEOUT: a worker lets what it sends finish.
  stop_grace_period: 20s
  read_only: true
  tmpfs: [/tmp]
  cap_drop: [ALL]
  security_opt: ['no-new-privileges:true']

services:
  migrate:
    <<: *exportd
    command: [migrate]
    env_file: [exportd.env, server.env]
    restart: 'no'
    healthcheck: { disable: true }
  server:
    <<: *exportd
    command: [server]
    env_file: [exportd.env, server.env]
    ports: ['127.0.0.1:8000:8000']
    depends_on:
      migrate: { condition: service_completed_successfully }
  worker:
    <<: *exportd
    command: [worker]
    env_file: [exportd.env, worker.env]
    depends_on:
      migrate: { condition: service_completed_successfully }
`;

/** The units of the repository, with this folder and this exportd. */
function systemdUnits(folder: string): Files {
  const units = installedPath('.config/systemd');
  const command = `${process.execPath} ${join(root, 'src/cli/exportd.mjs')}`;
  return Object.fromEntries(
    readdirSync(units).map((name) => [
      `systemd/${name}`,
      readFileSync(join(units, name), 'utf8')
        .replaceAll('/opt/exportd/node_modules/.bin/exportd', command)
        // Without a role of queries there is nothing to set up.
        .replaceAll(/^ExecStart=.* query setup\n/gm, '')
        .replaceAll('/etc/exportd/environment', join(folder, 'exportd.env'))
        .replaceAll(/\/etc\/exportd\/(server|worker)$/gm, `${folder}/$1.env`)
        .replaceAll('WorkingDirectory=/opt/exportd', 'WorkingDirectory=/')
        .replaceAll(/^Documentation=.*$/gm, `Documentation=file://${join(root, 'README.md')}`),
    ]),
  );
}

/** Writes files that only their owner can read, because they contain secrets. @throws CliError if one exists */
function writeFiles(folder: string, files: Files): void {
  mkdirSync(join(folder, 'systemd'), { recursive: true, mode: 0o700 });
  for (const [path, content] of Object.entries(files))
    try {
      writeFileSync(join(folder, path), content, { flag: 'wx', mode: 0o600 });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      throw new CliError(
        `${join(folder, path)} exists: exportd replaces no settings and no secrets. Name another folder.`,
      );
    }
}

/** The variables of the files that a worker has. */
const variablesOf = (files: Files): Readonly<Record<string, string>> =>
  Object.fromEntries(
    `${files['exportd.env'] ?? ''}${files['worker.env'] ?? ''}`
      .split('\n')
      .flatMap((line) =>
        /^\w+=/.test(line) ? [[line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]] : [],
      ),
  );

const nextSteps = (folder: string, paths: readonly string[], isGiven: boolean): string[] => [
  ...paths.map((path) => `Wrote ${join(folder, path)}`),
  '',
  ...(isGiven ? [] : [`Write the addresses of your servers into ${join(folder, 'exportd.env')}, then:`, '']),
  `  set -a; . ${join(folder, 'exportd.env')}; . ${join(folder, 'worker.env')}; set +a`,
  '  npx exportd source check      # prints the SQL that your tables need',
  '  npx exportd migrate',
  '  npx exportd doctor            # checks all of it, once a worker runs',
  '',
  'Processes: "docker compose up" in the folder, or its units in /etc/systemd/system with the users exportd-server and',
  'exportd-worker, which cannot read home folders: install exportd with npm install --prefix /opt/exportd.',
  '',
];
