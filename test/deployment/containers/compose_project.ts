import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseEnv, promisify } from 'node:util';
import { programPath } from '../../setup/programs.ts';
import { waitFor } from '../../setup/wait_for.ts';
import { buildImage, cloneForContainers, type Engine, exportdImage, openEngine } from './containers.ts';

const run = promisify(execFile);

/** The containers of docker-compose.yml, run from a fresh clone by the commands of `.config/README.md`. */
export interface ComposeProject {
  readonly engine: Engine;
  /** The variables of `.env`. */
  readonly secrets: Readonly<Record<string, string>>;
  /** Runs Compose in the clone. @returns what it printed @throws Error with it */
  compose(...args: readonly string[]): Promise<string>;
  /** Starts all containers, as `up --detach` with more arguments. */
  up(...args: readonly string[]): Promise<void>;
  /** Runs exportd in the container of a service. */
  exportd(service: 'server' | 'worker', ...args: readonly string[]): Promise<string>;
  /** The ids of the containers of a service. */
  containersOf(service: string): Promise<readonly string[]>;
  /** Stops all, and deletes containers and volumes. */
  close(): Promise<void>;
}

/** Builds the image, writes the secrets and opens the project; nothing runs yet. @param version of Compose */
export async function openComposeProject(version: 1 | 2): Promise<ComposeProject> {
  const program = await programPath(version === 1 ? 'docker-compose' : 'docker-compose-2');
  const engine = await openEngine();
  const clone = await cloneForContainers(engine);
  const socket = join(engine.folder, 'podman.sock');
  const service: ChildProcess = spawn('podman', ['system', 'service', '--time=0', `unix://${socket}`], {
    env: engine.environment,
    stdio: 'ignore',
  });
  const exited = once(service, 'exit');
  const environment = {
    ...engine.environment,
    DOCKER_HOST: `unix://${socket}`,
    COMPOSE_PROJECT_NAME: 'exportd-test',
  };
  const files = ['docker-compose.yml', join(import.meta.dirname, 'override.yml')];
  const compose = async (...args: readonly string[]): Promise<string> => {
    const options = files.flatMap((file) => ['--file', file]);
    const { stdout, stderr } = await run(program, [...options, '--project-directory', clone, ...args], {
      cwd: clone,
      env: environment,
      maxBuffer: Infinity,
    });
    return stdout + stderr;
  };
  const containersOf = async (name: string): Promise<string[]> =>
    (await compose('ps', '--quiet', name)).split('\n').filter(Boolean);
  const up: ComposeProject['up'] = async (...args) => {
    let isUp = false;
    const upping = compose('up', '--detach', '--no-build', ...args).finally(() => (isUp = true));
    upping.catch(() => undefined);
    // podman leaves health checks to systemd, which a container of CI lacks.
    const isDone = (): boolean => isUp;
    while (!isDone()) {
      const ids = await containersOf('postgres').catch(() => []);
      for (const id of ids) await engine.podman('healthcheck', 'run', id).catch(() => undefined);
      await delay(500);
    }
    await upping;
  };
  const close = async (): Promise<void> => {
    try {
      await compose('down', '--volumes', '--timeout', '1');
    } finally {
      service.kill('SIGTERM');
      await exited;
      await engine.close();
    }
  };
  let secrets: Record<string, string>;
  try {
    await buildImage(engine, clone);
    const options = ['run', '--rm', '--network=none', exportdImage, 'secrets', 'create'];
    const { stdout } = await run('podman', options, { env: engine.environment });
    writeFileSync(join(clone, '.env'), stdout, { mode: 0o600 });
    secrets = parseEnv(stdout) as Record<string, string>;
    await waitFor(() => existsSync(socket), 'podman listens');
  } catch (error) {
    service.kill('SIGTERM');
    await exited;
    await engine.close();
    throw error;
  }
  return {
    engine,
    secrets,
    compose,
    exportd: (name, ...args) => compose('exec', '-T', name, 'exportd', ...args),
    containersOf,
    up,
    close,
  };
}
