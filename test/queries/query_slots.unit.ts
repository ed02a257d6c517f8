import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { QuerySlotsBusy } from '../../src/queries/query_errors.ts';
import { createQuerySlots, type SlotLimits } from '../../src/queries/query_slots.ts';
import { waitFor } from '../setup/wait_for.ts';

const longMs = 600_000;
let ending: AbortController;
beforeEach(() => {
  ending = new AbortController();
});
// Queries that still wait have timers, which would keep the process alive.
afterEach(() => ending.abort());

/** Lets everything that was granted or rejected continue. */
const settle = () => new Promise(setImmediate);

/** Slots, their queries by name in the order in which they started, and how those that failed ended. */
function openSlots(limits: Partial<SlotLimits> = {}) {
  let time = 0;
  const slots = createQuerySlots(
    {
      slots: 4,
      projectSlots: 3,
      keySlots: 3,
      queueSize: 100,
      projectQueueSize: 50,
      timeoutMs: longMs,
      ...limits,
    },
    () => time,
  );
  const started: string[] = [];
  const failed = new Map<string, unknown>();
  const limited: string[] = [];
  const releases = new Map<string, () => void>();
  return {
    started,
    failed,
    limited,
    /** Requests a slot for a query such as `a1`, of the project `a`. */
    request: async (name: string, keyId = 'key', signal = ending.signal) => {
      const owner = { team_id: name.charCodeAt(0), key_id: keyId };
      slots
        .acquire(owner, signal, () => limited.push(name))
        .then(
          (release) => {
            started.push(name);
            releases.set(name, release);
          },
          (error: unknown) => failed.set(name, error),
        );
      await settle();
    },
    /** Ends a query, after `durationMs`. */
    end: async (name: string, durationMs = 1) => {
      time += durationMs;
      releases.get(name)?.();
      await settle();
    },
    /** What rejected a query. */
    busy: (name: string) => {
      const error = failed.get(name);
      return error instanceof QuerySlotsBusy ? [error.scope, error.retryAfterSeconds] : error;
    },
  };
}

describe('slots', () => {
  it('keep one for a project that runs nothing, whatever another has queued', async () => {
    const { request, end, started } = openSlots({ projectSlots: 10, keySlots: 10 });
    for (const name of ['a1', 'a2', 'a3', 'a4', 'a5']) await request(name);
    expect(started).toEqual(['a1', 'a2', 'a3']);
    await request('b1');
    expect(started).toEqual(['a1', 'a2', 'a3', 'b1']);
    // The second query of b waits for the first, and for no other project.
    await request('b2');
    await end('b1');
    expect(started.at(-1)).toBe('b2');
  });

  it('go to the project that runs the fewest, also if it has used them the most', async () => {
    const { request, end, started } = openSlots({ slots: 5 });
    for (const name of ['a1', 'a2', 'c1', 'd1', 'a3', 'c2']) await request(name);
    await end('c1', 10_000);
    expect(started).toEqual(['a1', 'a2', 'c1', 'd1', 'c2']);
  });

  it('go to the project that has used them the least, if others run as many', async () => {
    const { request, end, started } = openSlots({ slots: 2 });
    await request('a1');
    await request('c1');
    for (const name of ['a2', 'c2', 'b1']) await request(name);
    await end('c1', 10_000);
    expect(started.at(-1)).toBe('b1');
  });

  it('forget use over time, so that an old query does not count against a project', async () => {
    const { request, end, started } = openSlots({ slots: 1 });
    for (const [name, durationMs] of [
      ['a1', 60_000],
      ['c1', 300_000],
      ['b1', 20_000],
    ] as const) {
      await request(name);
      await end(name, durationMs);
    }
    for (const name of ['c2', 'b2', 'a2']) await request(name);
    await end('c2');
    expect(started.at(-1)).toBe('a2');
  });

  it('of a project are shared by its keys, and go to the one that runs the fewest', async () => {
    const { request, end, started } = openSlots({ slots: 10, projectSlots: 4, keySlots: 3 });
    for (const name of ['a1', 'a2', 'a3', 'a4']) await request(name, 'greedy');
    expect(started).toEqual(['a1', 'a2', 'a3']);
    await request('a5', 'modest');
    await request('a6', 'modest');
    expect(started.at(-1)).toBe('a5');
    await end('a1');
    expect(started.at(-1)).toBe('a6');
    await end('a2');
    expect(started.at(-1)).toBe('a4');
  });

  it('are released once', async () => {
    const { request, end, started } = openSlots({ slots: 1 });
    for (const name of ['a1', 'a2', 'a3']) await request(name);
    await end('a1');
    await end('a1');
    expect(started).toEqual(['a1', 'a2']);
  });

  it('report once that a query waits for its project while others could start', async () => {
    const { request, limited } = openSlots({ slots: 4, projectSlots: 1 });
    await request('a1');
    await request('a2');
    await request('b1');
    await request('c1');
    expect(limited).toEqual(['a2']);
    await request('d1');
    await request('e1');
    expect(limited).toEqual(['a2']);
  });
});

describe('a waiting query', () => {
  it('leaves the queue when it is aborted, also when it has just got its slot', async () => {
    const { request, end, started, failed } = openSlots({ slots: 1 });
    await request('a1');
    const gone = new AbortController();
    await request('a2', 'key', gone.signal);
    await request('a3');
    gone.abort(new Error('gone'));
    await settle();
    expect(failed.get('a2')).toEqual(new Error('gone'));
    await end('a1');
    expect(started).toEqual(['a1', 'a3']);
  });

  it.each([
    ['project', { projectSlots: 1, keySlots: 1 }],
    ['key', { keySlots: 1 }],
    ['process', { slots: 1 }],
    // The second slot is kept for another project.
    ['project', { slots: 2, projectSlots: 2 }],
  ] as const)('is rejected after the timeout with the limit of its %s', async (scope, limits) => {
    const { request, failed, busy } = openSlots({ ...limits, timeoutMs: 1 });
    await request(scope === 'process' ? 'b1' : 'a1');
    await request('a2');
    await waitFor(() => failed.has('a2'), 'the rejection', 5_000);
    expect(busy('a2')).toEqual([scope, expect.any(Number)]);
  });
});

describe('a full queue', () => {
  it('of a project rejects the newest query of the key that has the most in it', async () => {
    const { request, end, started, busy } = openSlots({ projectSlots: 1, keySlots: 1, projectQueueSize: 2 });
    for (const name of ['a1', 'a2', 'a3']) await request(name, 'greedy');
    await request('a4', 'greedy');
    expect(busy('a4')).toEqual(['project', 15]);
    await request('a5', 'modest');
    expect(busy('a3')).toEqual(['project', 15]);
    await request('b1');
    expect(started).toEqual(['a1', 'b1']);
    await end('a1', 200_000);
    await request('a6', 'greedy');
    await request('a7', 'modest');
    // The average of the queries has grown, up to a minute.
    expect(busy('a7')).toEqual(['project', 60]);
  });

  it('of the process rejects the newest query of the project that has the most in it', async () => {
    const { request, started, busy } = openSlots({ slots: 1, queueSize: 2 });
    for (const name of ['a1', 'a2', 'a3', 'b1']) await request(name);
    expect(busy('a3')).toEqual(['process', 15]);
    expect(started).toEqual(['a1']);
    await request('a4');
    expect(busy('a4')).toEqual(['process', 15]);
  });
});
