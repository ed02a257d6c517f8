import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DestinationError, type Probe } from '../../src/destination/destination.ts';
import { createCircuitBreaker } from '../../src/failures/circuits.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { waitFor } from '../setup/wait_for.ts';
import { s3Settings } from '../destination/bucket_requests.ts';
import { collectLog } from '../telemetry/collect_log.ts';
import { type CircuitStore, createCircuitStore } from '../../src/failures/circuit_store.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const { signal } = new AbortController();
const silence = new DestinationError('S3Unreachable', 'No response.', { transient: true, unavailable: true });

/** Some workers, an outage of their destination, and its probes. */
function createOutage(settings: Record<string, string> = {}) {
  const destination = randomUUID();
  const probed = s3Settings({
    EXPORTD_S3_PROBE_INITIAL: '200ms',
    EXPORTD_S3_PROBE_MAX: '400ms',
    // A lease that ends while a busy machine stalls would let another worker probe.
    EXPORTD_S3_PROBE_TIMEOUT: '30s',
    ...settings,
  });
  const { logger, lines } = collectLog();
  const store: CircuitStore = createCircuitStore(database.pool, probed, logger);
  const state = { responds: false, probes: 0, probing: 0, mostProbing: 0 };
  /** The end of each probe, once the test lets them end. */
  let ends = Promise.resolve();
  const probe: Probe = async () => {
    state.probes += 1;
    state.probing += 1;
    state.mostProbing = Math.max(state.mostProbing, state.probing);
    await ends.finally(() => (state.probing -= 1));
    if (!state.responds) throw silence;
  };
  const createWorker = (workerStore: CircuitStore = store) => {
    const breaker = createCircuitBreaker(workerStore, probed);
    let yielded = 0;
    return {
      reporter: breaker.reporter(destination),
      yielded: () => yielded,
      /** The type and delay of the error that an attempt gets; null if it is admitted. */
      waitOf: (runId: string) => breaker.waitOf(runId)?.type,
      attempt: async (mayYield = true): Promise<{ type: string; delayMs: number } | null> => {
        const yieldSlot = () => {
          yielded += 1;
          return mayYield ? () => undefined : undefined;
        };
        try {
          await breaker.admit(destination, probe, { signal, yieldSlot, runId: 'run' });
          return null;
        } catch (error) {
          if (!(error instanceof DestinationError)) throw error;
          return { type: error.type, delayMs: error.retry_delay_ms ?? NaN };
        }
      },
    };
  };
  return {
    destination,
    store,
    state,
    lines,
    createWorker,
    /** Lets probes wait until the returned function is called. */
    holdProbes: () => {
      const { promise, resolve } = Promise.withResolvers<undefined>();
      ends = promise.then(() => undefined);
      return () => resolve(undefined);
    },
    probeHasEnded: (before: number) =>
      waitFor(
        // The lease ends with the statement that records the result of the probe.
        async () => state.probes > before && (await store.read(destination)).probing_for_ms === null,
        'the result of the probe is recorded',
      ),
    nextProbeIsDue: () =>
      waitFor(async () => (await store.read(destination)).next_probe_in_ms <= 0, 'the next probe is due'),
  };
}

const waiting = (delayMs: unknown = expect.any(Number)) => ({ type: 'DestinationUnavailable', delayMs });

