import { execFile } from 'node:child_process';
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cacheFolder } from '../../src/local_stack/cache_folder.ts';
import { installOnce } from '../../src/local_stack/install_once.ts';
import { findOnPath } from '../../src/local_stack/servers/executable.ts';

const run = promisify(execFile);

/** A program that some tests need beside Node and the servers. */
export type ProgramName = 'promtool' | 'helm' | 'chromium' | 'systemd-analyze';

interface TestProgram {
  /** The part of the folder's name in the cache that changes with the program. */
  readonly version: string;
  /** What a person runs to install it, for the error. */
  readonly command: string;
  /** Puts the executable into a folder; absent for programs that only the system's packages install. */
  readonly install?: (folder: string) => Promise<unknown>;
}

const helmVersion = 'v3.19.0';

const programs: Readonly<Record<ProgramName, TestProgram>> = {
  promtool: {
    version: 'debian',
    command: 'apt-get install prometheus',
    install: (folder) => unpackFromDebian('prometheus', 'usr/bin/promtool', join(folder, 'promtool')),
  },
  helm: {
    version: helmVersion,
    command: `go install helm.sh/helm/v3/cmd/helm@${helmVersion}`,
    install: (folder) =>
      run('go', ['install', `helm.sh/helm/v3/cmd/helm@${helmVersion}`], {
        env: { ...process.env, GOBIN: folder },
      }),
  },
  chromium: { version: 'system', command: 'apt-get install chromium' },
  'systemd-analyze': { version: 'system', command: 'apt-get install systemd' },
};

/** Copies a file out of a Debian package, which needs neither root nor its dependencies. */
async function unpackFromDebian(name: string, file: string, target: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'exportd-package-'));
  try {
    // apt's own sandbox user may not enter the folder.
    await run('apt-get', ['download', '-o', 'APT::Sandbox::User=root', name], { cwd: folder });
    const archive = readdirSync(folder).find((entry) => entry.endsWith('.deb'));
    if (archive === undefined) throw new Error(`apt-get download ${name} has left no package.`);
    await run('dpkg', ['-x', archive, 'unpacked'], { cwd: folder });
    copyFileSync(join(folder, 'unpacked', file), target);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
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
  const advice = `Tests need ${name}, which is not on PATH: run "${command}" (.ci/run does so as root).`;
  if (install === undefined) throw new Error(advice);
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
