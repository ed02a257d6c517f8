import { type ChildProcess, execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { codeBlocks } from '../readme/readme_blocks.ts';
import { programPath } from '../setup/programs.ts';
import { waitFor } from '../setup/wait_for.ts';

const root = join(import.meta.dirname, '../..');
const run = promisify(execFile);
const clientReadme = 'src/client/README.md';

/** Of the package, in bytes, and of an installation as `du` counts: in MiB, with what the blocks of files waste. */
const maxUnpacked = 5_000_000;
const maxInstalled = 330;

/** Versions of npm's packages of Node: the oldest that runs the package, and that of a clone. */
const nodeVersions = ['22.15.0', '24.21.0'];

let folder: string;
let installed: string;
let archive: string;

/** What has changed in a clone since its commit. */
const statusOf = async (clone: string): Promise<string> =>
  (await run('git', ['status', '--porcelain'], { cwd: clone })).stdout;

/** Packs a clone without packages, with the changes of this one, by the npm and Node of the machine. @returns the path */
async function packFreshClone(): Promise<string> {
  const clone = join(folder, 'clone');
  await run('git', ['clone', '--quiet', root, clone]);
  const changed = await run('git', ['ls-files', '--modified', '--others', '--exclude-standard'], {
    cwd: root,
  });
  for (const path of changed.stdout.split('\n').filter(Boolean)) {
    const target = join(clone, path);
    rmSync(target, { force: true });
    if (existsSync(join(root, path))) cpSync(join(root, path), target);
  }
  const before = await statusOf(clone);
  const PATH = (process.env.PATH ?? '').split(delimiter).filter((one) => !one.startsWith(root));
  // Its output begins with that of the script that builds.
  const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', folder], {
    cwd: clone,
    env: { ...process.env, PATH: PATH.join(delimiter), npm_execpath: undefined },
    maxBuffer: 2 ** 26,
  });
  expect(await statusOf(clone)).toBe(before);
  return join(folder, stdout.trim());
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'exportd-installed-'));
  installed = join(folder, 'installed');
  mkdirSync(installed);
  writeFileSync(join(installed, 'package.json'), '{"private": true}');
  archive = await packFreshClone();
  await run('npm', ['install', '--no-audit', '--no-fund', archive], { cwd: installed });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Bytes of all files below a folder. */
const sizeOf = (path: string): number =>
  readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);

/** The environment of a stranger, with a version of Node first on PATH. */
const environmentOf = (node: string): NodeJS.ProcessEnv => ({
  HOME: process.env.HOME,
  PATH: [node, process.env.PATH].join(delimiter),
  EXPORTD_PORT: '0',
});

/** Makes a client of the document of the demo in `place` and runs what the README of the client does with it. */
async function runInPython(place: string): Promise<void> {
  const program = await programPath('openapi-python-client');
  const [generate = ''] = codeBlocks('Other languages', 'sh', clientReadme);
  const [steps = ''] = codeBlocks('Other languages', 'python', clientReadme);
  const env = {
    ...process.env,
    PATH: [dirname(program), process.env.PATH].join(delimiter),
    // What the client imports: httpx and attrs.
    PYTHONPATH: join(dirname(program), 'modules'),
  };
  expect((await run('sh', ['-euc', generate], { cwd: place, env })).stdout).not.toMatch(
    /WARNING|ERROR|unsupported/i,
  );
  const { stdout } = await run('python3', ['-c', steps], { cwd: place, env });
  expect(stdout).toMatch(/^(\d{4}-\S+ \S+ exported \d+\n){3}$/);
}

interface Demo {
  readonly database_url: string;
  readonly temporal_address: string;
}

