import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { programPath } from '../setup/programs.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../..');
const path = join(root, '.config/Dockerfile');

/** An instruction of a Dockerfile: `RUN`, and what follows it. */
interface Instruction {
  readonly name: string;
  readonly rest: string;
}

/** The instructions of each stage, with continued lines joined. */
const stages: readonly (readonly Instruction[])[] = readFileSync(path, 'utf8')
  .replaceAll(/^\s*#.*\n/gm, '')
  .replaceAll(/\\\n\s*/g, ' ')
  .split(/^FROM .*\n/m)
  .slice(1)
  .map((stage) =>
    stage
      .split('\n')
      .filter(Boolean)
      .map((line) => ({ name: line.slice(0, line.indexOf(' ')), rest: line.slice(line.indexOf(' ') + 1) })),
  );

const commit = '0123456789abcdef0123456789abcdef01234567';

/** Takes the steps of a stage in a folder in place of `/`. No step changes anything outside of it. */
async function takeSteps(
  steps: readonly Instruction[],
  folder: string,
  environment: NodeJS.ProcessEnv,
  copied: (from: string, options: string) => string,
): Promise<void> {
  let place = folder;
  for (const { name, rest } of steps)
    if (name === 'WORKDIR') {
      place = join(folder, rest);
      mkdirSync(place, { recursive: true });
    } else if (name === 'COPY') {
      const [, options = '', names = '', target = ''] = /^((?:--\S+ )*)(.+) (\S+)$/.exec(rest) ?? [];
      const sources = names.split(' ');
      for (const source of sources) {
        const from = copied(source, options);
        const isFolder = readdirSync(dirname(from), { withFileTypes: true }).some(
          (entry) => entry.name === source.split('/').at(-1) && entry.isDirectory(),
        );
        const into = isFolder || source.startsWith('/') ? target : join(target, source);
        cpSync(from, join(place, into), { recursive: true, verbatimSymlinks: true });
      }
    } else if (name === 'RUN') {
      // Absolute paths are those of the folder.
      const command = rest.replaceAll(/(?<=^|\s)\/(?=[a-z])/g, `${folder}/`);
      await run('sh', ['-euc', command], { cwd: place, env: environment, maxBuffer: 2 ** 26 });
    }
}

describe('the Dockerfile', () => {
  let folder: string;
  let server: ChildProcess | undefined;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'exportd-image-'));
  });
  afterAll(() => {
    server?.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });

  it('passes hadolint', async () => {
    expect((await run(await programPath('hadolint'), ['--no-color', path])).stdout).toBe('');
  });

  it('has steps that make an exportd, taken one by one in plain folders', async () => {
    const [build = [], final = []] = stages;
    const [buildFolder, image] = [join(folder, 'build'), join(folder, 'image')];
    for (const one of [buildFolder, image]) mkdirSync(join(one, 'usr/local/bin'), { recursive: true });
    // The Node of the image is that of the lock file.
    const node = join(root, 'node_modules/.bin');
    const environment = {
      ...process.env,
      PATH: [node, process.env.PATH].join(delimiter),
      SOURCE_COMMIT: commit,
      // Its own, since a step empties it.
      npm_config_cache: join(folder, 'npm'),
    };
    await takeSteps(build, buildFolder, environment, (source) => join(root, source));
    for (const name of ['npm', 'yarn']) symlinkSync('/nothing', join(image, 'usr/local/bin', name));
    await takeSteps(final, image, environment, (source, options) => {
      expect(options).toBe('--from=build ');
      return join(buildFolder, source);
    });

    expect(readdirSync(join(image, 'usr/local/bin'))).toEqual(['exportd']);
    // One library of the SDK is left, and no tool of the build.
    const releases = join(image, 'exportd/node_modules/@temporalio/core-bridge/releases');
    expect(readdirSync(releases)).toEqual([
      `${process.arch === 'x64' ? 'x86_64' : 'aarch64'}-unknown-linux-gnu`,
    ]);
    expect(readdirSync(join(image, 'exportd')).sort()).toEqual(
      ['LICENSE', 'README.md', 'dist', 'node_modules', 'package.json', 'src'].sort(),
    );
    expect(readdirSync(join(image, 'exportd/node_modules'))).not.toContain('esbuild');

    // By the link, as in the image; not as its user and not on a read-only root.
    const entry = join(image, 'exportd/src/cli/exportd.mjs');
    const program = [entry, 'version', '--json'];
    const { stdout } = await run(join(node, 'node'), program, { env: { PATH: environment.PATH } });
    expect(JSON.parse(stdout)).toMatchObject({ commit, schema: '0001_baseline' });
    await expect(
      run(join(node, 'node'), ['--eval', 'require("@temporalio/core-bridge")'], {
        cwd: join(image, 'exportd'),
      }),
    ).resolves.toBeDefined();
  });

  it('runs as a number, and its server ends by SIGTERM', async () => {
    const [, final = []] = stages;
    const valueOf = (name: string): string => final.find((one) => one.name === name)?.rest ?? '';
    expect(valueOf('USER')).toMatch(/^\d+:\d+$/);
    expect(valueOf('ENTRYPOINT')).toBe('["exportd"]');
    const variables = Object.fromEntries(
      valueOf('ENV')
        .split(/\s+/)
        .map((pair) => pair.split('=') as [string, string]),
    );
    server = spawn(
      join(root, 'node_modules/.bin/node'),
      [join(folder, 'image/exportd/src/cli/exportd.mjs'), 'server'],
      {
        env: {
          PATH: process.env.PATH,
          ...variables,
          // Other ports, and no server: it waits for its database.
          EXPORTD_PORT: '0',
          EXPORTD_MONITORING_PORT: '0',
          EXPORTD_HOST: '127.0.0.1',
          EXPORTD_MONITORING_HOST: '127.0.0.1',
          DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
          EXPORTD_ENCRYPTION_KEYS: `test:${Buffer.alloc(32, 1).toString('base64')}`,
        },
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    let log = '';
    const exited = new Promise((resolve) => server?.once('exit', resolve));
    const listening = new Promise<void>((resolve) => {
      server?.stderr?.setEncoding('utf8').on('data', (text: string) => {
        log += text;
        if (log.includes('Server is listening')) resolve();
      });
    });
    await Promise.race([listening, exited]);
    server.kill('SIGTERM');
    expect({ code: await exited, log }).toMatchObject({ code: 0 });
    expect(log).toContain('Server is listening');
  });
});
