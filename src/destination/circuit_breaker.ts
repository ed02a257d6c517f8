import type { DestinationError } from './destination.ts';

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
  /** The run of the attempt, which waits for the destination if it is turned away. */
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

/** Whether destinations respond, as those who open them ask. src/failures implements it. */
export interface CircuitBreaker {
  /**
   * Admits an attempt whose destination responds. One that has been silent for a while is probed first.
   * @throws DestinationError `DestinationUnavailable`, with the time of the next attempt
   */
  admit(destination: string, probe: Probe, waiting: ProbeWait): Promise<void>;
  reporter(destination: string): CircuitReporter;
}
