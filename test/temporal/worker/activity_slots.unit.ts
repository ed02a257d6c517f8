import { describe, expect, it } from '@jest/globals';
import type { WaitingRuns } from '../../../src/decisions/waiting_runs.ts';
import { taskPriorities } from '../../../src/temporal/task_queues.ts';
import {
  createActivitySlots,
  createFairActivitySlots,
  createJobSlots,
} from '../../../src/temporal/worker/activity_slots.ts';
import { waitFor } from '../../setup/wait_for.ts';
import { bounds } from '../../../src/config/bounds.ts';
import { maxCachedWorkflows } from '../../../src/temporal/worker/workers.ts';
import { admission } from '../../../src/temporal/worker/admission.ts';

const context = {
  slotType: 'activity',
  taskQueue: 'exports',
  workerIdentity: 'test',
  workerBuildId: 'test',
  isSticky: false,
} as const;
const never = new AbortController().signal;

describe('the activity slots of a worker', () => {
  it('are limited, and the next request waits for a released slot', async () => {
    const { supplier } = createActivitySlots(2, 0);
    const first = await supplier.reserveSlot(context, never);
    expect(supplier.tryReserveSlot(context)).not.toBeNull();
    expect(supplier.tryReserveSlot(context)).toBeNull();
    const third = supplier.reserveSlot(context, never);
    supplier.releaseSlot({ permit: first });
    await third;
    expect(supplier.tryReserveSlot(context)).toBeNull();
  });

  it('serve a waiting request when one is yielded, until it is reclaimed', async () => {
    const slots = createActivitySlots(1, 1);
    const { supplier } = slots;
    await supplier.reserveSlot(context, never);
    const second = supplier.reserveSlot(context, never);
    const reclaim = slots.yieldSlot();
    const permit = await second;
    expect(slots.yieldSlot()).toBeUndefined();
    reclaim?.();
    reclaim?.();
    supplier.releaseSlot({ permit });
    expect(supplier.tryReserveSlot(context)).toBeNull();
    expect(slots.yieldSlot()).toBeDefined();
    expect(supplier.tryReserveSlot(context)).not.toBeNull();
  });

  it('are not reserved for an aborted request', async () => {
    const { supplier } = createActivitySlots(1, 0);
    const permit = await supplier.reserveSlot(context, never);
    const aborted = new AbortController();
    const waiting = supplier.reserveSlot(context, aborted.signal);
    const reason = new Error('Request Cancelled');
    aborted.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    supplier.releaseSlot({ permit });
    expect(supplier.tryReserveSlot(context)).not.toBeNull();
  });

  it('are not reserved for a request that was aborted before it arrived', async () => {
    const { supplier } = createActivitySlots(1, 0);
    const permit = await supplier.reserveSlot(context, never);
    const reason = new Error('Request Cancelled');
    const waiting = supplier.reserveSlot(context, AbortSignal.abort(reason));
    supplier.releaseSlot({ permit });
    await expect(waiting).rejects.toBe(reason);
    expect(supplier.tryReserveSlot(context)).not.toBeNull();
  });
});