/** The commands of a unit, and the variables of its files. */
function readUnit(path: string): { commands: string[][]; variables: Record<string, string> } {
  const lines = readFileSync(path, 'utf8').split('\n');
  const valuesOf = (key: string): string[] =>
    lines.filter((line) => line.startsWith(`${key}=`)).map((line) => line.slice(key.length + 1));
  const variables = valuesOf('EnvironmentFile')
    .flatMap((file) => readFileSync(file, 'utf8').split('\n'))
    .filter((line) => /^\w+=/.test(line))
    .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)] as const);
  return {
    commands: valuesOf('ExecStart').map((line) => line.split(' ')),
    variables: Object.fromEntries(variables),
  };
}

/** Makes an installation on the servers of the demo in `place` with `init`, runs what its units run, and ends it. */
async function runInstallation(
  program: string,
  place: string,
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  const demo = JSON.parse(readFileSync(join(place, '.exportd/demo.json'), 'utf8')) as Demo;
  const control = new URL(demo.database_url);
  control.pathname = '/installation';
  const database = new pg.Client({ connectionString: demo.database_url });
  await database.connect();
  await database.query('create database installation');
  await database.end();
  const given = {
    ...environment,
    DATABASE_URL: control.href,
    SOURCE_DATABASE_URL: control.href,
    EXPORTD_EVENTS_RELATION: 'public.events',
    TEMPORAL_ADDRESS: demo.temporal_address,
    EXPORTD_BASE_URL: 'http://127.0.0.1:1',
  };
  const init = await run(program, ['init', 'own'], { cwd: place, env: given });
  // It ends with the checks of doctor.
  expect(init.stdout).toMatch(/^ok +control database +PostgreSQL/m);
  expect(init.stdout).toMatch(/^Still to do: .*migrations/m);

  const unitOf = (name: string) => {
    const { commands, variables } = readUnit(join(place, 'own/systemd', name));
    return { commands, env: { ...environment, ...variables, EXPORTD_TASK_QUEUE_PREFIX: 'own' } };
  };
  const migrate = unitOf('exportd-migrate.service');
  for (const [file = '', ...args] of migrate.commands)
    await run(file, [...args, '--source'], { cwd: place, env: migrate.env });
  const started = ['exportd-server.service', 'exportd-worker@.service'].map((name) => {
    const { commands, env } = unitOf(name);
    const [[file = '', ...args] = []] = commands;
    const child = spawn(file, args, { cwd: '/', env, stdio: ['ignore', 'ignore', 'pipe'] });
    const state = { child, env, log: '' };
    child.stderr.setEncoding('utf8').on('data', (text: string) => (state.log += text));
    return state;
  });
  try {
    const [server, worker] = started;
    const urlOf = (): string | undefined =>
      /"url":"([^"]+)","msg":"Server is listening/.exec(server?.log ?? '')?.[1];
    await waitFor(
      () => urlOf() !== undefined && (worker?.log.includes('The worker is running') ?? false),
      () => started.map(({ log }) => log).join('\n'),
      60_000,
    );
    const doctor = { ...worker?.env, EXPORTD_BASE_URL: urlOf() ?? '' };
    const checks = await run(program, ['doctor'], { cwd: place, env: doctor });
    expect(checks.stdout).toMatch(/^ok +Temporal /m);
    for (const { child } of started) {
      const exited = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      expect(await exited).toBe(0);
    }
  } finally {
    for (const { child } of started) child.kill('SIGKILL');
  }
}

