import type { RunRecorder } from '../../src/decisions/run_recorder.ts';
import type { Destination, FileUpload } from '../../src/destination/destination.ts';
import type { OpenDestination } from '../../src/destination/open_destination.ts';

/** Calls of one attempt that a test can get between, in the order in which they come. */
export interface Interruptions {
  readonly planPart?: (partNumber: number) => Promise<void> | void;
  readonly putPart?: (partNumber: number) => Promise<void> | void;
  /** After the part has arrived. */
  readonly arrived?: (partNumber: number) => Promise<void> | void;
  readonly listParts?: () => Promise<void> | void;
  readonly complete?: () => Promise<void> | void;
  readonly completed?: () => Promise<void> | void;
}

/** An attempt's way to the journal and the bucket with a test between; `sent` are the parts that were sent, by number, `listed` those that the bucket had. */
export function interrupted(
  stage: { readonly recorder: RunRecorder; readonly openDestination: OpenDestination },
  between: Interruptions,
) {
  const sent = new Map<number, number>();
  const arrived = new Set<number>();
  const listed = new Set<number>();
  const upload = (real: FileUpload): FileUpload => ({
    ...real,
    putPart: async (number, bytes, signal) => {
      await between.putPart?.(number);
      sent.set(number, bytes.length);
      const part = await real.putPart(number, bytes, signal);
      arrived.add(number);
      await between.arrived?.(number);
      return part;
    },
    listParts: async (signal) => {
      await between.listParts?.();
      const parts = await real.listParts(signal);
      parts?.forEach(({ part_number }) => listed.add(part_number));
      return parts;
    },
    complete: async (parts, bytes, signal) => {
      await between.complete?.();
      await real.complete(parts, bytes, signal);
      await between.completed?.();
    },
  });
  const openDestination: OpenDestination = async (subject, onFault): Promise<Destination> => {
    const real = await stage.openDestination(subject, onFault);
    return {
      ...real,
      createUpload: async (...input) => upload(await real.createUpload(...input)),
      resumeUpload: (names) => upload(real.resumeUpload(names)),
    };
  };
  const recorder: RunRecorder = {
    ...stage.recorder,
    planPart: async (runId, attempt, key, part) => {
      await between.planPart?.(part.part_number);
      await stage.recorder.planPart(runId, attempt, key, part);
    },
  };
  return { openDestination, recorder: recorder, sent, arrived, listed };
}

/**
 * The same for a process that is killed at one of these calls: nothing that it does afterwards reaches journal or
 * bucket, but what was under way arrives.
 */
export function killed(
  stage: { readonly recorder: RunRecorder; readonly openDestination: OpenDestination },
  at: keyof Interruptions,
  which = 1,
) {
  let calls = 0;
  let dead = false;
  const die = (): Promise<void> => {
    calls += 1;
    dead ||= calls >= which;
    return dead ? Promise.reject(new Error('killed')) : Promise.resolve();
  };
  const alive = <Steps extends object>(steps: Steps): Steps =>
    new Proxy(steps, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== 'function') return member;
        return (...input: unknown[]): unknown =>
          dead && name !== 'close'
            ? Promise.reject(new Error('killed'))
            : Reflect.apply(member, target, input);
      },
    });
  const way = interrupted(stage, { [at]: die });
  return {
    ...way,
    recorder: alive(way.recorder),
    openDestination: async (...input: Parameters<OpenDestination>) =>
      alive(await way.openDestination(...input)),
  };
}
