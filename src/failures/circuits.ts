import { setTimeout as wait } from 'node:timers/promises';
import type { Settings } from '../config/settings.ts';
import { type CircuitBreaker, DestinationError, type Probe } from '../destination/destination.ts';
import { circuitRetryDelayMs, describeOpenCircuit, destinationUnavailable } from '../domain/circuit.ts';
import { BoundedMap } from '../concurrency/bounded_map.ts';
import type { CircuitStore, StoredCircuit } from './circuit_store.ts';

/** The circuit breaker of all destinations. Its state is in the control database, so that workers share it. */
export interface Circuits extends CircuitBreaker {
  /**
   * The error of a run whose destination this process knows to be unavailable until its next probe, without a statement.
   * Undefined when nothing is known: then `admit` decides.
   */
  waitOf(runId: string): DestinationError | undefined;
}

/** How long an attempt waits for the probe of another one, counted from the start of the probe. */
const probeWaitMs = 200;
/** How long the attempt waits that starts the probe of a destination which is not known to be unavailable. */
const ownProbeWaitMs = 1_000;
const pollMs = 50;
/** When an attempt returns that did not wait for the end of a probe. */
const returnAfterMs = 1_000;
/** Each has a connection. Beyond that, attempts return later. */
const maxProbes = 100;
/** Responses are recorded at most this often, so that a busy destination costs no statement per request. */
const recordIntervalMs = 5_000;
/** How long a circuit that was read counts as closed, in milliseconds, so that a busy one costs no statement per attempt. */
const closedMs = 5_000;
const maxRememberedRuns = 10_000;
const maxRememberedCircuits = 10_000;

