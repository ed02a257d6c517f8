import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { LaunchError } from '../launch_error.ts';
import { findOnPath } from './executable.ts';

/** How a program is run by a user that is not root. */
export interface Unprivileged {
  /** Owner of the files that the program writes; undefined when this process is not root itself. */
  readonly owner?: { readonly uid: number; readonly gid: number };
  /** The program and arguments that lead to the wanted one. */
  readonly prefix: readonly string[];
  /** What spawn has to switch itself. */
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
      'PostgreSQL does not run as root, and this system has no user "nobody": start as another user, or set DATABASE_URL.',
    );
  return { uid, gid };
}

/**
 * Ways to become nobody, the best one first. The clone may lie below a folder that only root may pass, so with setpriv
 * the right to read and pass folders goes along; writing stays with the owner of the files. Without `no_setuid_fixup`
 * access(2), by which initdb looks for postgres, would leave that right out of account.
 */
function ways({ uid, gid }: { uid: number; gid: number }): Unprivileged[] {
  const owner = { uid, gid };
  const setpriv = findOnPath('setpriv');
  const passing = '+dac_read_search';
  const switches = [`--reuid=${String(uid)}`, `--regid=${String(gid)}`, '--clear-groups'];
  const plainly: Unprivileged = { owner, prefix: [], spawn: owner };
  if (setpriv === undefined) return [plainly];
  // initdb asks with access(2), for which the kernel leaves out the rights of a user that is not root, unless told.
  const asking = '--securebits=+no_setuid_fixup';
  const prefix = [setpriv, ...switches, asking, `--inh-caps=${passing}`, `--ambient-caps=${passing}`];
  return [{ owner, prefix, spawn: {} }, plainly];
}

/**
 * Finds how to run `program` without being root, in a way that lets it reach `folder`.
 * @throws LaunchError when there is none.
 */
export function findUnprivileged(program: string, folder: string): Unprivileged {
  if (process.getuid?.() !== 0) return { prefix: [], spawn: {} };
  const probe = ['/bin/sh', '-c', 'cd "$1" && test -x "$0" && exec "$0" --version', program, folder];
  for (const way of ways(findNobody())) {
    const [command = '', ...args] = [...way.prefix, ...probe];
    if (spawnSync(command, args, { cwd: '/', stdio: 'ignore', ...way.spawn }).status === 0) return way;
  }
  throw new LaunchError(
    `PostgreSQL does not run as root, and the user nobody cannot reach ${program} and ${folder}: ` +
      'install setpriv (util-linux), move the clone to a folder that every user may enter, start as another user, or set DATABASE_URL.',
  );
}