describe('the package, installed in an empty folder', () => {
  it('is small', () => {
    const size = sizeOf(join(installed, 'node_modules/exportd'));
    expect([size < maxUnpacked, size]).toEqual([true, size]);
    const used = execFileSync('du', ['-sm', 'node_modules'], { cwd: installed, encoding: 'utf8' });
    const whole = parseInt(used, 10);
    expect([whole <= maxInstalled, whole]).toEqual([true, whole]);
  });

  it('has a README that needs no other page, and begins with the demo', () => {
    const text = readFileSync(join(installed, 'node_modules/exportd/README.md'), 'utf8');
    expect(text).not.toMatch(/\]\(/);
    const [first] = /(?<=^```sh\n).*?(?=```$)/ms.exec(text) ?? [];
    expect(first).toBe('npx exportd up\n');
  });

  it('repeats the licences of what became part of it', () => {
    const notices = readFileSync(join(installed, 'node_modules/exportd/dist/THIRD_PARTY_NOTICES'), 'utf8');
    for (const name of ['zod', 'preact', 'uplot', 'esbuild'])
      expect({ name, isNamed: new RegExp(`^${name} \\d`, 'm').test(notices) }).toEqual({
        name,
        isNamed: name !== 'esbuild',
      });
    // No package has the name of a licence in place of its text.
    expect(notices).not.toMatch(/^Licence: \S+\n*(?:-{80}|$)/m);
  });

  it('writes units that systemd accepts, and a file that docker-compose does', async () => {
    const exportd = join(installed, 'node_modules/.bin/exportd');
    execFileSync(exportd, ['init', 'new'], {
      cwd: installed,
      env: environmentOf(join(process.execPath, '..')),
    });
    const units = readdirSync(join(installed, 'new/systemd')).map((name) =>
      join(installed, 'new/systemd', name.replace('@.', '@1.')),
    );
    const { status, stdout, stderr } = spawnSync(
      await programPath('systemd-analyze'),
      ['verify', '--man=no', ...units],
      { encoding: 'utf8', env: { ...process.env, SYSTEMD_UNIT_PATH: `${join(installed, 'new/systemd')}:` } },
    );
    expect({ status, output: stdout + stderr }).toEqual({ status: 0, output: '' });
    const compose = await programPath('docker-compose');
    const file = join(installed, 'new/compose.yaml');
    await expect(run(compose, ['--file', file, 'config', '--quiet'])).resolves.toMatchObject({ stdout: '' });
  });

  it('has a client with types for Node and bundlers, which imports nothing', () => {
    const entry = join(installed, 'node_modules/exportd/dist/src/client/client.js');
    expect(readFileSync(entry, 'utf8')).not.toMatch(/\b(import|require)\b|node:/);
    const [steps = ''] = codeBlocks('Steps', 'ts', clientReadme);
    // The types know paths, bodies and items.
    const wrong = `
      import { ApiError, createClient } from 'exportd/client';
      const client = createClient({});
      // @ts-expect-error: no such path
      void client.get('/nothing');
      // @ts-expect-error: the id is missing
      void client.get('/batch_exports/{id}');
      // @ts-expect-error: no such field
      void client.patch('/batch_exports/{id}', { path: { id: '' }, body: { nam: '' } });
      for await (const { status } of client.list('/batch_exports/{batch_export_id}/runs', { path: { batch_export_id: '' } })) {
        const known: 'Completed' | 'Failed' | (string & {}) = status;
        // @ts-expect-error: a status that no run has
        if (status === 'Complete') throw new ApiError(0, { code: known, detail: '' });
      }`;
    writeFileSync(join(installed, 'steps.mts'), steps.replace('(ago)', '(ago: number)'));
    writeFileSync(join(installed, 'wrong.mts'), wrong);
    const compiler = join(root, 'node_modules/typescript/bin/tsc');
    const options = ['--noEmit', '--strict', '--target', 'es2022', '--types', 'node'];
    const types = ['--typeRoots', join(root, 'node_modules/@types'), 'steps.mts', 'wrong.mts'];
    for (const resolution of [
      ['--module', 'nodenext', '--moduleResolution', 'nodenext'],
      ['--module', 'esnext', '--moduleResolution', 'bundler'],
    ]) {
      const { status, stdout } = spawnSync(
        process.execPath,
        [compiler, ...options, ...resolution, ...types],
        {
          cwd: installed,
          encoding: 'utf8',
        },
      );
      expect({ status, stdout }).toEqual({ status: 0, stdout: '' });
    }
  });

  describe.each(nodeVersions)('on Node %s', (nodeVersion) => {
    let environment: NodeJS.ProcessEnv;
    let place: string;
    let stack: ChildProcess | undefined;
    let output = '';
    const program = () => join(installed, 'node_modules/.bin/exportd');
    const exportd = async (...args: readonly string[]): Promise<string> =>
      (await run(program(), args, { cwd: place, env: environment, maxBuffer: 2 ** 26 })).stdout;
    beforeAll(async () => {
      // Below the installation, so that programs there find the client.
      place = join(installed, nodeVersion);
      mkdirSync(place);
      const name = `node-${process.platform}-${process.arch}@${nodeVersion}`;
      await run('npm', ['install', '--no-audit', '--no-fund', '--prefix', join(place, 'node'), name]);
      environment = environmentOf(join(place, 'node/node_modules/.bin'));
    });
    afterAll(async () => {
      if (stack?.exitCode !== null) return;
      const ended = new Promise((resolve) => stack?.once('exit', resolve));
      // It stops its servers.
      stack.kill('SIGTERM');
      await ended;
    });

    it('names its build', async () => {
      expect(JSON.parse(await exportd('version', '--json'))).toEqual({
        version: expect.stringMatching(/^\d/) as unknown,
        commit: expect.stringMatching(/^[0-9a-f]{40}/) as unknown,
        build: expect.stringMatching(/^[0-9a-f]{16}$/) as unknown,
        node: nodeVersion,
        schema: '0001_baseline',
        workflow_build_id: expect.stringMatching(/^@temporalio\/worker@[\d.]+\+[0-9a-f]{64}$/) as unknown,
      });
    });

    it('runs the demo, exports with Zstandard, verifies every value, and ends by SIGTERM', async () => {
      stack = spawn(program(), ['up'], { cwd: place, env: environment });
      for (const stream of [stack.stdout, stack.stderr])
        stream?.setEncoding('utf8').on('data', (text: string) => (output += text));
      const file = join(place, '.exportd/demo.json');
      await waitFor(
        () => existsSync(file) || typeof stack?.exitCode === 'number',
        () => output,
        300_000,
      );
      const { batch_export_id: id } = JSON.parse(readFileSync(file, 'utf8')) as { batch_export_id: string };
      const config = { file_format: 'Parquet', compression: 'zstd' };
      await exportd('export', 'update', id, JSON.stringify({ destination: { type: 'S3', config } }));
      const hoursAgo = (hours: number): string => new Date(Date.now() - hours * 3_600_000).toISOString();
      await exportd('export', 'backfill', id, '--start-at', hoursAgo(9), '--end-at', hoursAgo(3));
      await waitFor(
        async () =>
          (
            JSON.parse(await exportd('backfill', 'list', id, '--json')) as { results: { status: string }[] }
          ).results.every(({ status }) => status === 'Completed'),
        'all backfills to be completed',
      );
      expect(await exportd('verify', id, '--deep')).toMatch(/manifests, .* rows: no findings\./);
      // What the README of the client does, three intervals.
      const [steps = ''] = codeBlocks('Steps', 'ts', clientReadme);
      writeFileSync(join(place, 'steps.mjs'), steps);
      const printed = await run('node', ['steps.mjs'], { cwd: place, env: environment });
      expect(printed.stdout).toMatch(/^(\d{4}-\S+ exported \d+\n){3}$/m);
      const { base_url: url } = JSON.parse(readFileSync(file, 'utf8')) as { base_url: string };
      const page = await (await fetch(`${url}/`)).text();
      const modules = [...page.matchAll(/(?:href|src)="(\/console\/assets\/[^"]+)"/g)].map(
        ([, path]) => path,
      );
      expect(modules.length).toBeLessThan(20);
      for (const path of modules) expect((await fetch(`${url}${path ?? ''}`)).status).toBe(200);
      if (nodeVersion === nodeVersions.at(-1)) await runInPython(place);
      await runInstallation(program(), place, environment);
      const ended = new Promise((resolve) => stack?.once('exit', resolve));
      stack.kill('SIGTERM');
      await ended;
      expect(output).toContain('Stopped');
      expect(existsSync(file)).toBe(false);
    });
  });
});
