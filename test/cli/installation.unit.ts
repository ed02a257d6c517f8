import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { createKeyRing } from '../../src/config/key_ring.ts';
import { settingsOf } from '../deployment/settings_of.ts';
import { exportd } from './command_line.ts';

const main = join(import.meta.dirname, '../../src/cli/main.ts');

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'exportd-cli-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('exportd version', () => {
  it('prints the version, and as JSON what a report of a problem needs', async () => {
    const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')) as {
      version: string;
    };
    expect((await exportd({}, 'version')).stdout).toBe(`${version}\n`);
    expect((await exportd({}, '--version')).stdout).toBe(`${version}\n`);
    expect(JSON.parse((await exportd({}, 'version', '--json')).stdout)).toEqual({
      version,
      commit: null,
      build: null,
      node: process.versions.node,
      schema: '0001_baseline',
      workflow_build_id: null,
    });
  });
});

describe('a mistyped', () => {
  it.each([
    [['statsu'], 'Did you mean status?'],
    [['export', 'lits'], 'Did you mean list?'],
    [['status', '--jsno'], 'Did you mean --json?'],
  ])('command %j gets a suggestion', async (args, suggestion) => {
    const { code, stderr } = await exportd({}, ...args);
    expect([code, stderr]).toEqual([1, expect.stringContaining(suggestion)]);
  });
});

describe('a command that only asks', () => {
  // What takes most of a second to load: Temporal's SDK, those of AWS, pg, zod, and the server.
  it.each([
    [['--help'], 'Usage: exportd'],
    [['version'], ''],
    [['status', '--base-url', 'http://127.0.0.1:1', '--key', 'exk_none'], 'Cannot connect'],
    [['backfill', 'list', 'id', '--base-url', 'http://127.0.0.1:1', '--key', 'exk_none'], 'Cannot connect'],
  ])('loads no package but that of the command line: %j', (args, printed) => {
    const list = join(folder, 'packages.mjs');
    writeFileSync(
      list,
      `import { registerHooks } from 'node:module';
       const names = new Set();
       registerHooks({ load(url, context, next) {
         const name = /.*node_modules\\/((@[^/]+\\/)?[^/]+)/.exec(url)?.[1];
         if (name) names.add(name);
         return next(url, context);
       } });
       process.on('exit', () => process.stderr.write('packages: ' + [...names].sort() + '\\n'));`,
    );
    const { stdout, stderr } = spawnSync(process.execPath, [`--import=${list}`, main, ...args], {
      encoding: 'utf8',
      env: { EXPORTD_DATA_DIR: join(folder, 'no-stack') },
    });
    expect(stdout + stderr).toContain(printed);
    expect(stderr).toMatch(/^packages: commander(,luxon)?$/m);
  });
});

describe('exportd init', () => {
  const variablesOf = (...names: readonly string[]): Record<string, string> =>
    Object.fromEntries(
      names
        .flatMap((name) => readFileSync(join(folder, 'new', name), 'utf8').split('\n'))
        .filter((line) => /^\w+=/.test(line))
        .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    );
  let stdout: string;
  beforeAll(async () => {
    ({ stdout } = await exportd(
      { SOURCE_DATABASE_URL: 'postgres://reader@db.example.com/app' },
      'init',
      join(folder, 'new'),
    ));
  });

  it('writes files that only their owner can read, and says what to do', () => {
    const paths = readdirSync(join(folder, 'new'), { recursive: true, encoding: 'utf8' }).sort();
    expect(paths).toEqual([
      'compose.yaml',
      'exportd.env',
      'server.env',
      'systemd',
      'systemd/exportd-migrate.service',
      'systemd/exportd-server.service',
      'systemd/exportd-worker@.service',
      'worker.env',
    ]);
    for (const path of paths) expect(statSync(join(folder, 'new', path)).mode & 0o077).toBe(0);
    expect(stdout).toContain('npx exportd doctor');
  });

  it('writes valid settings, those of the environment among them', () => {
    expect(settingsOf(variablesOf('exportd.env', 'worker.env'))).toMatchObject({
      SOURCE_DATABASE_URL: 'postgres://reader@db.example.com/app',
      TEMPORAL_ADDRESS: 'localhost:7233',
    });
  });

  it('gives the key that decrypts secrets to workers only', () => {
    const keysOf = (name: string) => createKeyRing(variablesOf(name).EXPORTD_ENCRYPTION_KEYS ?? '');
    const [server, worker] = [keysOf('server.env'), keysOf('worker.env')];
    expect([server.opens, worker.opens]).toEqual([false, true]);
    expect(worker.open(server.seal('secret', 'context'), 'context')).toBe('secret');
    const { services } = parse(readFileSync(join(folder, 'new/compose.yaml'), 'utf8'), { merge: true }) as {
      services: Record<string, { env_file: string[]; image: string }>;
    };
    expect(Object.entries(services).map(([name, { env_file }]) => [name, env_file])).toEqual([
      ['migrate', ['exportd.env', 'server.env']],
      ['server', ['exportd.env', 'server.env']],
      ['worker', ['exportd.env', 'worker.env']],
    ]);
  });

  it('writes units that name its files', () => {
    const unit = readFileSync(join(folder, 'new/systemd/exportd-worker@.service'), 'utf8');
    expect(unit).toContain(`EnvironmentFile=${join(folder, 'new/worker.env')}\n`);
    expect(unit).toMatch(/^ExecStart=\/\S+ \/\S+\/exportd\.mjs worker$/m);
    expect(unit).not.toContain('/etc/exportd');
    expect(unit).not.toContain('/opt/exportd');
  });

  it('replaces nothing', async () => {
    const before = readFileSync(join(folder, 'new/worker.env'), 'utf8');
    expect(await exportd({}, 'init', join(folder, 'new'))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('exportd.env exists') as unknown,
    });
    expect(readFileSync(join(folder, 'new/worker.env'), 'utf8')).toBe(before);
  });
});