describe('a destination that was not heard of', () => {
  it('is probed once for all workers, and admits every attempt when it responds', async () => {
    const { createWorker, state } = createOutage();
    state.responds = true;
    const workers = [createWorker(), createWorker()];
    const attempts = workers.flatMap((worker) => [worker.attempt(), worker.attempt(), worker.attempt()]);
    expect(await Promise.all(attempts)).toEqual(attempts.map(() => null));
    expect(state.probes).toBe(1);
    expect(await createWorker().attempt()).toBeNull();
    expect(state.probes).toBe(1);
  });

  it('lets attempts go while it is silent: they return in a second, and one probe waits without a slot', async () => {
    const { createWorker, state, holdProbes } = createOutage();
    const release = holdProbes();
    const worker = createWorker();
    const attempts = [worker, worker, createWorker()].map((one) => one.attempt());
    expect(await Promise.all(attempts)).toEqual([waiting(1_000), waiting(1_000), waiting(1_000)]);
    expect([state.probes, state.probing]).toEqual([1, 1]);
    release();
  });

  it('is waited for in no slot that cannot be yielded', async () => {
    const { createWorker, holdProbes, store } = createOutage();
    const release = holdProbes();
    expect(await createWorker().attempt(false)).toEqual(waiting(1_000));
    let reads = 0;
    const counting: CircuitStore = {
      ...store,
      read: (destination) => {
        reads += 1;
        return store.read(destination);
      },
    };
    expect(await createWorker(counting).attempt(false)).toEqual(waiting(1_000));
    // Before and after the probe. An attempt that waits for the probe of another worker reads in between.
    expect(reads).toBe(2);
    release();
  });

  it('is probed again when the worker that probed it was lost', async () => {
    const { createWorker, destination, store, state } = createOutage({ EXPORTD_S3_PROBE_TIMEOUT: '10ms' });
    state.responds = true;
    expect(await store.leaseProbe(destination)).toBe(true);
    expect(await createWorker().attempt()).toEqual(waiting());
    await waitFor(
      async () => (await store.read(destination)).probing_for_ms === null,
      'the lease of the lost worker expires',
    );
    expect(await createWorker().attempt()).toBeNull();
  });

  it('is probed again when the clock of the control database was set back', async () => {
    const { createWorker, destination, state } = createOutage();
    // What the clock had planned before.
    const setBack = () =>
      database.pool.query(
        `update exportd.destination_circuits set next_probe_at = next_probe_at + interval '6 hours',
           probe_started_at = probe_started_at + interval '6 hours', leased_until = leased_until + interval '6 hours'
         where destination = $1`,
        [destination],
      );
    const worker = createWorker();
    expect(await worker.attempt()).toEqual(waiting());
    await setBack();
    state.responds = true;
    expect(await createWorker().attempt()).toBeNull();
  });

  it('is probed again when the worker that probed it was lost before the clock was set back', async () => {
    const { createWorker, destination, store, state } = createOutage();
    state.responds = true;
    expect(await store.leaseProbe(destination)).toBe(true);
    await database.pool.query(
      `update exportd.destination_circuits set probe_started_at = probe_started_at + interval '6 hours',
         leased_until = leased_until + interval '6 hours' where destination = $1`,
      [destination],
    );
    expect(await createWorker().attempt()).toBeNull();
  });

  it('is probed again when it has been silent for a while', async () => {
    const { createWorker, destination, store, state } = createOutage({ EXPORTD_S3_PROBE_AFTER: '100ms' });
    state.responds = true;
    const worker = createWorker();
    await worker.attempt();
    await waitFor(
      async () => ((await store.read(destination)).responded_ms_ago ?? 0) > 100,
      'the response is old',
    );
    expect(await worker.attempt()).toBeNull();
    expect(state.probes).toBe(2);
  });
});

describe('a circuit that was closed when it was read', () => {
  const countReads = (store: CircuitStore) => {
    const counted = { reads: 0 };
    const counting: CircuitStore = {
      ...store,
      read: (destination) => {
        counted.reads += 1;
        return store.read(destination);
      },
    };
    return { counted, counting };
  };

  it('is not read again for each attempt', async () => {
    const { createWorker, state, store } = createOutage();
    state.responds = true;
    await createWorker().attempt();
    const { counted, counting } = countReads(store);
    const worker = createWorker(counting);
    for (let attempt = 0; attempt < 5; attempt += 1) expect(await worker.attempt()).toBeNull();
    expect(counted.reads).toBe(1);
  });

  it('is read again after a request of this worker that failed, and was opened by another', async () => {
    const { createWorker, state, store } = createOutage({
      EXPORTD_S3_PROBE_INITIAL: '60s',
      EXPORTD_S3_PROBE_MAX: '60s',
    });
    state.responds = true;
    const { counted, counting } = countReads(store);
    const [one, other] = [createWorker(counting), createWorker()];
    expect(await one.attempt()).toBeNull();
    await other.reporter.unavailable(silence);
    // It does not know, and its request fails like that of the other.
    expect(await one.attempt()).toBeNull();
    const before = counted.reads;
    await one.reporter.unavailable(silence);
    expect(await one.attempt()).toMatchObject({ type: 'DestinationUnavailable' });
    expect(counted.reads).toBeGreaterThan(before);
  });
});

