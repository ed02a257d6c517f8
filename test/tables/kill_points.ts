import type { ExportHarness } from '../export/export_harness.ts';

/** Calls of an attempt at a small interval, in their order, before or after which its worker is killed. */
export const killPoints = [
  // Starts the attempt and reserves the generation too.
  ['before', 'planWholeFile'],
  ['after', 'planWholeFile'],
  ['before', 'putFile'],
  ['after', 'putFile'],
  // Records the file too.
  ['before', 'finishExport'],
  ['after', 'finishExport'],
  ['before', 'startPublish'],
  ['after', 'startPublish'],
  ['before', 'putManifest'],
  ['after', 'putManifest'],
  ['before', 'planTableCommit'],
  ['after', 'planTableCommit'],
  ['before', 'create'],
  ['after', 'create'],
  ['before', 'recordTableCommit'],
  ['after', 'recordTableCommit'],
  ['before', 'complete'],
  ['after', 'complete'],
] as const;

/**
 * Dependencies of an attempt whose worker is killed before or after its first call of this name, of the journal, the bucket or the
 * log of the table. Nothing that it does afterwards reaches any of them.
 */
export function withKill(
  { recorder, commits, openDestination }: Pick<ExportHarness, 'recorder' | 'commits' | 'openDestination'>,
  [when, call]: readonly ['before' | 'after', string],
) {
  let dead = false;
  const kill = (): never => {
    dead = true;
    throw new Error('killed');
  };
  const mortal = <Calls extends object>(calls: Calls): Calls =>
    new Proxy(calls, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function' || name === 'close') return value;
        return (...input: unknown[]): unknown => {
          if (dead || (name === call && when === 'before')) kill();
          const result: unknown = Reflect.apply(value, target, input);
          if (name === 'folder') return mortal(result as object);
          return name === call ? Promise.resolve(result).then(kill) : result;
        };
      },
    });
  return {
    isDead: () => dead,
    recorder: mortal(recorder),
    commits: mortal(commits),
    openDestination: async (...input: Parameters<typeof openDestination>) =>
      mortal(await openDestination(...input)),
  };
}
