import { execFile } from 'node:child_process';
import { copyFileSync, cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cacheFolder } from '../../src/local_stack/data_folder.ts';
import { findOnPath, installOnce } from '../../src/local_stack/servers/find_server.ts';

const run = promisify(execFile);

/** A program that some tests need beside Node and the servers. */
export type ProgramName =
  | 'prometheus'
  | 'promtool'
  | 'helm'
  | 'docker-compose'
  | 'chromium'
  | 'schemathesis'
  | 'systemd-analyze';

interface TestProgram {
  /** The part of the folder's name in the cache that changes with the program. */
  readonly version: string;
  /** What a person runs to install it, for the error. */
  readonly command: string;
  /** Puts the executable into a folder; absent for programs that only the system's packages install. */
  readonly install?: (folder: string) => Promise<unknown>;
}

const helmVersion = 'v3.19.5';
const schemathesisVersion = '4.32.5';

const programs: Readonly<Record<ProgramName, TestProgram>> = {
  prometheus: {
    version: 'debian',
    command: 'apt-get install prometheus',
    install: (folder) =>
      unpackFromDebian(['prometheus'], (unpacked) =>
        copyFileSync(join(unpacked, 'usr/bin/prometheus'), join(folder, 'prometheus')),
      ),
  },
  promtool: {
    version: 'debian',
    command: 'apt-get install prometheus',
    install: (folder) =>
      unpackFromDebian(['prometheus'], (unpacked) =>
        copyFileSync(join(unpacked, 'usr/bin/promtool'), join(folder, 'promtool')),
      ),
  },
  'docker-compose': {
    version: 'debian',
    command: 'apt-get install docker-compose',
    install: installCompose,
  },
  helm: {
    version: helmVersion,
    command: `go install helm.sh/helm/v3/cmd/helm@${helmVersion}`,
    install: (folder) =>
      run('go', ['install', `helm.sh/helm/v3/cmd/helm@${helmVersion}`], {
        env: { ...process.env, GOBIN: folder },
      }),
  },
  schemathesis: {
    version: schemathesisVersion,
    command: `pip install schemathesis==${schemathesisVersion}`,
    install: installSchemathesis,
  },
  chromium: { version: 'system', command: 'apt-get install chromium' },
  'systemd-analyze': { version: 'system', command: 'apt-get install systemd' },
};

/** Unpacks Debian packages into a folder, which needs neither root nor the packages that they depend on. */
async function unpackFromDebian(
  names: readonly string[],
  use: (folder: string) => void | Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'exportd-package-'));
  const unpacked = join(folder, 'unpacked');
  try {
    // apt's own sandbox user may not enter the folder.
    await run('apt-get', ['download', '-o', 'APT::Sandbox::User=root', ...names], { cwd: folder });
    for (const archive of readdirSync(folder).filter((entry) => entry.endsWith('.deb')))
      await run('dpkg', ['-x', archive, unpacked], { cwd: folder });
    await use(unpacked);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The Python modules that docker-compose imports. */
const composeModules = [
  ...['attr', 'certifi', 'chardet', 'charset-normalizer', 'distutils', 'docker', 'dockerpty', 'docopt'],
  ...['dotenv', 'idna', 'jsonschema', 'pyrsistent', 'requests', 'six', 'texttable', 'urllib3', 'websocket'],
  'yaml',
].map((module) => `python3-${module}`);

/** docker-compose with its modules, and a script that runs it with them. */
function installCompose(folder: string): Promise<void> {
  return unpackFromDebian(['docker-compose', ...composeModules], (unpacked) => {
    cpSync(join(unpacked, 'usr/lib/python3/dist-packages'), join(folder, 'modules'), { recursive: true });
    const main = 'from compose.cli.main import main; main()';
    const script = `#!/bin/sh\nPYTHONPATH="$(dirname "$0")/modules" exec /usr/bin/python3 -c '${main}' "$@"\n`;
    writeFileSync(join(folder, 'docker-compose'), script, { mode: 0o755 });
  });
}

/** schemathesis with its modules, and a script that runs it with them. */
async function installSchemathesis(folder: string): Promise<void> {
  const modules = join(folder, 'modules');
  await run('python3', [
    '-m',
    'pip',
    'install',
    '--quiet',
    '--target',
    modules,
    `schemathesis==${schemathesisVersion}`,
  ]);
  const main = 'from schemathesis.cli import schemathesis; schemathesis()';
  const script = `#!/bin/sh\nPYTHONPATH="$(dirname "$0")/modules" exec python3 -c '${main}' "$@"\n`;
  writeFileSync(join(folder, 'schemathesis'), script, { mode: 0o755 });
}

/**
 * Path of a program: from PATH, else from the cache, into which it is installed first where that needs no root. A test
 * that needs it is never skipped.
 * @throws Error that names the command that installs it.
 */
export async function programPath(name: ProgramName): Promise<string> {
  const onPath = findOnPath(name);
  if (onPath !== undefined) return onPath;
  const { version, command, install } = programs[name];
  const advice = `Tests need ${name}, which is not on PATH: run "${command}".`;
  if (install === undefined) throw new Error(`${advice} .ci/run does so as root.`);
  const folder = join(cacheFolder('programs'), `${name}-${version}`);
  const installation = {
    folder,
    program: join(folder, name),
    title: name,
    install: async (draft: string) => {
      await install(draft);
    },
  };
  try {
    return await installOnce(installation, () => undefined);
  } catch (error) {
    throw new Error(`${advice} Installing it failed: ${String(error)}`, { cause: error });
  }
}