describe('the slots that projects share', () => {
  /** Lets timers of zero milliseconds and what was admitted continue. */
  const settle = () => new Promise((resolve) => setTimeout(resolve, 5));

  /** A worker to which Temporal offers tasks, by turns of the projects that have any: `b` has endlessly many that hang. */
  function openWorker(slots: number, maxYielded: number) {
    const fair = createFairActivitySlots(slots, maxYielded);
    const running: string[] = [];
    return {
      running,
      yieldSlot: () => fair.yieldSlot(),
      use: () => fair.use(),
      /** Offers one task; says whether the worker runs it, returned it, or had no slot to ask for it. */
      offer: async (project: string) => {
        const permit = fair.supplier.tryReserveSlot(context);
        if (!permit) return 'no slot';
        const release = await fair.admit(project, 0, never).catch(() => undefined);
        if (!release) {
          fair.supplier.releaseSlot({ permit });
          return 'returned';
        }
        running.push(project);
        return () => {
          running.splice(running.indexOf(project), 1);
          release();
          fair.supplier.releaseSlot({ permit });
        };
      },
    };
  }

  it('are all used by a single project, and one more by another that uses none', async () => {
    const { offer, running } = openWorker(2, 0);
    for (let task = 0; task < 100; task += 1) await offer('b');
    expect(running).toEqual(['b', 'b']);
    expect(await offer('a')).toBeInstanceOf(Function);
    expect(running).toEqual(['b', 'b', 'a']);
    expect(await offer('c')).toBe('no slot');
  });

  it('are free again for a project whose activity has ended, and never more than there are', async () => {
    const { offer, running } = openWorker(2, 0);
    const [first] = [await offer('b'), await offer('b'), await offer('a')];
    expect(first).toBeInstanceOf(Function);
    (first as () => void)();
    expect(await offer('b')).toBe('returned');
    expect(await offer('c')).toBeInstanceOf(Function);
    expect(running).toEqual(['b', 'a', 'c']);
  });

  it('are given to the activity of a project that waits, as soon as one ends', async () => {
    const fair = createFairActivitySlots(1, 0);
    const end = await fair.admit('b', 0, never);
    const second = fair.admit('b', 60_000, never);
    await settle();
    expect(fair.use().running).toBe(1);
    end();
    await second;
    expect(fair.use()).toEqual({ slots: 1, running: 1, yielded: 0 });
  });

  it.each([
    [1, 6],
    [2, 6],
  ])('serve others while all activities of %i projects hang, %i of one', async (projects, most) => {
    const { offer, running, yieldSlot } = openWorker(4, 12);
    const hanging = Array.from({ length: projects }, (_, index) => `b${index}`);
    for (let round = 0; round < 100; round += 1)
      for (const project of hanging) {
        // Each yields its slot if it may, and holds it otherwise.
        if (typeof (await offer(project)) === 'function') yieldSlot();
      }
    const held = hanging.map((project) => running.filter((one) => one === project).length);
    expect(Math.max(...held)).toBe(most);
    for (const other of ['a', 'c']) {
      const end = await offer(other);
      expect([other, typeof end]).toEqual([other, 'function']);
      (end as () => void)();
    }
  });

  it('are taken until one has been free for five seconds, however short it is free between two activities', async () => {
    let now = 0;
    const fair = createFairActivitySlots(2, 1, () => now);
    const first = await fair.admit('b', 0, never);
    expect(fair.areTaken()).toBe(false);
    const second = await fair.admit('b', 0, never);
    expect(fair.areTaken()).toBe(true);
    first();
    now = 4_999;
    expect(fair.areTaken()).toBe(true);
    const third = await fair.admit('b', 0, never);
    now = 60_000;
    expect(fair.areTaken()).toBe(true);
    const reclaim = fair.yieldSlot();
    now = 65_000;
    expect(fair.areTaken()).toBe(false);
    reclaim?.();
    expect(fair.areTaken()).toBe(true);
    second();
    third();
    now = 70_000;
    expect(fair.areTaken()).toBe(false);
  });

  it('are yielded by their number, and reclaimed', async () => {
    const { offer, yieldSlot, use } = openWorker(1, 1);
    await offer('b');
    const reclaim = yieldSlot();
    expect(yieldSlot()).toBeUndefined();
    expect(use()).toEqual({ slots: 1, running: 1, yielded: 1 });
    reclaim?.();
    reclaim?.();
    expect(use().yielded).toBe(0);
    expect(yieldSlot()).toBeInstanceOf(Function);
  });

  it('are waited for until the task is returned to Temporal, or was cancelled', async () => {
    const fair = createFairActivitySlots(1, 0);
    await fair.admit('b', 0, never);
    await expect(fair.admit('b', 0, never)).rejects.toMatchObject({
      type: 'SlotsTaken',
      nextRetryDelay: 1_000,
      nonRetryable: false,
    });
    const cancelled = new AbortController();
    const waiting = fair.admit('b', 60_000, cancelled.signal);
    const reason = new Error('Cancelled');
    cancelled.abort(reason);
    await expect(waiting).rejects.toBe(reason);
  });
});

