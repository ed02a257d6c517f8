import { type ChildProcess, execFile, spawn } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { assignPorts } from '../../src/local_stack/ports.ts';
import { fromSetUp } from '../setup/environment.ts';
import { programPath } from '../setup/programs.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';

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
        const into = isFolder || source.startsWith('/') ? target : join(target, basename(source));
        cpSync(from, join(place, into), { recursive: true, verbatimSymlinks: true });
      }
    } else if (name === 'RUN') {
      // Absolute paths are those of the folder.
      const command = rest.replaceAll(/(?<=^|\s)\/(?=[a-z])/g, `${folder}/`);
      await run('sh', ['-euc', command], { cwd: place, env: environment, maxBuffer: 2 ** 26 });
    }
}

/**
 * Makes the folder of an image a root that a process can live in: with the libraries and programs of this machine in place of
 * those of the image of Node, and with the link to exportd that the image has.
 */
function makeRoot(image: string, node: string): void {
  for (const name of [...hostFolders, 'tmp', 'dev', 'etc']) mkdirSync(join(image, name), { recursive: true });
  copyFileSync(node, join(image, 'usr/local/bin/node'));
  const link = join(image, 'usr/local/bin/exportd');
  const target = readlinkSync(link).slice(image.length);
  rmSync(link);
  symlinkSync(target, link);
}

/** What a container has of its machine here, since there is no image of Node. */
const hostFolders = ['usr/bin', 'usr/lib', 'usr/lib64', 'bin', 'lib', 'lib64', 'proc'];

/**
 * A script for `sh` in a mount namespace of its own: enters the root `$0` as the user `$1`, with a read-only root and an empty
 * /tmp, as `docker run --read-only --tmpfs /tmp` does, and runs the rest of the arguments.
 */
const enterRoot = `
root=$0 user=$1; shift
mount --make-rprivate /
mount --bind "$root" "$root"
for name in ${hostFolders.join(' ')}; do [ ! -e "/$name" ] || mount --rbind "/$name" "$root/$name"; done
mount --rbind /dev "$root/dev"
mount -o remount,ro,bind "$root"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
exec chroot --userspec="$user" --groups= "$root" "$@"
`;

/** The code with which a process ends and what it wrote. */
async function outcomeOf(child: ChildProcess): Promise<{ code: number | null; output: string }> {
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => (output += text));
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, output };
}

describe('the Dockerfile', () => {
  let folder: string;
  let running: ChildProcess | undefined;
  const database = useTestDatabase();
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'exportd-image-'));
  });
  afterAll(() => {
    running?.kill('SIGKILL');
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
      ['LICENSE', 'README.md', 'dist', 'node_modules', 'package.json', 'sbom.cdx.json', 'src'].sort(),
    );
    expect(readdirSync(join(image, 'exportd/node_modules'))).not.toContain('esbuild');
    // Half of all files: what only a compiler or a debugger of packages reads.
    const files = readdirSync(join(image, 'exportd/node_modules'), { recursive: true, encoding: 'utf8' });
    expect(files.filter((name) => /\.(map|ts|rs)$/.test(name))).toEqual([]);

    // By the link, as in the image.
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

  it('runs as a number on a read-only root, and ends by SIGTERM', async () => {
    const [, final = []] = stages;
    const valueOf = (name: string): string => final.find((one) => one.name === name)?.rest ?? '';
    const user = valueOf('USER');
    expect(user).toMatch(/^[1-9]\d*:[1-9]\d*$/);
    expect(valueOf('ENTRYPOINT')).toBe('["exportd"]');
    const variables = Object.fromEntries(
      valueOf('ENV')
        .split(/\s+/)
        // A value may have the sign too: NODE_OPTIONS.
        .map((pair) => pair.split(/=(.*)/) as [string, string]),
    );
    const { monitoring } = await assignPorts(join(folder, 'ports.json'), ['monitoring']);
    const environment = {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      ...variables,
      EXPORTD_PORT: '0',
      EXPORTD_MONITORING_PORT: String(monitoring),
      EXPORTD_WORKER_HTTP_PORT: String(monitoring),
      EXPORTD_HOST: '127.0.0.1',
      EXPORTD_MONITORING_HOST: '127.0.0.1',
      EXPORTD_WORKER_HTTP_HOST: '127.0.0.1',
      EXPORTD_ENCRYPTION_KEYS: `test:${Buffer.alloc(32, 1).toString('base64')}`,
      EXPORTD_TASK_QUEUE_PREFIX: 'image',
      DATABASE_URL: database.url,
      TEMPORAL_ADDRESS: fromSetUp('EXPORTD_TEST_TEMPORAL_ADDRESS'),
    };
    const image = join(folder, 'image');
    makeRoot(image, join(root, 'node_modules/.bin/node'));
    const inImage = (command: readonly string[], env: NodeJS.ProcessEnv = environment): ChildProcess =>
      spawn('unshare', ['--mount', 'sh', '-euc', enterRoot, image, user, ...command], {
        env,
        stdio: ['ignore', 'pipe', 'pipe'],
      });

    // Nothing but /tmp can be written, and not by root.
    const written = 'id -u; touch /tmp/x && ls /tmp; touch /x /exportd/x || true';
    expect(await outcomeOf(inImage(['sh', '-c', written]))).toMatchObject({
      code: 0,
      output: expect.stringMatching(/^1000\nx\n(?:touch: .*Read-only file system\n){2}$/),
    });

    for (const [part, line] of [
      ['server', 'Server is listening'],
      ['worker', 'The worker is running'],
    ] as const) {
      running = inImage(['exportd', part]);
      let log = '';
      const exited = outcomeOf(running);
      const ready = new Promise<void>((resolve) => {
        running?.stderr?.on('data', (text: string) => {
          log += text;
          if (log.includes(line)) resolve();
        });
      });
      await Promise.race([ready, exited]);
      expect(log).toContain(line);
      const [, check = ''] = /CMD (.*)/.exec(valueOf('HEALTHCHECK')) ?? [];
      const command = (JSON.parse(check) as string[]).map((one) => one.replace(':8001/', `:${monitoring}/`));
      expect(await outcomeOf(inImage(command))).toEqual({ code: 0, output: '' });
      running.kill('SIGTERM');
      expect(await exited).toMatchObject({ code: 0 });
    }
  });
});
