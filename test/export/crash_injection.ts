import type { RunRecorder } from '../../src/decisions/run_recorder.ts';
import type { Destination, OpenDestination } from '../../src/destination/open_destination.ts';
import type { FileUpload } from '../../src/destination/destination.ts';
import type { ExportHarness } from './export_harness.ts';

/** Called before, or where noted after, calls of an attempt, in the order in which they occur. */
export interface Interruptions {
  readonly planPart?: (partNumber: number) => Promise<void> | void;
  readonly putPart?: (partNumber: number) => Promise<void> | void;
  /** After a part has arrived. */
  readonly arrived?: (partNumber: number) => Promise<void> | void;
  readonly listParts?: () => Promise<void> | void;
  readonly complete?: () => Promise<void> | void;
  /** After the upload was completed. */
  readonly completed?: () => Promise<void> | void;
  /** Before a file is written in one request, which the journal knows. */
  readonly putFile?: () => Promise<void> | void;
  /** After a file was written in one request. */
  readonly written?: () => Promise<void> | void;
  /** Before publishing is claimed. */
  readonly putManifest?: () => Promise<void> | void;
  /** After the manifest was written. */
  readonly published?: () => Promise<void> | void;
  /** Before a commit to a table is sent. */
  readonly commit?: () => Promise<void> | void;
  /** After a commit to a table was written, or its version was taken. */
  readonly committed?: () => Promise<void> | void;
}

/** Dependencies of an attempt with hooks. It collects the sizes of sent parts by number, and the numbers of arrived and listed parts. */
export function withInterruptions(
  harness: Pick<ExportHarness, 'recorder' | 'commits' | 'openDestination'>,
  interruptions: Interruptions,
) {
  const sent = new Map<number, number>();
  const arrived = new Set<number>();
  const listed = new Set<number>();
  const upload = (real: FileUpload): FileUpload => ({
    ...real,
    putPart: async (number, bytes, signal) => {
      await interruptions.putPart?.(number);
      sent.set(number, bytes.length);
      const part = await real.putPart(number, bytes, signal);
      arrived.add(number);
      await interruptions.arrived?.(number);
      return part;
    },
    listParts: async (signal) => {
      await interruptions.listParts?.();
      const parts = await real.listParts(signal);
      parts?.forEach(({ part_number }) => listed.add(part_number));
      return parts;
    },
    complete: async (parts, bytes, signal) => {
      await interruptions.complete?.();
      const written = await real.complete(parts, bytes, signal);
      await interruptions.completed?.();
      return written;
    },
  });
  const openDestination: OpenDestination = async (spec, onError): Promise<Destination> => {
    const real = await harness.openDestination(spec, onError);
    return {
      ...real,
      createUpload: async (...input) => upload(await real.createUpload(...input)),
      resumeUpload: (reference) => upload(real.resumeUpload(reference)),
      putFile: async (...input) => {
        await interruptions.putFile?.();
        const written = await real.putFile(...input);
        await interruptions.written?.();
        return written;
      },
      folder: (root) => {
        const store = real.folder(root);
        return {
          ...store,
          create: async (...input) => {
            await interruptions.commit?.();
            const etag = await store.create(...input);
            await interruptions.committed?.();
            return etag;
          },
        };
      },
      putManifest: async (...input) => {
        await interruptions.putManifest?.();
        const published = await real.putManifest(...input);
        await interruptions.published?.();
        return published;
      },
    };
  };
  const recorder: RunRecorder = {
    ...harness.recorder,
    planPart: async (runId, attempt, key, part) => {
      await interruptions.planPart?.(part.part_number);
      await harness.recorder.planPart(runId, attempt, key, part);
    },
  };
  return { openDestination, recorder, commits: harness.commits, sent, arrived, listed };
}

/**
 * Dependencies of an attempt that crashes at one of these calls. Nothing that it does afterwards reaches the journal or the
 * bucket; requests in flight still arrive.
 */
export function withCrash(
  harness: Pick<ExportHarness, 'recorder' | 'commits' | 'openDestination'>,
  at: keyof Interruptions,
  occurrence = 1,
) {
  let calls = 0;
  let dead = false;
  const die = (): Promise<void> => {
    calls += 1;
    dead ||= calls >= occurrence;
    return dead ? Promise.reject(new Error('crashed')) : Promise.resolve();
  };
  const failWhenDead = <Steps extends object>(steps: Steps): Steps =>
    new Proxy(steps, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        return (...input: unknown[]): unknown =>
          dead && name !== 'close'
            ? Promise.reject(new Error('crashed'))
            : Reflect.apply(value, target, input);
      },
    });
  const intercepted = withInterruptions(harness, { [at]: die });
  return {
    ...intercepted,
    recorder: failWhenDead(intercepted.recorder),
    commits: failWhenDead(intercepted.commits),
    openDestination: async (...input: Parameters<OpenDestination>) =>
      failWhenDead(await intercepted.openDestination(...input)),
  };
}
