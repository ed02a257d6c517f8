import { setTimeout as wait } from 'node:timers/promises';
import type { Settings } from '../../config/settings.ts';
import { circuitRetryDelayMs, describeOpenCircuit, destinationUnavailable } from '../../domain/circuit.ts';
import { DestinationError } from '../destination.ts';
import type { CircuitStore, StoredCircuit } from './circuit_store.ts';

/** Sends one small request. @throws DestinationError with `unavailable` when the destination does not respond */
export type Probe = () => Promise<void>;

/** How an attempt waits for a probe. */
export interface ProbeWait {
  /**
   * Lets another attempt use the slot of this one. Undefined when no more slots may be yielded; then the attempt does not
   * wait. An attempt outside the export slots has none to yield.
   */
  readonly yieldSlot?: () => (() => void) | undefined;
  readonly signal: AbortSignal;
  /** The run of the attempt, which `waitOf` then knows. */
  readonly runId?: string;
}

/** Reports the outcomes of requests to one destination. */
export interface CircuitReporter {
  /** The destination responded. */
  responded(): void;
  /** The destination did not respond for as long as an attempt may wait. Opens the circuit. Returns the error to throw. */
  unavailable(error: DestinationError): Promise<DestinationError>;
  /** Whether this process knows that the circuit is open. */
  isOpen(): boolean;
}

/** The circuit breaker of all destinations. Its state is in the control database, so that workers share it. */
export interface CircuitBreaker {
  /**
   * Admits an attempt whose destination responds. One that has been silent for a while is probed first.
   * @throws DestinationError `DestinationUnavailable`, with the time of the next attempt
   */
  admit(destination: string, probe: Probe, waiting: ProbeWait): Promise<void>;
  reporter(destination: string): CircuitReporter;
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
/** Runs whose destination is remembered. The others ask the control database. */
const maxRememberedRuns = 10_000;

/** Creates the circuit breaker of a process. */
export function createCircuitBreaker(
  store: CircuitStore,
  { EXPORTD_S3_PROBE_AFTER: probeAfterMs }: Pick<Settings, 'EXPORTD_S3_PROBE_AFTER'>,
): CircuitBreaker {
  /** The probes of this process. They need no slot of an activity, and outlast the attempts that started them. */
  const probes = new Map<string, Promise<void>>();
  const recorded = new Map<string, number>();
  /** Open circuits as they were read, and when. None closes before its next probe is due. */
  const knownOpen = new Map<string, { readonly circuit: StoredCircuit; readonly readAt: number }>();
  const waitingRuns = new Map<string, string>();

  const admits = ({ open, responded_ms_ago }: StoredCircuit): boolean =>
    open === null && responded_ms_ago !== null && responded_ms_ago < probeAfterMs;

  const read = async (destination: string): Promise<StoredCircuit> => {
    const circuit = await store.read(destination);
    if (circuit.open) knownOpen.set(destination, { circuit, readAt: performance.now() });
    else knownOpen.delete(destination);
    return circuit;
  };

  /** The open circuit of a destination, as of now; undefined when a probe may have closed it. */
  const waitingCircuit = (destination: string): StoredCircuit | undefined => {
    const known = knownOpen.get(destination);
    if (!known) return undefined;
    const elapsed = performance.now() - known.readAt;
    const { circuit } = known;
    if (circuit.next_probe_in_ms <= elapsed) return undefined;
    return {
      ...circuit,
      next_probe_in_ms: circuit.next_probe_in_ms - elapsed,
      open_for_ms: circuit.open_for_ms + elapsed,
    };
  };

  const rememberRun = (runId: string, destination: string): void => {
    waitingRuns.delete(runId);
    waitingRuns.set(runId, destination);
    const [oldest] = waitingRuns.keys();
    if (oldest !== undefined && waitingRuns.size > maxRememberedRuns) waitingRuns.delete(oldest);
  };

  const runProbe = async (destination: string, probe: Probe): Promise<void> => {
    try {
      await probe();
      await store.close(destination);
      knownOpen.delete(destination);
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
      if (runId !== undefined) rememberRun(runId, destination);
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