describe('the circuit of an unavailable destination', () => {
  it('is shared: no worker sends anything before the next probe', async () => {
    const { createWorker, state } = createOutage({
      EXPORTD_S3_PROBE_INITIAL: '60s',
      EXPORTD_S3_PROBE_MAX: '60s',
    });
    const [one, other] = [createWorker(), createWorker()];
    await one.attempt();
    await Promise.all(Array.from({ length: 20 }, () => other.attempt()));
    const delays = await Promise.all([one.attempt(), other.attempt()]);
    for (const delay of delays) expect(delay?.delayMs).toBeGreaterThan(10_000);
    expect([state.probes, other.yielded()]).toEqual([1, 0]);
    expect([other.waitOf('run'), other.waitOf('another run')]).toEqual(['DestinationUnavailable', undefined]);
  });

  it('is probed by one attempt at a time, less and less often, and closes with a response', async () => {
    const { createWorker, destination, store, state, probeHasEnded, nextProbeIsDue } = createOutage();
    const workers = [createWorker(), createWorker()];
    const attempts = () => Promise.all(workers.flatMap((worker) => [worker.attempt(), worker.attempt()]));
    await attempts();
    await probeHasEnded(0);
    const delays: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      const before = state.probes;
      await nextProbeIsDue();
      await attempts();
      await probeHasEnded(before);
      const { rows } = await database.pool.query<{ probe_delay_ms: number }>(
        'select probe_delay_ms from exportd.destination_circuits where destination = $1',
        [destination],
      );
      delays.push(rows[0]?.probe_delay_ms ?? 0);
    }
    expect(delays).toEqual([400, 400, 400]);
    expect(state.mostProbing).toBe(1);
    state.responds = true;
    await nextProbeIsDue();
    for (const worker of workers) expect(worker.waitOf('run')).toBeUndefined();
    await waitFor(async () => (await attempts()).every((found) => found === null), 'all are admitted');
    expect((await store.read(destination)).open).toBeNull();
  });

  it('opens when a request was given up, and is closed by a probe only', async () => {
    // Longer than a busy machine stalls: the circuit is open until then.
    const { createWorker, destination, store, state, nextProbeIsDue } = createOutage({
      EXPORTD_S3_PROBE_INITIAL: '2s',
      EXPORTD_S3_PROBE_MAX: '4s',
    });
    state.responds = true;
    const [one, other] = [createWorker(), createWorker()];
    await one.attempt();
    const error = await one.reporter.unavailable(silence);
    expect(error).toMatchObject({ type: 'DestinationUnavailable', transient: true });
    expect(error.message).toMatch(/^No response, since \S+Z, next probe \S+Z\.$/);
    expect(one.reporter.isOpen()).toBe(true);
    // A store may answer some requests and fail at others. A probe that is due meanwhile fails too.
    state.responds = false;
    other.reporter.responded();
    expect(await other.attempt()).toEqual(waiting());
    state.responds = true;
    await nextProbeIsDue();
    await waitFor(async () => (await other.attempt()) === null, 'the destination is probed');
    // It relapses: the next probe takes longer.
    await other.reporter.unavailable(silence);
    const { next_probe_in_ms } = await store.read(destination);
    expect(next_probe_in_ms).toBeGreaterThan(2_000);
  });

  it('is one incident: a line of the log when it begins and when it ends, with its id', async () => {
    const { createWorker, state, nextProbeIsDue, lines } = createOutage();
    const [one, other] = [createWorker(), createWorker()];
    await one.reporter.unavailable(silence);
    await other.reporter.unavailable(silence);
    for (const worker of [one, other]) expect(await worker.attempt()).toEqual(waiting());
    state.responds = true;
    await nextProbeIsDue();
    await waitFor(async () => (await other.attempt()) === null, 'the destination is probed');
    await one.attempt();
    expect(lines).toMatchObject([
      { msg: 'The bucket does not respond: No response.', incident_id: expect.any(String), exports: 0 },
      { msg: 'The bucket responds again.', incident_id: lines[0]?.incident_id },
    ]);
    // It relapses: the same incident goes on.
    await other.reporter.unavailable(silence);
    expect(lines[2]).toMatchObject({ incident_id: lines[0]?.incident_id });
  });
});