export function createCircuitBreaker(
  store: CircuitStore,
  { EXPORTD_S3_PROBE_AFTER: probeAfterMs }: Pick<Settings, 'EXPORTD_S3_PROBE_AFTER'>,
): Circuits {
  /** The probes of this process. They need no slot of an activity, and outlast the attempts that started them. */
  const probes = new Map<string, Promise<void>>();
  const recorded = new Map<string, number>();
  /** Circuits as they were read, and when. An open one does not close before its next probe is due. */
  const known = new BoundedMap<string, { readonly circuit: StoredCircuit; readonly readAt: number }>(
    maxRememberedCircuits,
  );
  /** The destinations that runs wait for. A run that is forgotten asks the control database. */
  const waitingRuns = new BoundedMap<string, string>(maxRememberedRuns);

  const admits = ({ open, responded_ms_ago }: StoredCircuit): boolean =>
    open === null && responded_ms_ago !== null && responded_ms_ago < probeAfterMs;

  const read = async (destination: string): Promise<StoredCircuit> => {
    // Before the read, however long it takes: what is known of a circuit ends no later than its next probe is due.
    const readAt = performance.now();
    const circuit = await store.read(destination);
    known.set(destination, { circuit, readAt });
    return circuit;
  };

  /** Whether a circuit was read a moment ago, and still admits attempts. */
  const isKnownClosed = (destination: string): boolean => {
    const found = known.get(destination);
    if (!found) return false;
    const elapsed = performance.now() - found.readAt;
    const { circuit } = found;
    const responded_ms_ago = circuit.responded_ms_ago === null ? null : circuit.responded_ms_ago + elapsed;
    return elapsed < closedMs && admits({ ...circuit, responded_ms_ago });
  };

  /** The open circuit of a destination, as of now; undefined when a probe may have closed it. */
  const waitingCircuit = (destination: string): StoredCircuit | undefined => {
    const found = known.get(destination);
    if (!found?.circuit.open) return undefined;
    const elapsed = performance.now() - found.readAt;
    const { circuit } = found;
    if (circuit.next_probe_in_ms <= elapsed) return undefined;
    return {
      ...circuit,
      next_probe_in_ms: circuit.next_probe_in_ms - elapsed,
      open_for_ms: circuit.open_for_ms + elapsed,
    };
  };

  const runProbe = async (destination: string, probe: Probe): Promise<void> => {
    try {
      await probe();
      await store.close(destination);
      known.delete(destination);
    } catch (error) {
      if (!(error instanceof DestinationError)) return;
      await store
        .open(destination, error.message)
        .then(() => read(destination))
        .catch(() => undefined);
    } finally {
      probes.delete(destination);
    }
  };

  /** Starts a probe, unless another worker has the lease. */
  const startProbe = async (destination: string, probe: Probe): Promise<boolean> => {
    if (probes.has(destination) || probes.size >= maxProbes) return false;
    if (!(await store.leaseProbe(destination)) || probes.has(destination)) return false;
    probes.set(destination, runProbe(destination, probe));
    return true;
  };

  /** Waits until a probe has ended, at most for this time. */
  const waitForProbe = async (destination: string, limitMs: number, signal: AbortSignal): Promise<void> => {
    const local = probes.get(destination);
    if (local) {
      const timeout = new AbortController();
      const either = AbortSignal.any([signal, timeout.signal]);
      await Promise.race([local, wait(limitMs, undefined, { signal: either }).catch(() => undefined)]);
      timeout.abort();
    } else {
      const deadline = performance.now() + limitMs;
      while (performance.now() < deadline && (await store.read(destination)).probing_for_ms !== null)
        await wait(pollMs, undefined, { signal }).catch(() => undefined);
    }
    signal.throwIfAborted();
  };

  const unavailable = ({ open, open_for_ms, next_probe_in_ms }: StoredCircuit): DestinationError =>
    new DestinationError(
      destinationUnavailable,
      open ? describeOpenCircuit(open) : 'Waiting for the first response of the S3 server.',
      {
        transient: true,
        retry_delay_ms: open
          ? circuitRetryDelayMs({ nextProbeInMs: next_probe_in_ms, openForMs: open_for_ms }, Math.random())
          : returnAfterMs,
      },
    );

  return {
    admit: async (destination, probe, { yieldSlot, signal, runId }) => {
      // Another process may have opened it since. Then this one finds out by its own requests, or with the next read.
      if (isKnownClosed(destination)) return;
      const circuit = waitingCircuit(destination) ?? (await read(destination));
      if (admits(circuit)) return;
      const isDue = circuit.open === null || circuit.next_probe_in_ms <= 0;
      const isOwn = isDue && (await startProbe(destination, probe));
      const limitMs =
        isOwn && circuit.open === null ? ownProbeWaitMs : probeWaitMs - (circuit.probing_for_ms ?? 0);
      const reclaim = isDue && limitMs > 0 ? yieldSlot?.() : undefined;
      if (isDue && limitMs > 0 && (reclaim || !yieldSlot))
        await waitForProbe(destination, limitMs, signal).finally(() => reclaim?.());
      const latest = isDue ? await read(destination) : circuit;
      if (admits(latest)) return;
      if (runId !== undefined) waitingRuns.set(runId, destination);
      throw unavailable(latest);
    },
    reporter: (destination) => ({
      responded: () => {
        const now = performance.now();
        if (now - (recorded.get(destination) ?? -Infinity) < recordIntervalMs) return;
        recorded.set(destination, now);
        store.recordResponse(destination).catch(() => recorded.delete(destination));
      },
      unavailable: async (error) => {
        if (isKnownClosed(destination)) known.delete(destination);
        try {
          await store.open(destination, error.message);
          const circuit = await read(destination);
          return circuit.open ? unavailable(circuit) : error;
        } catch {
          return error;
        }
      },
      isOpen: () => waitingCircuit(destination) !== undefined,
    }),
    waitOf: (runId) => {
      const destination = waitingRuns.get(runId);
      const circuit = destination === undefined ? undefined : waitingCircuit(destination);
      return circuit && unavailable(circuit);
    },
  };
}
