import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { settingsOf } from './settings_of.ts';

interface Service {
  readonly image: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, unknown>> | readonly string[];
  readonly stop_grace_period?: string;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
}

const root = join(import.meta.dirname, '../..');
const { services } = parse(readFileSync(join(root, 'docker-compose.yml'), 'utf8'), { merge: true }) as {
  services: Readonly<Record<string, Service>>;
};
const parts = ['server', 'worker', 'migrate'];

describe('docker-compose.yml', () => {
  it.each(parts)('gives the %s settings that exist, and more time to end than it takes', (name) => {
    const { environment = {}, stop_grace_period = '' } = services[name] ?? {};
    // The key that a user may set.
    const variables = Object.fromEntries(
      Object.entries(environment).map(([variable, value]) => [
        variable,
        value.replace(/^\$\{\w+:-(.*)\}$/, '$1'),
      ]),
    );
    const { EXPORTD_SHUTDOWN_TIMEOUT } = settingsOf(variables);
    expect(Number.parseInt(stop_grace_period, 10) * 1_000).toBeGreaterThan(EXPORTD_SHUTDOWN_TIMEOUT);
  });

  it.each(parts)('runs the %s without rights and with a file system that is read-only', (name) => {
    expect(services[name]).toMatchObject({ read_only: true, cap_drop: ['ALL'] });
  });

  it('pins every image', () => {
    for (const { image } of Object.values(services)) expect(image).toMatch(/:v?\d+\.\d+(\.\d+)?$/);
  });

  it('mounts files that exist', () => {
    const mounted = Object.values(services).flatMap(({ volumes = [] }) =>
      volumes.map((volume) => volume.split(':')[0] ?? '').filter((source) => source.startsWith('.')),
    );
    expect(mounted).not.toEqual([]);
    for (const source of mounted) expect([source, existsSync(join(root, source))]).toEqual([source, true]);
  });

  it('names services that exist', () => {
    const names = Object.values(services).flatMap(({ depends_on = [] }) =>
      Array.isArray(depends_on) ? (depends_on as string[]) : Object.keys(depends_on),
    );
    for (const name of names) expect(Object.keys(services)).toContain(name);
  });
});