describe('the admission of a task', () => {
  /** A worker with one slot. It asks every 10 ms whether a task may stay that waits for it. */
  function openWorker(waiting: Partial<WaitingRuns>) {
    const intercept = admission(
      createFairActivitySlots(1, 0, () => 0),
      {
        hasOlder: () => Promise.resolve(false),
        hasOtherProjects: () => Promise.resolve(false),
        ...waiting,
      },
      { EXPORTD_HEARTBEAT_TIMEOUT: 40 },
    );
    const heartbeats: unknown[] = [];
    /** Runs the activity of a run of a project. */
    const run = async (
      run_id: string,
      work: () => Promise<unknown>,
      isBackfill = false,
    ): Promise<unknown> => {
      const { inbound } = intercept({
        info: {
          priority: {
            fairnessKey: 'b',
            priorityKey: isBackfill ? taskPriorities.backfill : taskPriorities.scheduled,
          },
          startToCloseTimeoutMs: 3_600_000,
          heartbeatDetails: { spent_ms: 5 },
        },
        cancellationSignal: never,
        heartbeat: (details) => heartbeats.push(details),
      });
      return inbound?.execute?.({ args: [{ run_id }], headers: {} }, work);
    };
    return { run, heartbeats };
  }
  const done = () => Promise.resolve('done');

  it('returns it while older runs of its project wait and all slots are taken, thirty in a row', async () => {
    const asked: (readonly string[])[] = [];
    const { run } = openWorker({
      hasOlder: (runId, running) => {
        asked.push([runId, ...running]);
        return Promise.resolve(true);
      },
    });
    for (let task = 0; task < 30; task += 1)
      await expect(run('newer', done)).rejects.toMatchObject({
        type: 'OlderRunsFirst',
        nextRetryDelay: 1_000,
        nonRetryable: false,
      });
    expect(await run('newer', done)).toBe('done');
    await expect(run('newer', done)).rejects.toMatchObject({ type: 'OlderRunsFirst' });
    expect(new Set(asked.map((ids) => ids.join(' ')))).toEqual(new Set(['newer newer']));
  });

  it('asks for no order of backfills', async () => {
    const { run } = openWorker({ hasOlder: () => Promise.resolve(true) });
    expect(await run('backfilled', done, true)).toBe('done');
  });

  it('lets it wait for a slot until another project could use one', async () => {
    const first = Promise.withResolvers<undefined>();
    const others = { exist: false };
    const { run, heartbeats } = openWorker({ hasOtherProjects: () => Promise.resolve(others.exist) });
    const running = run('first', () => first.promise);
    const second = run('second', done);
    await waitFor(() => heartbeats.length >= 3, 'it has waited for several intervals');
    expect(heartbeats[0]).toEqual({ spent_ms: 5 });
    others.exist = true;
    await expect(second).rejects.toMatchObject({ type: 'SlotsTaken' });
    others.exist = false;
    const third = run('third', done);
    first.resolve(undefined);
    await running;
    expect(await third).toBe('done');
  });
});

describe('the slots of jobs', () => {
  it('are shared: a project uses at most half, and its jobs that wait leave theirs to others', async () => {
    const ofJobs = createJobSlots();
    const { max: slots } = bounds.jobs;
    const half = bounds.jobsOfProject.max;
    const admitted: number[] = [];
    const ends: (() => void)[] = [];
    const begin = async (project: number): Promise<void> => {
      await ofJobs.supplier.reserveSlot(context, never);
      void ofJobs.admit(project, never).then((end) => {
        admitted.push(project);
        ends.push(end);
      });
      await new Promise(setImmediate);
    };
    for (let job = 0; job < slots; job += 1) await begin(1);
    for (const project of [2, 3]) await begin(project);
    expect(admitted).toEqual([...Array.from({ length: half }, () => 1), 2, 3]);
    expect(ofJobs.use().yielded).toBe(slots - half);
    ends[0]?.();
    await new Promise(setImmediate);
    expect(admitted).toHaveLength(half + 3);
  });
});

describe('the workflow cache of a worker', () => {
  const gigabyte = 1024 ** 3;

  it.each([
    [0.125, 100],
    [1, 596],
    [64, 900],
  ])('takes a tenth of %f GB of memory, within bounds: %i executions', (gigabytes, expected) => {
    expect(maxCachedWorkflows(gigabytes * gigabyte)).toBe(expected);
  });
});
