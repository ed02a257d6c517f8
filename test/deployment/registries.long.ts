/** A release as `.github/workflows/release.yml` publishes it, to registries of this machine, and used from there. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { assignPorts } from '../../src/local_stack/ports.ts';
import { programPath } from '../setup/programs.ts';
import { waitFor } from '../setup/wait_for.ts';
import {
  buildImage,
  cloneForContainers,
  type Engine,
  exportdImage,
  openEngine,
} from './containers/containers.ts';

const run = promisify(execFile);
const version = '0.2.0';
const repository = 'example/exportd';

interface Workflow {
  readonly jobs: { readonly publish: { readonly steps: readonly { readonly run?: string }[] } };
}
const { jobs } = parse(
  readFileSync(join(import.meta.dirname, '../../.github/workflows/release.yml'), 'utf8'),
) as Workflow;

/** The commands of the step of the release that has these words. */
function stepWith(words: string): string {
  const found = jobs.publish.steps.flatMap(({ run: commands }) =>
    commands?.includes(words) === true ? [commands] : [],
  );
  if (found.length !== 1) throw new Error(`The release has ${found.length} steps with "${words}".`);
  return String(found[0]);
}

describe('a release', () => {
  let engine: Engine;
  let clone: string;
  let commit: string;
  /** Of npm's packages, and of images and charts. */
  let ports: Readonly<Record<'verdaccio' | 'registry', number>>;
  const servers: ChildProcess[] = [];

  beforeAll(async () => {
    engine = await openEngine();
    clone = await cloneForContainers(engine);
    commit = (await run('git', ['rev-parse', 'HEAD'], { cwd: clone })).stdout.trim();
    ports = await assignPorts(join(engine.folder, 'ports.json'), ['verdaccio', 'registry']);
    const upstream = (await run('npm', ['config', 'get', 'registry'])).stdout.trim();
    const configurations = {
      verdaccio: {
        storage: join(engine.folder, 'verdaccio'),
        uplinks: { upstream: { url: upstream } },
        packages: {
          exportd: { access: '$all', publish: '$all' },
          '**': { access: '$all', proxy: 'upstream' },
        },
        log: { type: 'stdout', level: 'warn' },
      },
      registry: {
        version: 0.1,
        log: { level: 'error' },
        storage: { filesystem: { rootdirectory: join(engine.folder, 'registry') } },
        http: { addr: `127.0.0.1:${ports.registry}` },
      },
    };
    for (const name of ['verdaccio', 'registry'] as const) {
      const file = join(engine.folder, `${name}.json`);
      writeFileSync(file, JSON.stringify(configurations[name]));
      const options = {
        verdaccio: ['--config', file, '--listen', `127.0.0.1:${ports.verdaccio}`],
        registry: ['serve', file],
      }[name];
      servers.push(spawn(await programPath(name), options, { stdio: 'ignore' }));
    }
    for (const path of [`${ports.verdaccio}/-/ping`, `${ports.registry}/v2/`])
      await waitFor(async () => {
        const response = await fetch(`http://127.0.0.1:${path}`).catch(() => undefined);
        return response?.ok;
      }, `a registry answers at ${path}`);
  });
  afterAll(async () => {
    for (const server of servers) server.kill('SIGTERM');
    await engine.close();
  });

  it('is a package that npm publishes without a warning, and that npx runs', async () => {
    const registry = `http://127.0.0.1:${ports.verdaccio}`;
    const npmrc = join(engine.folder, 'npmrc');
    writeFileSync(npmrc, `registry=${registry}/\n//127.0.0.1:${ports.verdaccio}/:_authToken=any\n`);
    const env = {
      ...process.env,
      npm_config_userconfig: npmrc,
      npm_config_registry: `${registry}/`,
      npm_config_cache: join(engine.folder, 'npm'),
      GITHUB_REPOSITORY: repository,
      SOURCE_COMMIT: commit,
    };
    const take = (commands: string) =>
      run('bash', ['-euc', commands], { cwd: clone, env, maxBuffer: Infinity });
    await take('npm ci');
    await take(stepWith('npm pkg delete private'));
    await take(stepWith('npm pack'));
    // Only a runner of GitHub has the identity that provenance needs.
    const publish = stepWith('npm publish').replace(' --provenance', '');
    for (const commands of [`${publish} --dry-run`, publish]) {
      const { stderr } = await take(commands);
      expect(stderr.split('\n').filter((line) => /npm (warn|error)/i.test(line))).toEqual([]);
    }

    const place = join(engine.folder, 'stranger');
    mkdirSync(place);
    const options = ['--yes', `exportd@${version}`, 'version', '--json'];
    const { stdout } = await run('npx', options, { cwd: place, env, maxBuffer: Infinity });
    expect(JSON.parse(stdout)).toMatchObject({ version, commit });
    const { stdout: shown } = await run('npm', ['view', `exportd@${version}`, '--json'], { env });
    expect(JSON.parse(shown)).toMatchObject({
      license: 'MIT',
      repository: { url: `git+https://github.com/${repository}.git` },
    });
  });

  it('is an image with labels and a list of its packages, which runs by its digest', async () => {
    const pushed = `127.0.0.1:${ports.registry}/${repository}`;
    const source = `https://github.com/${repository}`;
    const labels = ['--label', `org.opencontainers.image.source=${source}`];
    await buildImage(engine, clone, '--build-arg', `SOURCE_COMMIT=${commit}`, ...labels);
    const digestFile = join(engine.folder, 'digest');
    await engine.podman(
      'push',
      '--tls-verify=false',
      '--digestfile',
      digestFile,
      exportdImage,
      `${pushed}:${version}`,
    );
    const image = `${pushed}@${readFileSync(digestFile, 'utf8')}`;
    await engine.podman('pull', '--quiet', '--tls-verify=false', image);

    const podman = async (...args: readonly string[]): Promise<string> =>
      (await run('podman', args, { env: engine.environment, maxBuffer: Infinity })).stdout;
    const inImage = ['run', '--rm', '--network=none', '--read-only'];
    expect(JSON.parse(await podman(...inImage, image, 'version', '--json'))).toMatchObject({
      version,
      commit,
    });
    const [inspected] = JSON.parse(await podman('image', 'inspect', image)) as [{ Labels: object }];
    expect(inspected.Labels).toMatchObject({
      'org.opencontainers.image.title': 'exportd',
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.revision': commit,
      'org.opencontainers.image.licenses': 'MIT',
      'org.opencontainers.image.source': source,
    });
    const listed = await podman(...inImage, '--entrypoint', 'cat', image, '/exportd/sbom.cdx.json');
    const { components } = JSON.parse(listed) as {
      components: readonly { name: string; version: string; licenses?: readonly unknown[] }[];
    };
    const { dependencies } = JSON.parse(readFileSync(join(clone, 'package.json'), 'utf8')) as {
      dependencies: Readonly<Record<string, string>>;
    };
    const versions = Object.fromEntries(components.map((one) => [one.name, one.version]));
    expect(versions).toMatchObject(dependencies);
    // A part of the bundle.
    expect(versions).toHaveProperty('preact');
  });

  it('is a chart that Helm renders from its registry', async () => {
    const helm = await programPath('helm');
    const place = join(engine.folder, 'chart');
    const charts = `oci://127.0.0.1:${ports.registry}/charts`;
    await run(helm, ['package', '.config/helm', '--destination', place], { cwd: clone });
    await run(helm, ['push', join(place, `exportd-${version}.tgz`), charts, '--plain-http']);
    const secrets = ['shared', 'server', 'worker'].flatMap((name) => ['--set', `secrets.${name}=${name}`]);
    const { stdout } = await run(helm, [
      'template',
      'exportd',
      `${charts}/exportd`,
      '--version',
      version,
      '--plain-http',
      '--kube-version',
      '1.30',
      ...secrets,
      '--set',
      `image.repository=127.0.0.1:${ports.registry}/${repository}`,
    ]);
    expect(stdout).toContain(`image: 127.0.0.1:${ports.registry}/${repository}:${version}`);
    expect(stdout).toContain(`helm.sh/chart: exportd-${version}`);
  });
});
