import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { createSecrets } from '../../src/cli/commands/secrets.ts';
import { createKeyRing } from '../../src/config/key_ring.ts';
import { settingsOf } from './settings_of.ts';

interface Service {
  readonly image: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, unknown>> | readonly string[];
  readonly stop_grace_period?: string;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly command?: readonly string[];
  readonly networks?: readonly string[];
}

const root = join(import.meta.dirname, '../..');
const text = readFileSync(join(root, 'docker-compose.yml'), 'utf8');
const { services, networks } = parse(text, { merge: true }) as {
  services: Readonly<Record<string, Service>>;
  networks: { storage: { ipam: { config: readonly { subnet: string }[] } } };
};
const parts = ['server', 'worker', 'migrate', 'query-role', 'demo'];

/** The variables that the file takes from `.env`, as `exportd secrets create` writes them. */
const secrets = createSecrets(new Date());
const variablesOf = (name: string): Record<string, string> =>
  Object.fromEntries(
    Object.entries(services[name]?.environment ?? {}).map(([variable, value]) => [
      variable,
      value.replaceAll(/\$\{(\w+):\?[^}]*\}/g, (_, secret: string) => secrets[secret] ?? 'unknown'),
    ]),
  );

describe('docker-compose.yml', () => {
  it.each(parts)('gives the %s settings that exist, and more time to end than it takes', (name) => {
    const { stop_grace_period = '' } = services[name] ?? {};
    const { EXPORTD_SHUTDOWN_TIMEOUT } = settingsOf(variablesOf(name));
    expect(Number.parseInt(stop_grace_period, 10) * 1_000).toBeGreaterThan(EXPORTD_SHUTDOWN_TIMEOUT);
  });

  it.each(parts)('runs the %s without rights and with a file system that is read-only', (name) => {
    expect(services[name]).toMatchObject({ read_only: true, cap_drop: ['ALL'] });
  });

  it('pins every image that it does not build by digest', () => {
    const images = Object.values(services).map(({ image }) => image);
    for (const image of images.filter((name) => !name.startsWith('exportd:')))
      expect(image).toMatch(/^[^@]+:v?\d+\.\d+(\.\d+)?@sha256:[0-9a-f]{64}$/);
  });

  it('takes every secret from the variables that exportd creates, and does not start without them', () => {
    const taken = [...text.matchAll(/\$\{(\w+)(:\?)?/g)].map(([, name, required]) => [name, required]);
    expect([...new Set(taken.map(([name]) => name))].toSorted()).toEqual(Object.keys(secrets).toSorted());
    expect(taken.filter(([, required]) => required === undefined)).toEqual([]);
    const secretVariables = Object.values(services).flatMap(({ environment = {} }) =>
      Object.entries(environment).filter(([variable]) => /PASSWORD|PWD|SECRET|_KEYS/.test(variable)),
    );
    expect(secretVariables.filter(([, value]) => !/^\$\{\w+:\?/.test(value))).toEqual([]);
  });

  it('gives the key that decrypts secrets to workers only', () => {
    expect(createKeyRing(variablesOf('worker').EXPORTD_ENCRYPTION_KEYS).opens).toBe(true);
    for (const name of ['server', 'query-role', 'demo'])
      expect(createKeyRing(variablesOf(name).EXPORTD_ENCRYPTION_KEYS).opens).toBe(false);
    expect(services.migrate?.environment).not.toHaveProperty('EXPORTD_ENCRYPTION_KEYS');
  });

  it('runs queries under a role of their own, which is set up before servers and workers start', () => {
    expect(services['query-role']?.command?.slice(0, 2)).toEqual(['query', 'setup']);
    for (const name of ['server', 'worker']) {
      const { DATABASE_URL = '', EXPORTD_QUERY_DATABASE_URL = '' } = variablesOf(name);
      expect(new URL(EXPORTD_QUERY_DATABASE_URL).username).not.toBe(new URL(DATABASE_URL).username);
      expect(services[name]?.depends_on).toMatchObject({
        'query-role': { condition: 'service_completed_successfully' },
      });
    }
  });

  it('allows the network of the S3 server alone as a private endpoint', () => {
    const [storage] = networks.storage.ipam.config;
    expect(variablesOf('worker').EXPORTD_ALLOW_PRIVATE_ENDPOINTS).toBe(storage?.subnet);
    expect(services.s3?.networks).toEqual(['storage']);
    for (const name of ['postgres', 'temporal'])
      expect(services[name]?.networks ?? []).not.toContain('storage');
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
