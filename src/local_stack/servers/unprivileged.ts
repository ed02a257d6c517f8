import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { LaunchError } from '../launch_error.ts';
import { findOnPath } from './executable.ts';

/** How to run a program as a user other than root. */
export interface Unprivileged {
  /** Owner of the files that the program writes; undefined when this process is not root. */
  readonly owner?: { readonly uid: number; readonly gid: number };
  /** Command and arguments that switch the user and then run the program. */
  readonly prefix: readonly string[];
  /** User and group that spawn has to switch to. */
  readonly spawn: { readonly uid?: number; readonly gid?: number };
}

function findNobody(): { uid: number; gid: number } {
  const entry = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .find(([name]) => name === 'nobody');
  const [uid, gid] = [Number(entry?.[2]), Number(entry?.[3])];
  if (entry === undefined || !Number.isInteger(uid) || !Number.isInteger(gid))
    throw new LaunchError(
      'PostgreSQL does not run as root, and this system has no user "nobody": run as another user, or set DATABASE_URL.',
    );
  return { uid, gid };
}

/**
 * Ways to switch to the user nobody, the best one first. The clone may be in a folder that only root can enter, so setpriv
 * keeps the capability to read and enter folders. Without `no_setuid_fixup`, access(2) would ignore that capability, and
 * initdb uses it to find postgres.
 */
function candidates({ uid, gid }: { uid: number; gid: number }): Unprivileged[] {
  const owner = { uid, gid };
  const setpriv = findOnPath('setpriv');
  const capability = '+dac_read_search';
  const switches = [`--reuid=${String(uid)}`, `--regid=${String(gid)}`, '--clear-groups'];
  const withoutSetpriv: Unprivileged = { owner, prefix: [], spawn: owner };
  if (setpriv === undefined) return [withoutSetpriv];
  const securebits = '--securebits=+no_setuid_fixup';
  const prefix = [
    setpriv,
    ...switches,
    securebits,
    `--inh-caps=${capability}`,
    `--ambient-caps=${capability}`,
  ];
  return [{ owner, prefix, spawn: {} }, withoutSetpriv];
}

/**
 * Finds a way to run `program` as a user other than root that can enter `folder`.
 * @throws LaunchError when there is none.
 */
export function findUnprivileged(program: string, folder: string): Unprivileged {
  if (process.getuid?.() !== 0) return { prefix: [], spawn: {} };
  const probe = ['/bin/sh', '-c', 'cd "$1" && test -x "$0" && exec "$0" --version', program, folder];
  for (const candidate of candidates(findNobody())) {
    const [command = '', ...args] = [...candidate.prefix, ...probe];
    if (spawnSync(command, args, { cwd: '/', stdio: 'ignore', ...candidate.spawn }).status === 0)
      return candidate;
  }
  throw new LaunchError(
    `PostgreSQL does not run as root, and the user nobody cannot enter ${program} and ${folder}: ` +
      'install setpriv (util-linux), move the clone to a folder that every user can enter, run as another user, or set DATABASE_URL.',
  );
}
