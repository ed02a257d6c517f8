import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { programPath } from '../setup/programs.ts';
import { settingsOf } from './settings_of.ts';

const root = join(import.meta.dirname, '../..');
const units = join(root, '.config/systemd');
const names = readdirSync(units);

/** Where `npm install --prefix /opt/exportd` puts the command. */
const command = '/opt/exportd/node_modules/.bin/exportd';

/** Exposure above which "systemd-analyze security" calls a service exposed; 10 is a service without any protection. */
const maxExposure = 20;

let analyze: string;
let folder: string;
beforeAll(async () => {
  analyze = await programPath('systemd-analyze');
  folder = mkdtempSync(join(tmpdir(), 'exportd-units-'));
  // exportd is not installed here, and systemd checks that each program exists.
  for (const name of names)
    writeFileSync(
      join(folder, name),
      readFileSync(join(units, name), 'utf8').replaceAll(command, join(root, 'src/cli/exportd.mjs')),
    );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The values of a key in a unit. */
const valuesOf = (name: string, key: string): string[] =>
  readFileSync(join(units, name), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith(`${key}=`))
    .map((line) => line.slice(key.length + 1));

describe('the systemd units', () => {
  it('pass systemd-analyze verify', () => {
    const instances = names.map((name) => join(folder, name.replace('@.', '@1.')));
    const { status, stdout, stderr } = spawnSync(analyze, ['verify', '--man=no', ...instances], {
      encoding: 'utf8',
      env: { ...process.env, SYSTEMD_UNIT_PATH: `${folder}:` },
    });
    expect({ status, output: stdout + stderr }).toEqual({ status: 0, output: '' });
  });

  it.each(names)('%s is protected', (name) => {
    const args = ['security', '--offline=true', `--threshold=${String(maxExposure)}`, '--no-pager'];
    expect(() =>
      execFileSync(analyze, [...args, join(folder, name)], { encoding: 'utf8', stdio: 'pipe' }),
    ).not.toThrow();
  });

  it('give the key that decrypts secrets to workers only, whose user no server has', () => {
    const [server, worker] = ['exportd-server.service', 'exportd-worker@.service'] as const;
    expect(valuesOf(worker, 'EnvironmentFile')).toEqual(['/etc/exportd/environment', '/etc/exportd/worker']);
    for (const name of [server, 'exportd-migrate.service']) {
      expect(valuesOf(name, 'EnvironmentFile')).toEqual(['/etc/exportd/environment', '/etc/exportd/server']);
      expect(valuesOf(name, 'User')).not.toEqual(valuesOf(worker, 'User'));
    }
  });

  it('set up the role of queries after the migrations', () => {
    const commands = valuesOf('exportd-migrate.service', 'ExecStart').map(
      (line) => line.split('exportd ')[1],
    );
    expect(commands).toEqual(['migrate', 'query setup']);
  });

  it('run the command of the package', () => {
    for (const name of names)
      for (const line of valuesOf(name, 'ExecStart')) expect(line.split(' ')[0]).toBe(command);
  });

  it.each(names.filter((name) => !name.includes('migrate')))(
    '%s sets settings that exist, and gives the process more time to end than it takes',
    (name) => {
      const pairs = valuesOf(name, 'Environment').flatMap((line) => line.split(' '));
      const variables = Object.fromEntries(
        pairs.map((pair) => pair.replace('%i', '1').split('=') as [string, string]),
      );
      const { EXPORTD_SHUTDOWN_TIMEOUT } = settingsOf(variables);
      expect(Number(valuesOf(name, 'TimeoutStopSec')[0]) * 1_000).toBeGreaterThan(EXPORTD_SHUTDOWN_TIMEOUT);
    },
  );
});
