import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cacheFolder } from '../../../src/local_stack/data_folder.ts';
import { programPath } from '../../setup/programs.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../../..');

/** A container engine with the images of `images.sh`. */
export interface Engine {
  /** A folder of its own, which containers may mount. */
  readonly folder: string;
  /** The environment in which `podman` and `docker-compose` are run. */
  readonly environment: NodeJS.ProcessEnv;
  /** Runs podman. @returns what it printed @throws Error with it */
  podman(...args: readonly string[]): Promise<string>;
  close(): Promise<void>;
}

/**
 * Brings an engine and its images, which stay on the machine.
 * @throws Error on a machine that is no Debian, or without root: containers need both here.
 */
export async function openEngine(): Promise<Engine> {
  if (process.getuid?.() !== 0)
    throw new Error('Tests in containers need root: run "sudo npm run test:long".');
  const folder = mkdtempSync(join(tmpdir(), 'exportd-containers-'));
  const environment = { ...process.env, CONTAINERS_CONF: join(folder, 'containers.conf') };
  const script = (name: string, ...args: readonly string[]) =>
    run('bash', [join(import.meta.dirname, name), ...args], { env: environment, maxBuffer: Infinity });
  await script('engine.sh', folder);
  await script('images.sh', root, cacheFolder('servers'), await programPath('node-22'));
  return {
    folder,
    environment,
    podman: (...args) =>
      new Promise((resolve, reject) => {
        execFile('podman', args, { env: environment, maxBuffer: Infinity }, (error, stdout, stderr) => {
          if (error === null) resolve(stdout + stderr);
          else {
            const how = error.signal ?? `exit code ${String(error.code)}`;
            reject(new Error(`podman ${args.join(' ')}: ${how}\n${stdout}${stderr}`));
          }
        });
      }),
    close: () => {
      rmSync(folder, { recursive: true, force: true });
      return Promise.resolve();
    },
  };
}

/** A clone of the last commit of this one, as a stranger gets it, in the folder of the engine. @returns its path */
export async function cloneForContainers({ folder }: Engine): Promise<string> {
  const path = join(folder, 'clone');
  await run('git', ['clone', '--quiet', '--no-hardlinks', root, path]);
  // What is not committed yet is tested too.
  const { stdout } = await run('git', ['diff', '--binary', 'HEAD'], { cwd: root, maxBuffer: Infinity });
  if (stdout !== '') {
    writeFileSync(join(folder, 'changes.patch'), stdout);
    await run('git', ['apply', join(folder, 'changes.patch')], { cwd: path });
    const identity = ['-c', 'user.name=Test', '-c', 'user.email=test@example.com'];
    await run('git', [...identity, 'commit', '--quiet', '--all', '--message', 'Changes'], { cwd: path });
  }
  await run('chmod', ['-R', 'a+rX', folder]);
  return path;
}

/** The name of the image of exportd in the engine. */
export const exportdImage = 'localhost/exportd:0.2.0';

/** Builds the image of exportd from a clone, as the release does, on the stand-in of the image of Node. */
export async function buildImage(
  engine: Engine,
  clone: string,
  ...options: readonly string[]
): Promise<void> {
  const build = ['build', '--quiet', '--network=host', '--build-arg', 'NODE_IMAGE=localhost/node:24'];
  const file = join(clone, '.config/Dockerfile');
  await engine.podman(...build, ...options, '--file', file, '--tag', exportdImage, clone);
}
